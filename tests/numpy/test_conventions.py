"""Conventions that are JAX's and not NumPy's, and derivatives where there is none.

Reading out of bounds, weak constants, running sums of small integers, f16 means; then corners and
ties, points where a formula divides by zero, and second derivatives at the seams.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.errors import ArgumentError
from rune.scipy import special
from tests.support.arrays import array
from tests.support.close import near, same

# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "fill_value"), [("f4", np.nan), ("i4", -(2**31)), ("u1", 255), ("?", True)])
def test_take_out_of_bounds_reads_a_fill_value(dtype: str, fill_value: Any):
    x = np.zeros(5, dtype)

    elements = rnp.take(array(x), rnp.array([-6, 5, -5, 4]))

    same(np.array([fill_value, fill_value, 0, 0], dtype), elements)


def test_take_can_clip_wrap_or_fill():
    x = rnp.arange(5)
    at = rnp.array([-1, -6, 9])

    assert rnp.take(x, at, mode="clip").tolist() == [0, 0, 4]
    assert rnp.take(x, at, mode="wrap").tolist() == [4, 4, 4]
    assert rnp.take(x, at, fill_value=7).tolist() == [4, 7, 7]


def test_the_gradient_of_an_element_out_of_bounds_is_zero():
    gradient = rune.grad(lambda x: rnp.take(x, rnp.array([1, 9]), fill_value=0.0).sum())(rnp.ones(3))

    assert gradient.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("initial", [1, 1.0, rnp.asarray(1.0)], ids=["whole", "real", "weak array"])
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("name", ["max", "min", "sum", "prod"])
def test_an_initial_value_makes_no_total_weak(name: str, rows: int, initial: Any):
    for dtype in ("f32", "i32"):
        total = getattr(rnp, name)(rnp.ones((rows, 3), dtype), axis=0, initial=initial)

        assert (total.dtype, total.weak_type) == (dtypes.as_dtype(dtype), False)


def test_python_scalars_make_weak_constants_and_arrays_strong_constants():
    assert rnp.array(1.0).weak_type
    assert rnp.full(2, 1.0).weak_type
    assert not rnp.array([1.0]).weak_type
    assert not rnp.full(2, 1.0, "f32").weak_type
    assert not rnp.zeros(2).weak_type


def test_an_explicit_64_bit_dtype_is_honoured_and_others_arrive_as_32_bit():
    assert rnp.array(np.arange(3)).dtype == rnp.int32
    assert rnp.array(np.ones(3)).dtype == rnp.float32
    assert rnp.array([1], dtype="i64").dtype == np.int64
    assert rnp.float64(1).dtype == rnp.linspace(rnp.float64(0), 1.0, 3).dtype == np.float64
    assert rnp.sin(rnp.array([1], dtype="i64")).dtype == np.float64


def test_the_mean_of_large_f16_does_not_overflow_on_the_way():
    x = np.full(1000, 100, np.float16)

    assert float(rnp.mean(array(x))) == 100.0
    assert float(rnp.var(array(x))) == 0.0


def test_a_list_is_not_an_array_but_becomes_one():
    with pytest.raises(TypeError, match="cannot take list as an array"):
        rnp.sum([1, 2])  # type: ignore[arg-type]
    assert rnp.array([[1, 2], [3, 4]]).shape == (2, 2)


def test_a_list_of_traced_values_makes_a_traced_array():
    gradient = rune.grad(lambda x: rnp.array([[x, 2.0], [3.0, x * x]]).sum())(3.0)

    assert float(gradient) == 7.0


def test_traced_values_are_arrays_too():
    flags = []

    rune.jit(lambda x: flags.append(isinstance(x, rnp.ndarray)) or x)(rnp.ones(2))

    assert flags == [True]
    assert isinstance(rnp.ones(2), rnp.ndarray)


def test_constants_inside_a_trace_are_not_captured():
    program = rune.make_program(lambda x: x + rnp.ones((100, 100)) + rnp.arange(100.0))(1.0)

    assert program.constants == ()


def test_an_array_has_the_methods_of_the_functions():
    x = rnp.array([[1.0, 5.0], [3.0, 7.0]])

    for name in ("sum prod mean var std max min ptp any all argmax argmin cumsum cumprod").split():
        same(getattr(rnp, name)(x, axis=1), getattr(x, name)(axis=1))
    same(rnp.clip(x, 2.0, 6.0), x.clip(2.0, 6.0))
    same(rnp.swapaxes(x, 0, 1), x.swapaxes(0, 1))
    same(rnp.round(x, 1), x.round(1))


# --- derivatives at corners -------------------------------------------------------------------


def slopes(function: Any, *at: float) -> list[float]:
    """The partial derivatives at a point, in f64."""
    args = [array(np.float64(x)) for x in at]
    return [float(d) for d in rune.grad(function, tuple(range(len(at))))(*args)]


def second(function: Any, at: float) -> float:
    """The second derivative at a point, in f64."""
    return float(rune.grad(rune.grad(function))(array(np.float64(at))))


@pytest.mark.parametrize(
    ("call", "at", "expected"),
    [
        (rnp.abs, (0.0,), [1.0]),
        (rnp.fabs, (0.0,), [1.0]),
        (rnp.sign, (0.0,), [0.0]),
        (rnp.floor, (1.0,), [0.0]),
        (rnp.maximum, (2.0, 2.0), [0.5, 0.5]),
        (rnp.minimum, (2.0, 2.0), [0.5, 0.5]),
        (rnp.fmax, (1.0, np.nan), [1.0, 0.0]),
        (lambda x: rnp.clip(x, 0.0, 1.0), (0.0,), [0.5]),
        (lambda x: rnp.clip(x, 0.0, 1.0), (1.0,), [0.5]),
        (rnp.logaddexp, (1.0, 1.0), [0.5, 0.5]),
        (rnp.logaddexp2, (1.0, 1.0), [0.5, 0.5]),
        (rnp.logaddexp, (1.0, -np.inf), [1.0, 0.0]),
        (rnp.hypot, (0.0, 0.0), [0.5, 0.5]),
        (rnp.sinc, (0.0,), [0.0]),
        (rnp.remainder, (4.0, 2.0), [1.0, -2.0]),
        (rnp.remainder, (-5.0, 2.0), [1.0, 3.0]),
        (rnp.fmod, (-5.0, 2.0), [1.0, 2.0]),
        (rnp.floor_divide, (5.0, 2.0), [0.0, 0.0]),
        (rnp.copysign, (-2.0, 1.0), [-1.0, 0.0]),
        (rnp.heaviside, (0.0, 0.5), [0.0, 1.0]),
        (rnp.nan_to_num, (np.nan,), [0.0]),
        (lambda x: rnp.power(x, 2), (0.0,), [0.0]),
        (lambda x: rnp.power(x, 0), (0.0,), [0.0]),
        (lambda y: rnp.power(0.0, y), (2.0,), [0.0]),
        (rnp.sqrt, (0.0,), [math.inf]),
        (lambda x: rnp.power(x, 0.0), (0.0,), [math.nan]),
        (lambda x: rnp.where(x > 0, rnp.sqrt(x), 0.0), (0.0,), [math.nan]),
        (lambda x: rnp.std(x * rnp.ones(3)), (1.0,), [math.nan]),
    ],
)
def test_the_derivative_at_a_corner_is_jaxs(call: Any, at: tuple, expected: list[float]):
    gradients = slopes(lambda *xs: rnp.sum(call(*xs)), *at)

    near(np.array(expected), np.array(gradients), relative=1e-12, why="exact up to rounding")


@pytest.mark.parametrize("name", ["max", "min", "amax", "nanmax"])
def test_ties_of_an_extremum_share_the_derivative(name: str):
    gradient = rune.grad(getattr(rnp, name))(rnp.array([5.0, 5.0, 5.0, 5.0]))

    assert gradient.tolist() == [0.25] * 4


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_an_extremum_that_ignores_nan_takes_initial_and_where(name: str):
    x = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]], np.float32)
    where = np.array([[True, True, False], [True, False, True]])
    ours, numpys = getattr(rnp, name), getattr(np, name)

    for options in ({"initial": 2.0}, {"where": where, "initial": -5.0}, {"initial": np.nan}):
        keywords = {k: rnp.array(v) if k == "where" else v for k, v in options.items()}
        same(numpys(x, 1, **options), ours(rnp.array(x), 1, **keywords))
    same(numpys(np.zeros((2, 0), np.float32), 1, initial=3.0), ours(rnp.zeros((2, 0)), 1, initial=3))
    same(np.int32(5 if name == "nanmax" else 0), ours(rnp.arange(3), initial=5))
    with pytest.raises(ArgumentError, match=f"{name}: cannot use where= without initial="):
        ours(rnp.array(x), where=rnp.array(where))


def test_products_with_zeros_have_the_right_derivative():
    assert rune.grad(rnp.prod)(rnp.array([2.0, 0.0, 3.0])).tolist() == [0.0, 6.0, 0.0]
    assert rune.grad(rnp.prod)(rnp.array([0.0, 0.0, 3.0])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("at", [(math.nan, 2.0), (9.0, math.nan), (math.nan, 0.0)])
@pytest.mark.parametrize("function", [rnp.hypot, special.beta, special.betaln])
def test_a_derivative_where_an_argument_is_nan_is_nan(function: Any, at: tuple[float, float]):
    assert np.isnan(rune.grad(function, (0, 1))(*at)).all()


@pytest.mark.parametrize("at", [1e-310, 1e-300, 1e-9, 0.0025, 0.0035, 0.0036, 0.01])
def test_the_derivative_of_sinc_keeps_its_digits_near_zero(at: float):
    x = math.pi * at
    series = x * math.pi * (-1 / 3 + x**2 / 30 - x**4 / 840 + x**6 / 45360)

    near(series, rune.grad(rnp.sinc)(array(np.float64(at))), relative=1e-11, why="cancellation")


def test_the_derivative_of_sinc_far_out_is_that_at_even_numbers():
    # All floats there are even: cos(πx) / x is 1 / x.
    for x in np.array([1e15, 1e19, 1e30], np.float32):
        assert float(rune.grad(rnp.sinc)(x)) == pytest.approx(1 / float(x), rel=1e-6)


def test_second_derivatives_hold_at_the_seams():
    assert second(rnp.sinc, 0.0) == pytest.approx(-(math.pi**2) / 3, rel=1e-12)
    assert second(lambda x: rnp.logaddexp(x, 0.0), 0.0) == pytest.approx(0.25, rel=1e-12)
    assert second(lambda x: rnp.power(x, 3), 0.0) == 0.0


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
def test_where_sends_the_derivative_only_to_the_chosen_side(dtype: np.dtype):
    x, y = array(np.array([1, -1]).astype(dtype)), array(np.array([5, 6]).astype(dtype))

    dx, dy = rune.grad(lambda x, y: rnp.where(x > 0, x, y).sum(), (0, 1))(x, y)

    assert (dx.tolist(), dy.tolist()) == ([1.0, 0.0], [0.0, 1.0])


@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16, dtypes.f32], ids=dtypes.short)
def test_numbers_too_large_for_a_dtype_are_infinite_without_a_warning(dtype: np.dtype):
    x = array(np.zeros(1).astype(dtype))

    assert (x - 1e300).tolist() == rnp.full(1, -1e300, dtype).tolist() == [-math.inf]
    assert rnp.array([1e300], dtype=dtype).tolist() == (x + np.array([1e300])).tolist()


def test_host_floats_become_integers_as_arrays_do():
    assert rnp.array([math.nan, 3e10, -2.7], dtype=int).tolist() == [0, 2**31 - 1, -2]


def test_a_shift_and_degrees_of_freedom_may_be_traced():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    roll = rune.jit(lambda x, k: rnp.roll(x, (k, 1), axis=(0, 1)))
    spread = rune.jit(lambda x, less: rnp.std(x, ddof=less))

    same(np.roll(x, (2, 1), (0, 1)), roll(x, 2))
    near(np.std(x, ddof=1), spread(x, 1), relative=1e-6, why="f32")


def test_a_mask_has_the_requested_number_of_positions():
    rows, columns = rune.jit(lambda: rnp.mask_indices(3, rnp.triu, 1, size=4))()

    assert rows.tolist() == [0, 0, 1, 0]
    assert columns.tolist() == [1, 2, 2, 0]


def test_parts_of_an_array_are_combined_with_64_bits_as_the_default():
    with rune.enable_x64():
        assert rnp.add.reduceat(rnp.arange(6), rnp.array([0, 2])).tolist() == [1, 14]


# Start, stop, step and dtype; the answers of jax 0.10.2.
@pytest.mark.parametrize(
    ("bounds", "dtype", "answer"),
    [
        ((0, 5, 0.5), int, [0] * 10),
        ((-3, 3, 0.5), int, [-3] * 12),
        ((5, 0, -0.5), int, [5] * 10),
        ((-0.5, 3, 1.0), int, [0, 1, 2, 3]),
        ((1.5, 4.6, 1.5), np.int8, [1, 2, 3]),
        ((0, 3, 0.5), np.uint8, [0] * 6),
        ((0.5, 4, 2), int, [0, 2]),
        ((2.5,), int, [0, 1, 2]),
    ],
)
def test_a_range_of_integers_counts_from_a_whole_start_by_whole_steps(bounds: Any, dtype: Any, answer: list[int]):
    for wrap in (lambda f: f, rune.jit):
        assert wrap(lambda: rnp.arange(*bounds, dtype=dtype))().tolist() == answer
