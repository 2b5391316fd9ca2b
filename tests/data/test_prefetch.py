"""Prefetch: elements on a device ahead of their use, and threads that end with the run.

Any iterable can be read ahead. Copies alongside programs are tested on a device that counts them.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import data
from rune.errors import DataError, DeviceError
from tests.data.functions import square
from tests.support.close import same
from tests.support.eventually import HANG_S, eventually


def readers() -> int:
    return sum(t.name.startswith("rune-data") for t in threading.enumerate())


@pytest.fixture(autouse=True)
def _leaves_no_thread() -> Iterator[None]:
    yield
    gc.collect()
    assert all_readers_end()


def all_readers_end() -> bool:
    return eventually(lambda: not readers())


def test_elements_are_arrays_on_the_device():
    (batch,) = data.arrays({"x": np.arange(3.0), "n": np.arange(3)}).batch(3).prefetch("cpu")

    assert batch["x"].committed
    same(batch["x"].numpy(), np.arange(3, dtype=np.float32))
    same(batch["n"].numpy(), np.arange(3, dtype=np.int32))


DEVICES = [d.name for d in rune.devices() if not d.name.startswith("null")]


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_computes_with_what_arrives(device: str):
    rows = np.random.default_rng(0).standard_normal((64, 1000), dtype=np.float32)
    largest = rune.jit(lambda x: rnp.max(x, axis=1))

    maxima = [largest(x) for x in data.arrays(rows).shuffle(0).batch(16).prefetch(device)]

    assert {x.device.name for x in maxima} == {device}
    same(np.sort(np.concatenate([x.numpy() for x in maxima])), np.sort(rows.max(axis=1)))


def test_a_value_without_numbers_stays_unchanged():
    (element,) = data.sequence([{"name": "a", "x": 1.0, "none": None}]).prefetch("cpu")

    assert element["name"] == "a"
    assert element["none"] is None
    assert isinstance(element["x"], rune.Array)


def test_elements_may_be_laid_out_on_a_mesh():
    mesh = rune.make_mesh((1,), ("rows",))
    where = rune.NamedSharding(mesh, rune.P("rows"))

    (batch,) = data.arrays(np.arange(4.0)).batch(4).prefetch(where)

    assert batch.sharding == where


def test_an_unknown_device_is_refused_at_once():
    with pytest.raises(DeviceError, match="cannot find 'nowhere'"):
        data.sequence("ab").prefetch("nowhere")


def test_it_reads_depth_elements_ahead():
    count: list[int] = []
    run = iter(data.sequence(range(100)).map(lambda x: count.append(x) or x).prefetch("cpu", depth=3))

    next(run)
    assert eventually(lambda: len(count) >= 5)
    time.sleep(0.05)  # in which a sixth would be read

    assert len(count) == 5  # one in use, three ready, one read
    run.close()


def test_stages_may_follow():
    pipeline = data.sequence(range(7)).map(square).batch(3).prefetch("cpu").map(lambda x: x * 2)

    assert [x.tolist() for x in pipeline] == [[0, 2, 8], [18, 32, 50], [72]]


def test_the_source_is_read_and_used_at_the_same_time():
    # Each load of a later element meets the use of the one before it: neither ends alone.
    meeting, count = threading.Barrier(2, timeout=HANG_S), 15

    def load(n: int) -> int:
        if n > 0:
            meeting.wait()
        return n

    for n in data.sequence(range(count)).map(load).prefetch("cpu"):
        if n < count - 1:
            meeting.wait()


def test_a_run_that_ends_early_ends_its_thread():
    for _ in range(20):
        for _ in data.sequence(range(1000)).map(square, workers=2).prefetch("cpu"):
            break

    assert all_readers_end()


def test_a_run_whose_error_is_still_held_has_no_thread():
    def fails(n: int) -> int:
        raise ValueError(n)

    with pytest.raises(ValueError, match="0") as error:
        list(data.sequence(range(9)).map(square, workers=2).prefetch("cpu").map(fails))

    assert readers() == 0
    assert error.value.__traceback__ is not None


def test_a_run_in_a_cycle_ends_with_it():
    run = iter(data.sequence(range(1000)).prefetch("cpu"))
    next(run)
    cycle: list[Any] = [run]
    cycle.append(cycle)

    del run, cycle
    gc.collect()

    assert all_readers_end()


def test_a_run_that_is_closed_has_no_thread():
    run = iter(data.sequence(range(1000)).map(square, workers=2).prefetch("cpu"))
    next(run)

    run.close()

    assert readers() == 0


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_the_run_and_loses_no_element():
    is_sent = threading.Event()

    def waits(n: int) -> int:
        if n == 3:
            is_sent.wait()
        return n

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        is_sent.set()

    pipeline = data.sequence(range(9)).map(waits).prefetch("cpu", depth=1)
    run = iter(pipeline)
    values = [int(next(run)) for _ in range(3)]

    timer = threading.Timer(0.05, interrupt)

    def wait_for_the_next() -> None:
        timer.start()
        next(run)

    with pytest.raises(KeyboardInterrupt):
        wait_for_the_next()
    timer.join()

    assert [*values, *map(int, pipeline.restore(run.state()))] == list(range(9))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_refused_instead_of_waiting():
    run = iter(data.sequence(range(1000)).prefetch("cpu", depth=1))
    next(run)
    child = os.fork()
    if not child:
        code = 1
        try:
            for _ in range(5):
                next(run)
        except DataError:
            code = 0
        finally:
            os._exit(code)

    _, status = os.waitpid(child, 0)
    run.close()

    assert status == 0


def test_tensors_of_other_libraries_are_read_by_dlpack():
    class Tensor:
        """Like torch's bf16 tensor, which NumPy cannot read."""

        def __init__(self, values: rune.Array):
            self.values = values

        def __array__(self, *_: Any) -> np.ndarray:
            raise TypeError("no NumPy dtype")

        def __dlpack__(self, **options: Any) -> object:
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.values.__dlpack_device__()

    (x,) = data.iterable([Tensor(rnp.arange(3, dtype="bf16"))]).prefetch("cpu")

    same(rnp.arange(3, dtype="bf16").numpy(), x.numpy())


def test_settings_of_the_caller_hold_in_its_threads():
    with rune.enable_x64():
        rows = list(data.sequence([0.5]).map(rnp.asarray, workers=1).prefetch("cpu"))

    assert rows[0].dtype == np.float64
