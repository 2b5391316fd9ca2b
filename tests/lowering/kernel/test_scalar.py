"""The meaning of scalar operations, especially where C or NumPy leave a choice.

Integers wrap and never trap; conversions saturate; narrow floats round once; the exact fma.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rune import dtypes
from rune.lowering.kernel.scalar import SCALAR_MEANING, convert
from rune.lowering.scalar.table import OPERATIONS, result_dtype
from tests.support.close import close, same

INTEGERS = sorted(dtypes.INTEGER, key=dtypes.short)
FLOATS = sorted(dtypes.FLOATING, key=dtypes.short)
I32 = st.integers(-(2**31), 2**31 - 1)


def test_every_operation_has_a_meaning_and_a_signature():
    assert SCALAR_MEANING.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - {"bitcast", "select"}))
def test_the_result_has_the_dtype_of_the_signature(name):
    for dtype in OPERATIONS[name].dtypes:
        args = [np.array([1, 0, 1]).astype(dtype)] * OPERATIONS[name].arity

        assert SCALAR_MEANING[name](*args).dtype == result_dtype(name, dtype), dtype


@pytest.mark.parametrize("dtype", INTEGERS, ids=dtypes.short)
def test_division_by_zero_gives_all_bits_set_and_the_dividend_as_remainder(dtype):
    x, zero = np.array([5, 0, 1]).astype(dtype), np.zeros(3, dtype)

    assert (SCALAR_MEANING["div"](x, zero) == np.array(-1).astype(dtype)).all()
    assert (SCALAR_MEANING["rem"](x, zero) == x).all()


@given(I32, I32.filter(bool))
def test_division_truncates_and_the_remainder_takes_the_dividends_sign(a, b):
    wide = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    x, y = np.array([a], np.int32), np.array([b], np.int32)

    quotient, remainder = SCALAR_MEANING["div"](x, y), SCALAR_MEANING["rem"](x, y)

    same(np.array([wide]).astype(np.int32), quotient)
    same(np.array([a - wide * b]).astype(np.int32), remainder)


@given(I32, st.integers(-70, 70))
def test_shifts_beyond_the_width_give_zero_or_the_sign(a, n):
    x, amount = np.array([a], np.int32), np.array([n], np.int32)
    inside = 0 <= n < 32

    left_shift, right_shift = SCALAR_MEANING["shl"](x, amount), SCALAR_MEANING["shr"](x, amount)

    same(np.array([(a << n) if inside else 0]).astype(np.int64).astype(np.int32), left_shift)
    same(np.array([a >> n if inside else (-1 if a < 0 else 0)]).astype(np.int32), right_shift)


def test_integer_powers_wrap_and_negative_exponents_give_the_integer_part():
    base = np.array([2, 3, 1, -1, -1, 0, 7], np.int32)
    exponent = np.array([31, 21, -5, -3, -4, -1, -1], np.int32)

    powers = SCALAR_MEANING["pow"](base, exponent)

    same(np.array([-(2**31), 1870418611, 1, -1, 1, 0, 0], np.int32), powers)


def test_int4_counts_and_wraps_in_four_bits():
    x = np.array([-8, 7, -1, 0]).astype(dtypes.i4)

    assert SCALAR_MEANING["popcount"](x).tolist() == [1, 3, 4, 0]
    assert SCALAR_MEANING["clz"](x).tolist() == [0, 1, 0, 4]
    assert SCALAR_MEANING["neg"](x).tolist() == [-8, -7, 1, 0]


@pytest.mark.parametrize("target", INTEGERS, ids=dtypes.short)
def test_float_to_integer_saturates_and_nan_gives_zero(target):
    width = 4 if target in (dtypes.i4, dtypes.u4) else 8 * target.itemsize
    has_sign = target in dtypes.SIGNED
    high = 2 ** (width - has_sign) - 1
    low = -high - 1 if has_sign else 0

    integers = convert(np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, 0.5]), target)

    assert [int(v) for v in integers] == [0, high, low, high, low, 2, 0]


def test_max_and_min_propagate_nan():
    x, nan = np.array([1.0, np.nan], np.float32), np.array([np.nan, 1.0], np.float32)

    assert np.isnan(SCALAR_MEANING["max"](x, nan)).all()
    assert np.isnan(SCALAR_MEANING["min"](x, nan)).all()


@pytest.mark.parametrize("name", ["add", "exp", "tanh", "div", "logistic"])
@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=dtypes.short)
def test_narrow_floats_are_computed_in_f32_and_rounded_once(name, dtype):
    args = [np.linspace(-3, 3, 61).astype(dtype)] * OPERATIONS[name].arity

    wide = SCALAR_MEANING[name](*(a.astype(np.float32) for a in args))

    same(wide.astype(dtype), SCALAR_MEANING[name](*args))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_fma_rounds_once(values):
    a, b, c = (np.array([v], np.float32) for v in values)
    exact = Fraction(values[0]) * Fraction(values[1]) + Fraction(values[2])

    value = SCALAR_MEANING["fma"](a, b, c)[0]

    if math.isfinite(value) and exact:
        below, above = (np.nextafter(value, np.float32(end)) for end in (-np.inf, np.inf))
        distance = abs(Fraction(float(value)) - exact)
        assert all(distance <= abs(Fraction(float(other)) - exact) for other in (below, above) if math.isfinite(other))


def test_erf_inv_undoes_erf_to_the_last_digits_of_both_tails():
    x = np.linspace(-5.5, 5.5, 45)

    inverse = SCALAR_MEANING["erf_inv"](SCALAR_MEANING["erf"](x[np.abs(x) < 2.5]))

    close(x[np.abs(x) < 2.5], inverse, ulps=400, why="erf is flat: its own ulp is many of x")
    assert SCALAR_MEANING["erf_inv"](np.array([-1.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert np.isnan(SCALAR_MEANING["erf_inv"](np.array([1.5])))


def test_erf_inv_keeps_its_digits_up_to_the_last_number_below_one():
    distances = 2.0 ** -np.arange(1, 54)

    inverse = SCALAR_MEANING["erf_inv"](1 - distances)

    close(special.erfcinv(distances), inverse, ulps=4, why="Halley steps against an erfc of 1 ulp")
    close(-special.erfcinv(distances), SCALAR_MEANING["erf_inv"](distances - 1), ulps=4, why="odd")


def test_sign_and_logistic_keep_their_edges():
    x = np.array([-0.0, 0.0, np.nan, -200.0, 200.0], np.float32)

    assert SCALAR_MEANING["sign"](x).tolist()[:2] == [0.0, 0.0]
    assert np.isnan(SCALAR_MEANING["sign"](x)[2])
    assert SCALAR_MEANING["logistic"](np.float32(-100.0)) > 0
    assert SCALAR_MEANING["logistic"](x)[4] == 1.0


def test_nothing_warns_and_nothing_raises():
    x = np.array([0.0, -1.0, np.inf, np.nan, 1e300])

    for name in OPERATIONS:
        if dtypes.f64 in OPERATIONS[name].dtypes and name not in ("bitcast", "select"):
            SCALAR_MEANING[name](*[x] * OPERATIONS[name].arity)
