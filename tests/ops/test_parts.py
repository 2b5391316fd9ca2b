"""Functions of complex numbers by their parts (ops/parts.py) against NumPy's own.

First, every primitive that takes complex numbers can be split; then values, in the plane and near
points where formulas cancel; then zeros and their signs, which choose the side of a branch cut;
last infinities, for which C99's annex G gives the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rune import dtypes, ops
from rune.core.lower import Parts
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.errors import RuneError
from rune.ops.parts import PARTS
from tests.ops.samples import ELEMENTWISE, arity, each_primitive, elementwise_sample
from tests.support.close import close, near, ulp_distance
from tests.support.oracle import by_parts, reference

Plane = NDArray[np.complexfloating]
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]
UNARY = [p for p in PARTS if arity(p) == 1 and p.family in ("transcendental", "arithmetic")]
each_function = pytest.mark.parametrize("primitive", UNARY, ids=str)
in_both = pytest.mark.parametrize("dtype", COMPLEX, ids=dtypes.short)
# A few roundings on each side; the larger part of the result sets the step.
ULPS, WHY = 8, "a few roundings on both sides, in steps of the larger part"


def meaning(primitive: Primitive, *arrays: np.ndarray) -> np.ndarray:
    """NumPy's result in 128 bits."""
    wide = reference(primitive, *(x.astype(np.complex128) for x in arrays))
    narrow = primitive.type_rule(*(ArrayType(x.shape, x.dtype) for x in arrays))
    with np.errstate(all="ignore"):
        return wide.astype(narrow.dtype)


def plane(dtype: np.dtype) -> Plane:
    """Numbers of all lengths at all angles, and near 0, ±1, ±i and multiples of i π/2."""
    rng, reach = np.random.default_rng(0), 15 if dtype == dtypes.c64 else 120
    angles = np.exp(1j * rng.uniform(-np.pi, np.pi, 400))
    far = 10 ** np.concatenate([rng.uniform(-1, 1, 200), rng.uniform(-reach, reach, 200)])
    centres = np.array([1, -1, 1j, -1j, 0, np.pi / 2, 1j * np.pi / 2, np.pi, 0.5, -2.0])
    around_centres = centres[:, None] + 10 ** rng.uniform(-4, -0.5, 40) * angles[:40]
    return np.concatenate([far * angles, around_centres.reshape(-1)]).astype(dtype)


def domain(primitive: Primitive, z: Plane) -> Plane:
    """Where the function is not so steep that one rounding of the argument decides."""
    if primitive is ops.logistic:
        return z[np.abs(z.imag) < 3]
    if primitive is ops.exp2:
        return z[np.abs(z.imag) < 10]
    return z


@each_primitive
def test_a_primitive_that_takes_complex_numbers_can_be_split(primitive: Primitive):
    if primitive.family not in ELEMENTWISE - {"conversion"} or primitive.expand is not None:
        return
    sample = elementwise_sample(primitive, dtypes.c64, {}, ((2,),) * arity(primitive))
    try:
        primitive.type_rule(*sample.types)
    except RuneError:
        assert primitive not in PARTS or isinstance(primitive.lower, Parts)
    else:
        assert primitive in PARTS


@each_function
@in_both
def test_a_formula_agrees_with_numpy_in_the_plane(primitive: Primitive, dtype: np.dtype):
    z = domain(primitive, plane(dtype))

    expected, actual = meaning(primitive, z), by_parts(primitive, z)

    fits = np.isfinite(expected)
    close(expected[fits], actual[fits], ulps=ULPS, why=WHY)


@in_both
@pytest.mark.parametrize("primitive", [ops.add, ops.sub, ops.mul, ops.div], ids=str)
def test_arithmetic_agrees_with_numpy_in_the_plane(primitive: Primitive, dtype: np.dtype):
    a, b = plane(dtype), np.roll(plane(dtype), 7)

    expected, actual = meaning(primitive, a, b), by_parts(primitive, a, b)

    fits = np.isfinite(expected)
    close(expected[fits], actual[fits], ulps=ULPS, why=WHY)


@in_both
def test_powers_agree_with_numpy(dtype: np.dtype):
    a = plane(dtype)
    a = a[(np.abs(a) > 1e-3) & (np.abs(a) < 1e3)]
    b = np.roll(a, 3) / np.abs(a)

    a, b = a[np.abs(b) < 50], b[np.abs(b) < 50]

    close(meaning(ops.pow, a, b), by_parts(ops.pow, a, b), ulps=96, why="angles of some turns")


def test_a_power_is_finite_though_its_factors_are_not():
    z = np.array([2.082663 - 2.4285204j], np.complex64)
    w = np.array([153.67932 - 209.97823j], np.complex64)

    actual = by_parts(ops.pow, z, w)

    near(meaning(ops.pow, z, w), actual, relative=1e-3, why="an exponent of two hundred")


# --- zeros ------------------------------------------------------------------------------------

EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 30.0, -30.0, 1e12, -1e-12])


def grid(edges: np.ndarray, dtype: np.dtype) -> Plane:
    """Every pair of parts."""
    z = np.empty((len(edges), len(edges)), dtype)
    z.real, z.imag = edges[:, None], edges[None, :]
    return z.reshape(-1)


def table(z: np.ndarray, *values: np.ndarray) -> str:
    return "\n".join(" ".join(map(str, row)) for row in zip(z, *values))


@each_function
@in_both
def test_zeros_on_the_axes_keep_their_signs_and_branch_cuts_their_sides(primitive: Primitive, dtype: np.dtype):
    z = domain(primitive, grid(EDGES, dtype))

    expected, actual = meaning(primitive, z), by_parts(primitive, z)

    same_signs, on_axis = np.ones(z.shape, bool), (z.real == 0) | (z.imag == 0)
    for part in (np.real, np.imag):
        p, q = part(expected), part(actual)
        zero = (p == 0) & np.isfinite(q) & np.isfinite(p)
        same_signs &= ~(zero & on_axis) | ((q == 0) & (np.signbit(p) == np.signbit(q)))
    apart = ulp_distance(expected, actual) > ULPS
    wrong = np.isfinite(expected) & (apart | ~same_signs)
    assert not wrong.any(), table(z[wrong], expected[wrong], actual[wrong])


# --- infinities -------------------------------------------------------------------------------


def kind(x: np.ndarray) -> np.ndarray:
    """-1 and 1 for infinities, 2 for NaN, 0 for numbers."""
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0))


# Where a sign is not specified, or NumPy gives NaN for what annex G does not require.
UNSPECIFIED = {ops.sinh: "real", ops.sin: "imag"}


@each_function
def test_infinite_arguments_give_the_results_of_annex_g(primitive: Primitive):
    z = grid(np.array([0.0, 1.0, -1.0, np.inf, -np.inf]), dtypes.c128)
    z = z[np.isinf(z)]

    expected, actual = reference(primitive, z), by_parts(primitive, z)

    for part in ("real", "imag"):
        p, q = getattr(expected, part), getattr(actual, part)
        has_sign = part != UNSPECIFIED.get(primitive)
        wrong = kind(p) != kind(q) if has_sign else np.abs(kind(p)) != np.abs(kind(q))
        with np.errstate(all="ignore"):
            wrong |= (kind(p) == 0) & ~(np.abs(p - q) <= 1e-12)
        assert not wrong.any(), table(z[wrong], expected[wrong], actual[wrong])


def test_the_absolute_value_is_infinite_if_one_part_is_infinite_and_the_other_nan():
    z = np.array([complex(np.nan, np.inf), complex(-np.inf, np.nan), complex(np.nan, 0)])

    assert by_parts(ops.abs, z).tolist()[:2] == [np.inf, np.inf]
    assert np.isnan(by_parts(ops.abs, z)[2])


@in_both
def test_lengths_and_roots_do_not_overflow_at_the_end_of_the_range(dtype: np.dtype):
    most = float(np.finfo(dtype).max) / 2
    z = np.array([most + 1j * most, -most + 1j * most, complex(0, np.finfo(dtype).tiny)], dtype)

    for primitive in (ops.abs, ops.sqrt, ops.log, ops.sign):
        close(meaning(primitive, z), by_parts(primitive, z), ulps=ULPS, why=WHY)


def test_an_exponential_can_be_finite_even_if_that_of_the_real_part_is_infinite():
    z = np.array([89 + 0.8j, 88.9 + 1.5j], np.complex64)

    close(meaning(ops.exp, z), by_parts(ops.exp, z), ulps=ULPS, why=WHY)
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(z.real)).all()


def test_division_scales_by_the_larger_part():
    a, b = np.array([1e30 + 1e30j], np.complex64), np.array([1e30 + 1e25j], np.complex64)

    close(reference(ops.div, a, b), by_parts(ops.div, a, b), ulps=ULPS, why=WHY)


def _zero_by(value: Any) -> Any:
    z = np.array([value], np.complex64)
    return by_parts(ops.div, z, np.zeros(1, np.complex64))[0]


def test_division_by_zero_gives_infinity_and_zero_by_zero_gives_nan():
    assert np.isinf(_zero_by(1 + 2j).real)
    assert np.isnan(_zero_by(0))
