"""Sizes as values, even if they are too large for the default integers.

A symbolic size counts as a Python integer: combined with floats it becomes a float, and if an
integer dtype cannot hold it, the call with that size is an error. A multiple of a size needs no
large array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.dims import symbol
from rune.errors import DeviceError, DimensionError
from rune.lowering.plan_text import parse, to_text
from rune.lowering.stages import stages
from tests.support.close import near
from tests.support.lowering import PLAIN, f32, program_of
from tests.support.sampling import IS_WHOLE, in_turn

pytestmark = in_turn()

DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "wgpu")]
NARROW = [d.name for d in rune.devices() if d.target.backend == "wgpu"]
on_every_executor = pytest.mark.parametrize("device", DEVICES)
LARGE = 1 << 16  # the size is this many times an axis
FITS, TOO_LONG = 32_767, 32_769

AS_FLOATS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int], float]]] = {
    "product": (lambda x, size: x[0] * size, float),
    "quotient": (lambda x, size: x[0] / size, lambda size: 1.0 / size),
    "the other quotient": (lambda x, size: size / x[0], float),
    "sum": (lambda x, size: (size + x)[0], lambda size: size + 1.0),
    "of a dtype": (lambda x, size: rnp.asarray(size, "float32"), float),
    "of integers": (lambda x, size: size / rnp.ones(1, "int32")[0], float),
    "comparison": (lambda x, size: rnp.where(x[0] < size, 1.0, 2.0), lambda size: 1.0),
    "mean of so many": (lambda x, size: x.sum() * size / x.shape[0], float),
}


def compiled(function: Callable[[Any, Any], Any], device: str) -> Any:
    """The function of a vector and a multiple of its size, compiled for all sizes."""
    return rune.jit(lambda x: function(x, x.shape[0] * LARGE), dims={"n": (1, None)}, device=device)


@on_every_executor
@pytest.mark.parametrize("name", AS_FLOATS)
def test_a_size_combined_with_floats_is_a_float(name: str, device: str):
    function, expected = AS_FLOATS[name]
    f = compiled(function, device)

    for n in (1, FITS, TOO_LONG):
        total = float(f(np.ones(n, np.float32)))
        near(expected(n * LARGE), total, relative=1e-6, why="rounded to f32 once or twice")


AS_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "value": lambda x, size: rnp.asarray(size),
    "product": lambda x, size: rnp.int32(1) * size,
    "difference": lambda x, size: size - rnp.ones(1, "int32")[0],
    "converted": lambda x, size: rnp.asarray(size).astype("float32"),
}


@on_every_executor
@pytest.mark.parametrize("name", AS_INTEGERS)
def test_an_integer_that_cannot_hold_a_size_is_refused(name: str, device: str):
    f = compiled(AS_INTEGERS[name], device)

    assert int(f(np.ones(FITS, np.float32))) in (FITS * LARGE, FITS * LARGE - 1)
    with pytest.raises(DimensionError, match=r"with 65536\*n = 2147549184 \(its value is an int"):
        f(np.ones(TOO_LONG, np.float32))


@on_every_executor
def test_an_integer_of_64_bits_holds_a_size(device: str):
    f = compiled(lambda x, size: rnp.asarray(size, "int64") * 2, device)

    assert int(f(np.ones(TOO_LONG, np.float32))) == 2 * TOO_LONG * LARGE


@pytest.mark.parametrize("device", NARROW)
def test_where_indices_have_32_bits_a_larger_size_is_refused(device: str):
    f = compiled(lambda x, size: x[0] * size, device)

    assert float(f(np.ones(FITS, np.float32))) == FITS * LARGE
    with pytest.raises(DeviceError, match=r"2147549184 .* indices are 32-bit there"):
        f(np.ones(TOO_LONG, np.float32))


def test_a_plan_states_which_sizes_its_integers_can_hold():
    n = symbol("n", 1, None)
    plan = stages(program_of(lambda x: rnp.asarray(x.type.shape[0] * 3), f32(n)), PLAIN).plan

    assert "limit 3*n to 2147483647" in to_text(plan)
    assert parse(to_text(plan)).limits == plan.limits


@pytest.mark.skipif(not IS_WHOLE, reason="takes 4 GB")
def test_the_mean_of_more_elements_than_32_bits_count():
    x = np.ones(2**31 + 8, np.bool_)

    assert float(rune.jit(rnp.mean, dims={"n": (1, 1 << 40)})(x)) == 1.0
