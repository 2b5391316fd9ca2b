"""Functions of several operations on arrays so large that an eager call is one kernel."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import counts
from rune.numpy.composites import LARGE
from tests.support.close import close, near, same

HARD = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.0, 1e-45, -1e-45, 1e-38, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32
)
WHY = "a function of NumPy may err by 4 ulps"


def values(size: int, seed: int) -> np.ndarray:
    """Hard values against each other, then normals of all sizes."""
    rng = np.random.default_rng(seed)
    numbers = (rng.standard_normal(size) * 10.0 ** rng.integers(-8, 8, size)).astype(np.float32)
    hard = np.repeat(HARD, len(HARD)) if seed else np.tile(HARD, len(HARD))
    numbers[: len(hard)] = hard
    return numbers


def sampled(x: np.ndarray) -> np.ndarray:
    """Hard values, the last few, and some between."""
    return np.concatenate([x[:300], x[300:-40:331], x[-40:]])


PAIRS = ["hypot", "fmax", "fmin", "logaddexp", "logaddexp2"]
SINGLE = ["spacing", "signbit", "nan_to_num", "i0"]


@pytest.mark.parametrize("size", [LARGE - 1, LARGE, LARGE + 13])
@pytest.mark.parametrize("name", PAIRS)
def test_two_large_operands_give_the_results_of_numpy(name, size):
    x, y = values(size, 0), values(size, 1)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)

    result = np.asarray(getattr(rnp, name)(rnp.asarray(x), rnp.asarray(y)))

    if name.startswith("log"):
        bulk = np.abs(expected) > 1e-3  # where terms cancel NumPy's own error is larger
        expected, result = expected[bulk], result[bulk]
    close(sampled(expected), sampled(result), ulps=4, why=WHY)


@pytest.mark.parametrize("size", [LARGE - 1, LARGE, LARGE + 13])
@pytest.mark.parametrize("name", SINGLE)
def test_one_large_operand_gives_the_results_of_numpy(name, size):
    x = values(size, 0)
    x = np.clip(x, -80, 80) if name == "i0" else x
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)

    result = np.asarray(getattr(rnp, name)(rnp.asarray(x)))

    if name == "i0":
        near(sampled(expected), sampled(result), relative=2e-6, why="NumPy computes in f64")
    else:
        same(sampled(expected.astype(result.dtype)), sampled(result))


def test_parts_of_large_arrays_are_exact():
    x = values(LARGE + 1, 0)

    mantissa, exponent = rnp.frexp(rnp.asarray(x))

    finite = np.isfinite(x)
    expected = np.frexp(x[finite])
    assert (np.asarray(mantissa)[finite] == expected[0]).all()
    assert (np.asarray(exponent)[finite] == expected[1]).all()


def test_powers_of_two_times_a_large_array_are_exact():
    x, n = values(LARGE + 3, 0), (np.arange(LARGE + 3) % 400 - 200).astype(np.int32)
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, n)

    result = np.asarray(rnp.ldexp(rnp.asarray(x), rnp.asarray(n)))

    normal = np.abs(expected) >= 2.0**-126  # three factors may round a denormal number twice
    assert (np.isnan(expected) == np.isnan(result)).all()
    assert (expected[normal] == result[normal]).all()


def test_a_large_sinc_is_0_at_whole_numbers_and_1_at_0():
    x = rnp.asarray((np.arange(LARGE) - 1000).astype(np.float32))

    result = np.asarray(rnp.sinc(x))

    assert result[1000] == 1
    assert (np.delete(result, 1000) == 0).all()


def test_a_large_array_and_a_number_are_one_kernel_too():
    x = values(LARGE, 0)

    result = np.asarray(rnp.hypot(rnp.asarray(x), 4.0))

    close(sampled(np.hypot(x, np.float32(4))), sampled(result), ulps=4, why=WHY)


@pytest.mark.parametrize("size", [LARGE - 1, LARGE])
def test_bits_are_packed_in_order_for_any_size(size):
    bits = np.random.default_rng(0).integers(0, 2, size).astype(bool)

    assert (np.asarray(rnp.packbits(rnp.asarray(bits))) == np.packbits(bits)).all()


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32])
def test_bits_of_large_arrays_are_packed_along_any_axis(dtype, axis, order):
    numbers = np.random.default_rng(1).integers(0, 3, (515, LARGE // 511)).astype(dtype)
    x = rnp.asarray(numbers, dtype=dtype)

    results = [rnp.packbits(v, axis=axis, bitorder=order) for v in (x, x.T, x[:, ::-1])]

    expected = [np.packbits(v, axis=axis, bitorder=order) for v in (numbers, numbers.T, numbers[:, ::-1])]
    assert all(np.array_equal(np.asarray(x), y) for x, y in zip(results, expected, strict=True))


def test_an_axis_argument_is_not_taken_for_an_operand():
    bits = np.random.default_rng(1).integers(0, 2, (512, LARGE // 512)).astype(bool)
    x = np.random.default_rng(2).standard_normal((512, LARGE // 512)).astype(np.float32)

    assert (np.asarray(rnp.packbits(rnp.asarray(bits), 0)) == np.packbits(bits, 0)).all()
    near(np.std(x, 1), np.asarray(rnp.std(rnp.asarray(x), 1)), relative=1e-5, why="sums in another order")


@pytest.mark.parametrize("name", ["var", "std"])
def test_spreads_of_large_arrays(name):
    x = np.random.default_rng(3).standard_normal(LARGE + 5).astype(np.float32) + 100

    result = np.asarray(getattr(rnp, name)(rnp.asarray(x)))

    exact = getattr(np, name)(x.astype(np.float64))
    near(np.float32(exact), result, relative=1e-5, why="a sum of 262,149 squares in f32")


def test_quotients_and_remainders_of_large_arrays():
    x, y = np.arange(LARGE, dtype=np.int32) - LARGE // 2, np.arange(LARGE, dtype=np.int32) % 7 - 3
    y = np.where(y == 0, 5, y).astype(np.int32)

    quotient, remainder = rnp.divmod(rnp.asarray(x), rnp.asarray(y))

    assert (np.asarray(quotient) == x // y).all()
    assert (np.asarray(remainder) == x % y).all()


def test_a_large_call_runs_one_program_and_a_small_one_none():
    large, small = (rnp.asarray(np.ones(n, np.float32)) for n in (LARGE, LARGE - 1))
    rnp.hypot(large, large)

    with counts.counting() as of_large:
        rnp.hypot(large, large)
    with counts.counting() as of_small:
        rnp.hypot(small, small)

    assert (of_large.runs, of_large.compiles) == (1, 0)
    assert of_small.runs == 0


def test_sizes_after_the_third_compile_nothing():
    def call(size: int) -> None:
        x = rnp.asarray(np.ones(size, np.float32))
        rnp.spacing(x)

    for size in (100, 201, 302):
        call(LARGE + size)
    with counts.counting() as more:
        call(LARGE + 407)
        call(LARGE + 513)

    assert more.compiles == 0


def test_a_large_call_under_transformations_equals_single_operations():
    x = rnp.asarray(np.linspace(1, 2, LARGE, dtype=np.float32))

    slope = np.asarray(rune.grad(lambda x: rnp.sum(rnp.hypot(x, x)))(x))
    lanes = np.asarray(rune.vmap(lambda x: rnp.hypot(x, x))(rnp.reshape(x, (4, -1))))

    near(np.full(LARGE, 2**0.5, np.float32), slope, relative=1e-6, why="the slope of x sqrt(2)")
    close(np.hypot(x, x).reshape(4, -1)[:, ::97], lanes[:, ::97], ulps=4, why=WHY)


def test_watched_calls_name_the_operation_that_makes_an_infinity():
    x, n = rnp.asarray(np.full(LARGE, 2.0, np.float32)), rnp.asarray(np.full(LARGE, 200, np.int32))

    with rune.configure(check_infs=True), pytest.raises(rune.errors.NaNError, match="mul"):
        rnp.ldexp(x, n)


@pytest.mark.parametrize("size", [LARGE - 1, LARGE + 13])
@pytest.mark.parametrize("name", ["clip", "gradient", "isin"])
def test_bounds_slopes_and_members_of_large_arrays_are_exact(name, size):
    x = values(size, 0)
    others = {"clip": (-0.5, 2), "gradient": (), "isin": (HARD[:11],)}[name]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, *others)

    result = getattr(rnp, name)(rnp.asarray(x), *(rnp.asarray(a) if name == "isin" else a for a in others))

    same(sampled(expected), sampled(np.asarray(result)))


@pytest.mark.parametrize("name", ["clip", "gradient", "isin"])
def test_a_large_eager_call_of_bounds_slopes_and_members_is_one_program(name):
    x = rnp.asarray(values(LARGE + 29, 1))
    others = {"clip": (-0.5, 2.0), "gradient": (), "isin": (rnp.asarray(HARD[:5]),)}[name]
    getattr(rnp, name)(x, *others)

    with counts.counting() as second:
        getattr(rnp, name)(x, *others)

    assert (second.runs, second.compiles) == (1, 0)
