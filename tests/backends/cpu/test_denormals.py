"""Denormal numbers on the CPU: numbers as in NumPy, or 0 as in XLA if the setting says so."""

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.lax import scan
from rune.transforms.compile import tiers

pytestmark = pytest.mark.usefixtures("wide")

TINY = np.float32(1e-40)
LONG = 1 << 20  # split between the cores


@pytest.fixture
def wide():
    """64-bit dtypes are honoured."""
    with rune.enable_x64():
        yield


def halves(x):
    return x * 0.5 + 0.0 * x


@pytest.mark.parametrize("size", [1, 3, 17, 131, LONG])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_program_keeps_denormal_numbers(dtype: str, size: int):
    x = np.full(size, np.finfo(dtype).smallest_normal, dtype)
    np.testing.assert_array_equal(rune.jit(halves)(x), x / 2)


@pytest.mark.parametrize("size", [1, 3, 17, 131, LONG])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_flushing_program_takes_denormal_results_for_zero(dtype: str, size: int):
    x = np.full(size, np.finfo(dtype).smallest_normal, dtype)
    with rune.configure(flush_denormals=True):
        np.testing.assert_array_equal(rune.jit(halves)(x), np.zeros(size, dtype))


def test_a_flushing_program_takes_denormal_operands_for_zero():
    x = np.full(5, TINY)
    with rune.configure(flush_denormals=True):
        np.testing.assert_array_equal(rune.jit(lambda x: x * 1e10)(x), np.zeros(5))


def test_normal_numbers_have_the_same_bits_in_both_modes():
    x = np.random.default_rng(0).standard_normal((65, 33)).astype(np.float32)

    def f(x):
        return rnp.tanh(x @ x.T) + rnp.exp(x).sum()

    with rune.configure(flush_denormals=True):
        flushed = rune.jit(f)(x)
    np.testing.assert_array_equal(rune.jit(f)(x), flushed)


def test_one_function_follows_the_setting_of_each_call():
    f, x = rune.jit(halves), np.full(3, np.finfo(np.float32).smallest_normal)
    results = [f(x)]
    with rune.configure(flush_denormals=True):
        results.append(f(x))
    results.append(f(x))
    np.testing.assert_array_equal(np.stack(results), [x / 2, np.zeros(3), x / 2])


def test_code_from_disk_follows_the_setting(tmp_path):
    x = np.full(7, np.finfo(np.float32).smallest_normal)
    with rune.configure(cache_dir=str(tmp_path)):
        rune.jit(halves)(x)
        with rune.configure(flush_denormals=True):
            np.testing.assert_array_equal(rune.jit(halves)(x), np.zeros(7))
        np.testing.assert_array_equal(rune.jit(halves)(x), x / 2)


def test_numpy_keeps_denormal_numbers_after_a_flushing_program():
    with rune.configure(flush_denormals=True):
        rune.jit(halves)(np.ones(LONG, np.float32))
    assert np.full(3, TINY).sum() > 0


def test_a_program_after_a_flushing_one_keeps_them_in_all_threads():
    x = np.full(LONG, np.finfo(np.float32).smallest_normal)
    with rune.configure(flush_denormals=True):
        rune.jit(halves)(x)
    np.testing.assert_array_equal(rune.jit(halves)(x), x / 2)


def test_a_python_function_in_a_flushing_program_keeps_them():
    def host(x):
        return np.asarray(x) * np.float32(0.5)

    x = np.full(3, np.finfo(np.float32).smallest_normal)
    with rune.configure(flush_denormals=True):
        result = rune.jit(lambda x: rune.pure_callback(host, rune.ShapeDtypeStruct((3,), "float32"), x))(x)
    np.testing.assert_array_equal(result, x / 2)


def test_a_flushing_program_flushes_again_after_a_python_function():
    x = np.full(3, np.finfo(np.float32).smallest_normal)

    def f(x):
        y = rune.pure_callback(lambda x: np.asarray(x), rune.ShapeDtypeStruct((3,), "float32"), x)
        return y * 0.5

    with rune.configure(flush_denormals=True):
        np.testing.assert_array_equal(rune.jit(f)(x), np.zeros(3))


def test_every_step_of_a_flushing_loop_flushes():
    def f(x):
        return scan(lambda c, _: (c * 0.5, c), x, None, length=200)[1]

    x = np.float32(1)
    expected = np.float32(0.5) ** np.arange(200, dtype=np.float64)
    with rune.configure(flush_denormals=True):
        result = rune.jit(f)(x)
    np.testing.assert_array_equal(result, np.where(expected < np.finfo(np.float32).smallest_normal, 0, expected))


def test_matrix_products_of_a_flushing_program_flush():
    x = np.full((64, 64), np.finfo(np.float32).smallest_normal)
    with rune.configure(flush_denormals=True):
        product = rune.jit(lambda x: x @ (rnp.eye(64, dtype=x.dtype) * 0.5))(x)
    np.testing.assert_array_equal(product, np.zeros((64, 64)))


SMALLEST = np.finfo(np.float32).smallest_normal
EAGER = {
    "cumsum": rnp.cumsum,
    "diff": lambda x: rnp.diff(x * 0.3),
    "hypot": lambda x: rnp.hypot(x * 0.3, x * 0.3),
    "mean": lambda x: rnp.mean(x * 0.3),
    "median": lambda x: rnp.median(x * 0.3),
    "product": lambda x: x * 0.5,
    "sinc": lambda x: rnp.sinc(x) * x * 0.5,
}


@pytest.mark.parametrize("size", [1, 7, 131, LONG + 1])
@pytest.mark.parametrize("name", EAGER)
def test_an_eager_function_keeps_denormal_numbers_however_often_it_is_called(name: str, size: int):
    x = rnp.asarray(SMALLEST * np.linspace(1, 1.5, size, dtype=np.float32))
    expected = np.asarray(EAGER[name](x))

    with rune.configure(flush_denormals=True):
        results = [np.asarray(EAGER[name](x)) for _ in range(2 if size > LONG else tiers.OFTEN + 2)]

    for result in results:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("size", [1, 15, 17, 130, 4099])
@pytest.mark.parametrize(("dtype", "low", "high"), [("f4", -104.5, -86.0), ("f8", -746.0, -707.0)])
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_exponentials_that_are_denormal_are_rounded_once(name: str, dtype: str, low: float, high: float, size: int):
    base = 1.0 if name == "exp" else np.log(2.0)
    x = (np.linspace(high, low, size) / base).astype(dtype)
    exact = np.exp(x.astype(np.longdouble)) if name == "exp" else np.exp2(x.astype(np.longdouble))
    unit = np.finfo(dtype).smallest_subnormal.astype(np.longdouble)

    actual = np.asarray(rune.jit(getattr(rnp, name))(x))

    assert np.all(np.abs(actual.astype(np.longdouble) - exact) <= unit + exact * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exponentials_of_what_is_far_below_are_0(dtype: str):
    x = np.array([-np.inf, -1e30, -1e9, -1e4, np.nan, 0.0, 1.0] * 5, dtype)

    actual = np.asarray(rune.jit(rnp.exp)(x))

    np.testing.assert_array_equal(actual[:5], np.array([0.0, 0.0, 0.0, 0.0, np.nan], dtype))
    np.testing.assert_allclose(actual, np.exp(x), rtol=4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_a_flushing_program_takes_denormal_exponentials_for_zero(name: str):
    x = np.array([-95.0 if name == "exp" else -137.0, 0.0] * 17, np.float32)
    with rune.configure(flush_denormals=True):
        actual = np.asarray(rune.jit(getattr(rnp, name))(x))

    np.testing.assert_array_equal(actual, np.array([0.0, 1.0] * 17, np.float32))


POINTS = [64, 65, 127, 257]  # of products with a vector in generated code, at and past whole vectors
EXPONENTS = {"float32": (-100, -126, -131, -145), "float64": (-900, -1022, -1030, -1070)}


def recurrent_step(w, v):
    """A product with a vector in one kernel, along rows of the matrix and down its columns."""
    return w @ v, v @ w


def a_matrix_and_a_vector(n: int, dtype: str):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, n)).astype(dtype), rng.standard_normal(n).astype(dtype)


@pytest.mark.parametrize("n", POINTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_with_a_tiny_vector_is_exact_to_the_last_place(dtype: str, n: int):
    w, v = a_matrix_and_a_vector(n, dtype)
    info = np.finfo(dtype)
    f = rune.jit(recurrent_step)
    for exponent in EXPONENTS[dtype]:
        # f64 scales its own oracle, whose products of normal numbers it then rounds once.
        tiny = np.ldexp(v, exponent)
        wide = np.ldexp(tiny.astype(np.float64), -exponent)
        for result, exact in zip(f(w, tiny), (w @ wide, wide @ w), strict=True):
            sums = np.abs(w).astype(np.float64).T @ np.abs(wide), np.abs(w).astype(np.float64) @ np.abs(wide)
            bound = n * info.eps * np.maximum(*sums) + 0.51 * np.ldexp(1.0, info.minexp - info.nmant - exponent)
            assert (np.abs(np.ldexp(np.asarray(result, np.float64), -exponent) - exact) <= bound).all(), exponent


# Rows and columns at and past the least number of uses of an element, and the longest copy.
EXTENTS = [(31, 66), (32, 66), (33, 66), (40, 4096), (40, 4097), (4097, 33), (1, 4096), (129, 1)]


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tiny_product_and_those_that_read_it_are_results_at_once(dtype: str, extents: tuple[int, int]):
    rng = np.random.default_rng(extents)
    info = np.finfo(dtype)
    exponent = info.minexp - 5
    w, wide = rng.standard_normal(extents).astype(dtype), rng.standard_normal(extents[1]).astype(dtype)
    v = np.ldexp(wide, exponent)
    exact = w.astype(np.float64) @ np.ldexp(v, -exponent).astype(np.float64)
    bound = extents[1] * info.eps * (np.abs(w) @ np.abs(wide)) + np.ldexp(1.0, info.minexp - info.nmant - exponent)

    def products(w, v):
        product = w @ v
        return product, product + product, v + v, rnp.abs(product).max()

    for function in (products, rune.jit(products)):
        product, twice, vector, largest = map(np.asarray, function(w, v))
        assert (np.abs(np.ldexp(product.astype(np.float64), -exponent) - exact) <= bound).all()
        np.testing.assert_array_equal(twice, product * 2)
        np.testing.assert_array_equal(vector, v * 2)
        assert largest == np.abs(product).max()


@pytest.mark.parametrize("n", POINTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_small_vector_has_the_bits_of_a_larger_one_times_a_power_of_two(dtype: str, n: int):
    w, v = a_matrix_and_a_vector(n, dtype)
    f = rune.jit(recurrent_step)
    shift = -(np.finfo(dtype).maxexp * 3 // 4 + 7)  # tiny, with room for every rounding
    for small, large in zip(f(w, np.ldexp(v, shift)), f(w, v), strict=True):
        np.testing.assert_array_equal(small, np.ldexp(np.asarray(large), shift))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinities_and_nan_meet_a_tiny_vector_as_any_other(dtype: str):
    w, v = a_matrix_and_a_vector(65, dtype)
    v = np.ldexp(v, np.finfo(dtype).minexp - 3)
    v[3] = 0
    w[:5] = np.array([np.inf, -np.inf, np.nan, 1, np.finfo(dtype).max])[:, None]
    w[3, ::2] = np.inf
    with np.errstate(all="ignore"):
        expected = w @ v, v @ w
    for result, exact in zip(rune.jit(recurrent_step)(w, v), expected, strict=True):
        result = np.asarray(result)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
        np.testing.assert_array_equal(result[np.isinf(exact)], exact[np.isinf(exact)])
        assert not np.isinf(result[np.isfinite(exact)]).any()


@pytest.mark.parametrize("n", [16, *POINTS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_flushing_program_takes_a_tiny_vector_for_zero(dtype: str, n: int):
    w, v = np.full((n, n), 1e10, dtype), np.full(n, np.finfo(dtype).smallest_normal / 4, dtype)
    with rune.configure(flush_denormals=True):
        for product in rune.jit(recurrent_step)(w, v):
            np.testing.assert_array_equal(product, np.zeros(n, dtype))


@pytest.mark.parametrize("shape", [(3, 64, 64), (100, 100, 100), (130, 600, 130)])
def test_a_flushing_product_does_not_depend_on_products_before_it(shape: tuple[int, int, int]):
    m, k, n = shape
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((m, k)).astype("f4"), rng.standard_normal((k, n)).astype("f4")
    a[1, 3] = a[m // 2] = b[2, 5] = TINY
    with rune.configure(flush_denormals=True):
        first = [np.asarray(rune.jit(lambda a, b: a @ b)(a, b)) for _ in range(3)][-1]
    rune.jit(lambda a, b: a @ b)(a, b)  # leaves the hint that tiles have special elements
    with rune.configure(flush_denormals=True):
        again = np.asarray(rune.jit(lambda a, b: a @ b)(a, b))

    np.testing.assert_array_equal(again, first)


def test_a_vector_with_a_nan_is_not_tiny():
    w, v = a_matrix_and_a_vector(65, "float32")
    v = np.full_like(v, TINY)
    v[7] = np.nan
    assert np.isnan(np.asarray(rune.jit(lambda w, v: w @ v)(w, v))).all()
