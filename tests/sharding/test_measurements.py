"""Measurements of devices: taken once, stored on disk, and read back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rune
from rune.errors import ArgumentError, DeviceError
from rune.transforms.placement import measure, storage
from rune.transforms.placement.curves import Curve, curve
from tests.sharding.measured import measurements

NAMES = ("cpu:0", "cpu:1", "cpu:2")


def test_a_curve_is_linear_between_measurements_and_extrapolates_at_the_last_rate():
    c = curve([(0, 1.0), (10, 2.0), (20, 6.0)])

    assert [c.seconds(amount) for amount in (0, 5, 15, 40)] == [1.0, 1.5, 4.0, 12.0]


def test_a_curve_never_falls_even_if_measurements_do():
    c = curve([(1, 3.0), (10, 2.0), (100, 2.5), (1000, 9.0)])
    seconds = [c.seconds(amount) for amount in range(0, 3000, 7)]

    assert all(a <= b for a, b in pairwise(seconds))


def test_below_the_least_amount_a_curve_is_its_latency():
    assert Curve(((4, 0.5), (8, 1.0))).seconds(0) == 0.5


def test_a_group_that_was_not_measured_is_as_the_next_larger():
    assert measurements(NAMES).group(3).devices == 3
    assert measurements(("cpu:0", "cpu:1", "cpu:2", "cpu:3")).group(3).devices == 4


def test_beyond_the_largest_group_waits_grow_with_the_logarithm():
    record = measurements(("cpu:0", "cpu:1"), latency=1e-4)

    assert record.group(64).sums.latency == pytest.approx(6e-4)


def test_devices_that_compute_together_are_slowed_by_what_they_share_at_each_amount():
    record = measurements(("cpu:0", "cpu:1"))
    (group,) = record.groups
    slow_streams = Curve(tuple((amount, 3 * s if amount > 1e6 else s) for amount, s in group.streams.points))
    busy = replace(record, groups=(replace(group, products=2.0, streams=slow_streams),)).speed_among("cpu:0", 2)
    alone = record.speed("cpu:0")

    assert busy.streams.seconds(1e3) == alone.streams.seconds(1e3)
    assert busy.streams.seconds(1e10) == pytest.approx(3 * alone.streams.seconds(1e10))
    assert busy.products.seconds(1e12) == pytest.approx(2 * alone.products.seconds(1e12))
    assert record.speed_among("cpu:0", 1) == alone


def test_a_record_is_the_same_after_it_was_text():
    record = measurements(NAMES, slower=2.0)

    assert storage.from_text(storage.to_text(record)) == record


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"speeds": [{}], "links": [], "groups": []}', "null"])
def test_a_text_that_is_not_a_record_gives_none(text: str):
    assert storage.from_text(text) is None


def test_a_record_is_read_by_the_next_process(tmp_path: Path):
    devices, record = rune.devices()[:1], measurements(("cpu:0",))
    with rune.configure(cache_dir=str(tmp_path)):
        storage.store(record, devices)
        storage.forget()  # as the next process knows nothing

        assert storage.load(devices) == record


def test_a_damaged_entry_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measure, "_measured", lambda machines: measurements([d.name for d in machines]))
    with rune.configure(cache_dir=str(tmp_path)):
        storage.forget()
        rune.measure_devices(["cpu:0"])
        storage.forget()
        (entry,) = (tmp_path / "kernels").glob("*.bin")
        entry.write_bytes(entry.read_bytes()[:-1] + b"?")

        assert storage.load(rune.devices()[:1]) is None
        assert rune.measure_devices(["cpu:0"]) == measurements(("cpu:0",))
        assert storage.load(rune.devices()[:1]) is not None
    storage.forget()


def test_a_measured_device_is_not_measured_again_unless_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    measured_devices: list[str] = []

    def note(machines: object) -> object:
        measured_devices.append("again")
        return measurements(("cpu:0",))

    monkeypatch.setattr(measure, "_measured", note)
    with rune.configure(cache_dir=str(tmp_path)):
        storage.forget()
        rune.measure_devices("cpu:0")
        rune.measure_devices(["cpu:0"])
        assert len(measured_devices) == 1
        rune.measure_devices(["cpu:0"], again=True)
        assert len(measured_devices) == 2
    storage.forget()


def test_a_measurement_is_printed_with_its_units(expect: Any):
    expect(
        measurements(("cpu:0", "cpu:1"), slower=2.0),
        """
        device     call    step     products  elementwise  operations  what it is
        cpu:0   1.00 µs  100 ns  100 GFLOP/s      10 GB/s      10 G/s  invented
        cpu:1   1.00 µs  100 ns   50 GFLOP/s       5 GB/s       5 G/s  invented

        link               latency  each way
        cpu:0 and cpu:1  100.00 µs    1 GB/s

        together        call  collective  each sends  in a sum            products  elementwise
        2 devices  100.00 µs   100.00 µs      1 GB/s    1 GB/s  1.00 times as long  5 GB/s each""",
    )


def test_devices_that_cannot_be_measured_are_refused_in_words():
    with pytest.raises(ArgumentError, match="each once, and at least one"):
        rune.measure_devices(["cpu:0", "cpu:0"])
    with pytest.raises(ArgumentError, match="each once, and at least one"):
        rune.measure_devices([])
    with pytest.raises(ArgumentError, match="a list of them required"):
        rune.measure_devices(3)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="cpu:99"):
        rune.measure_devices(["cpu:99"])
