"""Times that explain predicts, from invented records of devices."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.placement import storage
from tests.sharding.measured import measurements, stored

MESH = make_mesh((4, 2), ("data", "model"))
NAMES = [d.name for d in MESH.in_order]


@pytest.fixture
def _measured() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, stored(measurements(NAMES), MESH.in_order, Path(folder)):
        yield


def loss(w: Any, x: Any) -> Any:
    return (rnp.tanh(x @ w) ** 2).sum()


def explained(rows: int = 32) -> Any:
    w = rune.device_put(np.ones((64, 128), "f"), NamedSharding(MESH, P(None, "model")))
    x = rune.device_put(np.ones((rows, 64), "f"), NamedSharding(MESH, P("data")))
    return rune.explain(rune.grad(loss))(w, x)


def test_without_measurements_no_time_is_predicted_and_nothing_is_measured(tmp_path: Path):
    with rune.configure(cache_dir=str(tmp_path)):
        storage.forget()
        explanation = explained()

        assert explanation.prediction is None
        assert explanation["time"].startswith("no times: rune.measure_devices() measures ")
        assert "\n" not in explanation["time"]
        assert storage.covering(MESH.in_order) is None


@pytest.mark.usefixtures("_measured")
def test_the_time_of_a_call_is_made_of_computation_collectives_and_the_call(expect: Any):
    expect(
        re.sub(r"#.*", "# ...", explained()["time"]),
        """
        predicted 230.55 µs, bound by psum over 'data'
          100.00 µs  the call itself
            5.98 µs  computation on cpu:0, the slowest (products 0 ns, arithmetic 1.28 µs, memory 4.20 µs, steps 500 ns)
          124.57 µs  psum of f32[64,64] over 'data': 24576 B  # ...""",
    )


@pytest.mark.usefixtures("_measured")
def test_the_parts_add_up():
    prediction = explained().prediction

    assert prediction.seconds == pytest.approx(sum(seconds for _, seconds in prediction.parts()))


@pytest.mark.usefixtures("_measured")
def test_a_permutation_over_two_axes_takes_the_time_of_one_message():
    def seconds(names: Any, pairs: Any) -> float:
        f = rune.shard_map(lambda x: lax.ppermute(x, names, pairs), mesh=MESH, in_specs=P(names), out_specs=P(names))
        explanation = rune.explain(f)(np.ones((64, 64), "f"))
        assert f"over {names!r}" in explanation["time"]
        return explanation.prediction.exchange_seconds

    ring = [(n, (n + 1) % 8) for n in range(8)]
    assert seconds(("data", "model"), ring) == seconds(("model", "data"), ring) > 0


@pytest.mark.usefixtures("_measured")
def test_more_bytes_never_take_less_time():
    f = rune.shard_map(lambda x: lax.psum(x, "data"), mesh=MESH, in_specs=P("data"), out_specs=P())
    times = [rune.explain(f)(np.ones(n, "f")).prediction.exchange_seconds for n in (4, 64, 4096, 1 << 16, 1 << 20)]

    assert times == sorted(times)
    assert times[0] < times[-1]


@pytest.mark.usefixtures("_measured")
def test_a_collective_in_a_loop_takes_as_long_as_its_steps():
    def body(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, c: lax.pmean(c, "data"), x)

    f = rune.shard_map(body, mesh=MESH, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    once = rune.shard_map(
        lambda x: lax.pmean(x, "data"), mesh=MESH, in_specs=P("data"), out_specs=P("data"), check_vma=False
    )
    in_loop, alone = (rune.explain(g)(np.ones(64, "f")).prediction.exchange_seconds for g in (f, once))

    assert in_loop == pytest.approx(5 * alone)


def test_the_slowest_device_decides(tmp_path: Path):
    with stored(measurements(NAMES, slower=3.0), MESH.in_order, tmp_path):
        prediction = explained(4096).prediction

    assert prediction.slowest == NAMES[-1]
    fast, slow = prediction.devices[NAMES[0]], prediction.devices[NAMES[-1]]
    assert slow.products + slow.memory == pytest.approx(3 * (fast.products + fast.memory))


def test_measurements_of_all_devices_serve_a_mesh_of_some(tmp_path: Path):
    with stored(measurements(NAMES), MESH.in_order, tmp_path):
        pair = make_mesh((2,), ("data",))
        f = rune.shard_map(lambda x: lax.psum(x, "data"), mesh=pair, in_specs=P("data"), out_specs=P())

        assert rune.explain(f)(np.ones(8, "f")).prediction is not None


@pytest.mark.usefixtures("_measured")
def test_a_notebook_shows_what_the_time_is_made_of():
    page = explained()._repr_html_()

    assert "psum over &#x27;data&#x27;" in page
    assert "predicted" in page
    assert "exchanges" in page


def test_a_notebook_shows_a_call_that_has_no_time(tmp_path: Path):
    with rune.configure(cache_dir=str(tmp_path)):
        storage.forget()

        assert "rune.measure_devices()" in explained()._repr_html_()
