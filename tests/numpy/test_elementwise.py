"""Elementwise names over shapes and dtypes: empty, one element, broadcast, strided, half, integer.

NumPy is the oracle if it has the dtype; half types are right if the f64 result rounds to them,
within the ulps of the composition.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from tests.support.arrays import array
from tests.support.close import close, near, same

SHAPES = [((0,), ()), ((1,), (4,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((3, 0), (1, 1)), ((), ())]
REAL = "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp copysign"
INTEGER = "add subtract multiply floor_divide remainder fmod maximum minimum bitwise_and bitwise_xor"
COMPARE = "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
UNARY = "sin cos tan exp expm1 sqrt cbrt tanh arctan floor ceil trunc rint square abs sign reciprocal"


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Nonzero numbers of a dtype, of both signs where it has them."""
    rng = np.random.default_rng(seed)
    has_sign = np.dtype(dtype) not in dtypes.UNSIGNED
    integers = rng.integers(1, 9, shape) * (rng.choice([-1, 1], shape) if has_sign else 1)
    half = 0.5 if np.dtype(dtype) in dtypes.FLOATING else 0
    return (np.asarray(integers) + half).astype(dtype)


@pytest.mark.parametrize("name", f"{REAL} {COMPARE}".split())
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes_broadcast_as_in_numpy(name: str, shapes: tuple):
    x, y = (numbers(s, np.float32, k) for k, s in enumerate(shapes))

    expected, actual = getattr(np, name)(x, y), getattr(rnp, name)(array(x), array(y))

    near(expected, actual, relative=1e-6, why="one or two roundings")


@pytest.mark.parametrize("name", UNARY.split())
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 3)], ids=str)
def test_one_operand_keeps_its_shape(name: str, shape: tuple):
    x = np.abs(numbers(shape, np.float32))

    near(getattr(np, name)(x), getattr(rnp, name)(array(x)), relative=1e-6, why="one rounding")


@pytest.mark.parametrize("name", INTEGER.split())
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers_agree_with_numpy_bit_for_bit(name: str, dtype: str):
    x, y = numbers((40,), dtype, 0), numbers((40,), dtype, 1)

    same(getattr(np, name)(x, y), getattr(rnp, name)(array(x), array(y)))


@pytest.mark.parametrize("dtype", ["i1", "i4", "u1", "u4"])
def test_integers_wrap_around(dtype: str):
    top = np.array([np.iinfo(dtype).max], dtype)

    same(top + top, rnp.add(array(top), array(top)))


@pytest.mark.parametrize("name", UNARY.split())
@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=dtypes.short)
def test_half_types_round_once(name: str, dtype: np.dtype):
    x = np.abs(numbers((50,), np.float64)).astype(dtype)

    expected = getattr(np, name)(x.astype(np.float64)).astype(np.float32).astype(dtype)

    close(expected, getattr(rnp, name)(array(x)), ulps=1, why="f32 inside, then one rounding")


@pytest.mark.parametrize("name", "add multiply divide maximum power arctan2 hypot".split())
def test_strided_numpy_data_is_read_in_its_own_order(name: str):
    base = np.abs(numbers((6, 8), np.float32))
    x, y = base[::2, ::-1], base.T[:3, 1:2].T[..., :1]

    near(getattr(np, name)(x, y), getattr(rnp, name)(x, y), relative=2e-6, why="f32 functions")


@pytest.mark.parametrize("name", ["add", "subtract", "less"])
@pytest.mark.parametrize("other", [2, 0.5])
def test_a_python_number_may_be_either_operand(name: str, other: float):
    x = numbers((5,), np.float32)

    same(getattr(np, name)(x, np.float32(other)), getattr(rnp, name)(array(x), other))
    same(getattr(np, name)(np.float32(other), x), getattr(rnp, name)(other, array(x)))


# --- special values ---------------------------------------------------------------------------

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-40], np.float32)
PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL)), np.float32).T


@pytest.mark.parametrize(
    "name",
    "add multiply divide floor_divide maximum minimum fmax fmin remainder fmod arctan2 hypot "
    "copysign nextafter heaviside power equal less logical_and".split(),
)
def test_special_values_of_two_operands_agree_with_numpy(name: str):
    x, y = PAIRS
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)

    near(expected, getattr(rnp, name)(array(x), array(y)), relative=1e-6, why="f32 functions")


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_array_of_exponents_one_half_is_not_a_square_root(device: str):
    # NumPy's power gives NaN and -0.0 here, C's result where every element has its exponent.
    x, expected = array([-np.inf, -0.0, 0.25]), np.array([np.inf, 0.0, 0.5], np.float32)

    same(expected, rnp.power(x, 0.5))
    same(expected, rune.jit(rnp.power, device=device)(x, 0.5))


def test_infinities_add_in_the_logarithm():
    x, y = np.array([np.inf, -np.inf, np.inf, -np.inf]), np.array([np.inf, -np.inf, -np.inf, 0.0])

    same(np.logaddexp(x, y), rnp.logaddexp(array(x), array(y)))


@pytest.mark.parametrize("name", "isnan isinf isfinite signbit sqrt log sign abs floor rint exp tanh modf".split())
def test_special_values_of_one_operand_agree_with_numpy(name: str):
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(SPECIAL)

    near(expected, getattr(rnp, name)(array(SPECIAL)), relative=1e-6, why="f32 functions")


def test_zero_remainders_take_the_sign_of_the_divisor():
    x, y = np.array([4.0, 4.0, -4.0, -4.0]), np.array([2.0, -2.0, 2.0, -2.0])

    same(np.signbit(np.remainder(x, y)), rnp.signbit(rnp.remainder(array(x), array(y))))


def test_floor_divide_is_exact_where_the_quotient_would_round():
    x = np.linspace(-50, 50, 1001).astype(np.float32)
    y = np.full_like(x, 0.1)

    same(np.floor_divide(x, y), rnp.floor_divide(array(x), array(y)))


def test_an_integer_divided_by_zero_has_jaxs_quotient_and_no_remainder():
    x = array(np.array([7, -7, 0], np.int32))
    zeros = array(np.zeros(3, np.int32))

    for y in (0, zeros):
        same(np.array([-2, -2, -1], np.int32), rnp.floor_divide(x, y))
        same(np.zeros(3, np.int32), rnp.remainder(x, y))
        same(np.zeros(3, np.int32), rnp.fmod(x, y))


def test_an_integer_to_a_negative_power_is_refused_or_truncated():
    x = array(np.array([2, 1, -1, 0], np.int32))

    with pytest.raises(TypeError, match="integers have no negative powers"):
        rnp.power(x, -1)
    same(np.array([0, 1, -1, 0], np.int32), rnp.power(x, array(np.full(4, -3, np.int32))))


@pytest.mark.parametrize(("dtype", "most"), [("f4", 10), ("f8", 22)])
def test_the_decimal_logarithm_of_a_power_of_ten_is_a_whole_number(dtype: str, most: int):
    k = np.arange(-most, most + 1)

    same(k.astype(dtype), rnp.log10(array((10.0**k).astype(dtype))))
