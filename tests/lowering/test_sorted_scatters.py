"""Scatters by sorting: they equal other scatters, and which scatters use sorting.

Claims, in reading order: samples of every scatter whose windows are rows give by sorting what the
reference gives, on every executor; updates of one element are combined in their order, and of
several that overwrite it the last wins; a device with many threads sorts if there are many updates,
not if there are few; a processor never does, unless the driver limits loops; and a scatter of very
many updates is right on every executor.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.backends import Device
from rune.core.lower import Scatter
from rune.core.primitive import Primitive
from rune.lowering.scatters import LONGEST_LOOP, expansion
from rune.lowering.scatters.by_sorting import change_by_sorting
from rune.lowering.sorting.radix import Tiles
from rune.ops.row_scatters import changed_rows, is_of_rows
from tests.ops.calls import Sample
from tests.ops.samples import samples
from tests.support.arrays import array
from tests.support.close import near
from tests.support.lowering import PLAIN, f32, i32
from tests.support.sampling import in_turn, one_in

SCATTERS = (ops.scatter, ops.scatter_add, ops.scatter_mul, ops.scatter_min, ops.scatter_max)
DEVICES = [d for d in rune.devices() if d.target.backend != "null"]
COMPILED = [d for d in DEVICES if d.target.backend not in ("cpu", "reference")]
GPU = replace(PLAIN, language="cuda", threads_per_workgroup=1024, cores=128)
TRIED = [d for d in DEVICES if d.target.backend in ("reference", "opencl")]
each_device = pytest.mark.parametrize("device", TRIED, ids=lambda d: d.name)


def of_rows(primitive: Primitive) -> list[Sample]:
    """The first sample in f64 or i32 whose windows are rows, and half of the others."""
    candidates = [
        s
        for s in samples(primitive)
        if s.types[0].dtype in (dtypes.f64, dtypes.i32)
        and is_of_rows(s.types[0], s.params["dims"], s.params["slice_sizes"])
    ]
    return [*candidates[:1], *one_in(2, candidates[1:])]


def by_sorting(primitive: Primitive, *args: Any, **params: Any) -> Any:
    assert isinstance(primitive.lower, Scatter)
    change = partial(change_by_sorting, primitive.lower.combine, Tiles(1, 8))
    return changed_rows(change, *args, **params)


@functools.cache  # programs of one sample each would compile the same sorts again and again
def results_of(primitive: Primitive, device: Device) -> dict[str, np.ndarray]:
    """Those of all samples of a scatter that the device takes, by name, from one program."""
    calls = [(s, s.draw()) for s in of_rows(primitive)]
    calls = [(s, operands) for s, operands in calls if {x.dtype for x in operands} <= device.target.program_dtypes]

    def run(operands: list[list[Any]]) -> list[Any]:
        pairs = zip(calls, operands, strict=True)
        return [by_sorting(s.primitive, *xs, **s.params) for (s, _), xs in pairs]

    results = rune.jit(run, device=device.name)([list(map(array, operands)) for _, operands in calls])
    return {str(s): np.asarray(x) for (s, _), x in zip(calls, results, strict=True)}


@each_device
@pytest.mark.parametrize("sample", [s for p in SCATTERS for s in of_rows(p)], ids=str)
def test_a_scatter_by_sorting_gives_the_right_result(sample: Sample, device: Device):
    result = results_of(sample.primitive, device).get(str(sample))
    if result is None:
        pytest.skip("not the dtypes of the device")

    assert sample.primitive.reference is not None
    expected = sample.primitive.reference(*sample.draw(), **sample.params)
    near(expected, result, relative=1e-12, why="sums of few in another order")


def test_there_are_such_samples_of_every_scatter():
    assert all(of_rows(p) for p in SCATTERS)


def changed(name: str, device: str | None, size: int, count: int) -> Any:
    rng = np.random.default_rng(count)
    at = rng.integers(-2 * size, 2 * size, count).astype(np.int32)
    values = rng.integers(-9, 9, count).astype(np.int32)
    return rune.jit(lambda x, i, v: getattr(x.at[i], name)(v), device=device)(np.zeros(size, np.int32), at, values)


@in_turn("name")
@pytest.mark.parametrize("device", COMPILED, ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["add", "set"])
def test_very_many_updates_are_right_on_every_executor(name: str, device: Any):
    # More than the loops of some drivers last.
    count = max(LONGEST_LOOP.values()) + 100

    expected = changed(name, None, 1000, count)

    np.testing.assert_array_equal(expected, changed(name, device.name, 1000, count))


# --- which are sorted -------------------------------------------------------------------------


def is_sorted(target: Any, count: int, width: int = 1, **changes: Any) -> bool:
    dims = ops.IndexDims((1,), (0,), (0,))
    params = {"dims": dims, "slice_sizes": (1, width), "mode": "fill"} | changes
    types = (f32(1000, width), i32(count, 1), f32(count, width))
    return expansion(target, True, ops.scatter_add, *types, **params) is not None


def test_a_device_with_many_threads_sorts_many_updates():
    assert is_sorted(GPU, 100_000)
    assert not is_sorted(GPU, 100)


def test_a_processor_does_one_update_after_another():
    assert not is_sorted(PLAIN, 10_000_000)
    assert not is_sorted(replace(GPU, cores=2, language="opencl"), 10_000_000)


def test_no_loop_is_longer_than_the_driver_lets_it_be():
    few = replace(GPU, cores=2, language="spirv")

    assert is_sorted(few, LONGEST_LOOP["spirv"])
    assert not is_sorted(few, LONGEST_LOOP["spirv"] - 1)


def test_windows_that_overlap_are_not_sorted():
    assert not is_sorted(GPU, 100_000, 4, slice_sizes=(1, 2))
