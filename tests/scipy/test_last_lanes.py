"""Iterations of many lanes: the slowest lanes continue without the others (special/loops.py).

SciPy in doubles is the oracle; and every lane has the same bits as among few lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import rune
from rune.scipy import special
from rune.scipy.special.loops import MANY, SHARE
from tests.support.close import near, same
from tests.support.sampling import IS_WHOLE, each_value

EVEN = {np.float32: 2e-5, np.float64: 3e-13}
RANGES: dict[str, Sequence[tuple[float, float]]] = {
    "betainc": [(0.05, 0.5), (0.05, 20.0), (0.0, 1.0)],
    "betaincinv": [(0.3, 0.5), (0.3, 5.0), (0.01, 0.99)],
    "gammainc": [(0.05, 20.0), (0.0, 40.0)],
    "gammaincinv": [(0.5, 20.0), (0.01, 0.99)],
    "hyp1f1": [(0.5, 3.0), (0.5, 3.0), (0.0, 5.0)],
    "hyp2f1": [(0.5, 3.0), (0.5, 3.0), (1.5, 3.0), (0.0, 0.9)],
}
SHAPES = [(MANY - 1,), (67, 97)]
FEW = MANY // SHARE
# Every function in one of the two widths, and with RUNE_TEST_WHOLE=1 in both: a width changes the
# limits of the loops, not how lanes are gathered.
WIDTHS = [(name, dtype) for k, name in enumerate(RANGES) for dtype in ([*EVEN] if IS_WHOLE else [[*EVEN][k % 2]])]
each_width = pytest.mark.parametrize(("name", "dtype"), WIDTHS, ids=str)


def drawn(name: str, shape: tuple[int, ...], dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng([len(name), *shape])
    return [rng.uniform(low, high, shape).astype(dtype) for low, high in RANGES[name]]


@each_value()
@each_width
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_many_lanes_have_scipys_values(name: str, shape: tuple[int, ...], dtype: type):
    args = drawn(name, shape, dtype)

    values = rune.jit(getattr(special, name))(*exact(args))

    truth = getattr(sp, name)(*[x.astype(np.float64) for x in args])
    relative = max(EVEN[dtype], 1e-11) if name == "hyp1f1" else EVEN[dtype]
    near(truth, values, relative=relative, why="roundings of exponents, and SciPy's own: 8e-13 in hyp1f1")


@each_width
def test_a_lane_has_the_same_bits_among_many_lanes_as_among_few(name: str, dtype: type):
    args = drawn(name, (4099,), dtype)
    function = rune.jit(getattr(special, name))

    values = function(*exact(args))

    pieces = [function(*exact([x[k : k + 911] for x in args])) for k in range(0, 4099, 911)]
    same(np.concatenate(pieces), values)


@pytest.mark.parametrize("slow", [0, 1, FEW - 1, FEW, FEW + 1, MANY // 2, MANY])
def test_any_number_of_lanes_can_converge_slowly(slow: int):
    x = np.full(MANY, 0.25)
    # Near 1 the fraction takes hundreds of steps; the slow lanes are in no order.
    x[np.random.default_rng(slow).permutation(MANY)[:slow]] = 0.998

    values = rune.jit(special.betainc)(*exact([np.full(MANY, 0.3), np.full(MANY, 0.2), x]))

    near(sp.betainc(0.3, 0.2, x), values, relative=1e-13, why="roundings of exponents")


def test_lanes_of_nan_end_at_once():
    a, b, x = drawn("betainc", (4099,), np.float64)
    x[::7], a[1::7], b[2::7] = np.nan, np.nan, -1.0

    values = np.asarray(rune.jit(special.betainc)(*exact([a, b, x])))

    assert np.array_equal(np.isnan(values), np.isnan(sp.betainc(a, b, x)))


def test_eager_calls_of_two_sizes_have_the_same_bits_as_compiled_calls():
    for size in (4099, 6007):
        args = exact(drawn("betainc", (size,), np.float32))

        same(rune.jit(special.betainc)(*args), special.betainc(*args))


def test_slopes_of_many_lanes_agree_with_finite_differences():
    a, b, x = drawn("betainc", (4099,), np.float64)
    x = 0.05 + 0.9 * x
    ones, h = np.ones_like(a), 1e-6

    def slope(a: Any, b: Any, x: Any, direction: Any) -> Any:
        return rune.jvp(lambda a: special.betainc(a, b, x), (a,), (direction,))[1]

    slopes = rune.jit(slope)(*exact([a, b, x, ones]))

    near((sp.betainc(a + h, b, x) - sp.betainc(a - h, b, x)) / (2 * h), slopes, relative=1e-6, why="differences")


def test_vmap_agrees_for_many_lanes_and_for_few():
    args = drawn("gammainc", (3, 4099), np.float64)

    values = rune.jit(rune.vmap(special.gammainc))(*exact(args))

    near(sp.gammainc(*args), values, relative=3e-13, why="roundings of exponents")


def exact(args: Sequence[np.ndarray]) -> list[Any]:
    """Arrays in their full width."""
    return [rune.numpy.asarray(x, x.dtype) for x in args]
