"""Fourier transforms: laws for every length, then errors, dtypes and compilation.

The tables (fourier_cases.py) compare each function with NumPy; tests/ops/test_library.py tries each
kind on every executor. This file has long transforms, which compiled programs of the CPU compute by
kernels, and the identities of transforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import rune
import rune.numpy as rnp
import rune.scipy
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.ops.fourier import GENERATED_FROM
from rune.ops.fourier.expansion import expand
from rune.ops.fourier.lengths import prime_factors, radices
from tests.support.close import near
from tests.support.sampling import one_in

ROUNDED = "rounding grows with the logarithm of the length"
LENGTHS = [*range(1, 50), 61, 64, 67, 97, 121, 128, 210, 243, 1000, 1024, 1009]
LONG = [1 << 16, 3**10 * 2, 65537, 257 * 256]


def drawn(*shape: int, dtype: type = np.complex64) -> np.ndarray:
    rng = np.random.default_rng(shape[-1])
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def distance(actual: object, expected: np.ndarray) -> float:
    """The relative error in the mean square."""
    return float(np.linalg.norm(np.asarray(actual) - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("n", LENGTHS)
def test_the_expansion_is_the_transform_for_every_kind_of_length(n: int):
    x = drawn(2, n)

    spectrum = expand(rnp.asarray(x), kind="fft", axes=(1,), odd=False)

    assert distance(spectrum, np.fft.fft(x.astype(np.complex128))) < 5e-7, ROUNDED


@pytest.mark.parametrize("n", LENGTHS)
def test_real_transforms_and_their_inverses_undo_each_other(n: int):
    x = np.real(drawn(n, dtype=np.complex128))

    spectrum = expand(rnp.asarray(x, "f64"), kind="rfft", axes=(0,), odd=False)
    back = expand(spectrum, kind="irfft", axes=(0,), odd=n % 2 == 1)

    near(np.fft.rfft(x), spectrum, relative=1e-12, absolute=1e-11, why=ROUNDED)
    near(x, back[:n], relative=1e-12, absolute=1e-12, why=ROUNDED)


@pytest.mark.parametrize("n", LONG)
def test_a_long_transform_in_a_compiled_program_is_as_accurate(n: int):
    x = drawn(n)

    spectrum = rune.jit(rnp.fft.fft)(rnp.asarray(x))

    assert n >= GENERATED_FROM
    assert distance(spectrum, np.fft.fft(x.astype(np.complex128))) < 5e-7, ROUNDED


def test_a_long_transform_of_doubles_is_accurate_to_doubles():
    x = drawn(GENERATED_FROM, dtype=np.complex128)

    spectrum = rune.jit(rnp.fft.fft)(rnp.asarray(x, "c128"))

    assert distance(spectrum, np.fft.fft(x)) < 1e-15


def test_a_long_transform_of_rows_and_columns_is_accurate():
    x = np.real(drawn(300, 400))

    spectrum = rune.jit(rnp.fft.rfft2)(rnp.asarray(x))

    assert distance(spectrum, np.fft.rfft2(x.astype(np.float64))) < 5e-7, ROUNDED


def test_the_number_of_equations_grows_with_the_logarithm_of_the_length():
    def equations(n: int) -> int:
        x = rnp.zeros(n, "c64")
        return len(rune.make_program(lambda x: expand(x, kind="fft", axes=(0,), odd=False))(x).equations)

    counts = [equations(1 << k) for k in (4, 8, 12, 16)]

    steps = np.diff(counts)
    assert len(set(steps[1:].tolist())) == 1, counts


def test_a_length_is_the_product_of_its_radices():
    for n in range(1, 2000):
        factors = radices(n)
        assert factors is None or np.prod(factors, dtype=int) == n
        assert (factors is None) == (max(prime_factors(n), default=1) > 64)


def test_the_power_is_that_of_the_signal():
    x = rnp.asarray(drawn(360))

    power = rnp.sum(rnp.abs(rnp.fft.fft(x, norm="ortho")) ** 2)

    near(rnp.sum(rnp.abs(x) ** 2), power, relative=1e-6, why=ROUNDED)


def test_a_product_of_spectra_is_a_circular_convolution():
    x, y = drawn(12), drawn(12)

    convolution = rnp.fft.ifft(rnp.fft.fft(rnp.asarray(x)) * rnp.fft.fft(rnp.asarray(y)))

    expected = [sum(x[j] * y[(k - j) % 12] for j in range(12)) for k in range(12)]
    assert distance(convolution, np.array(expected)) < 1e-6, ROUNDED


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        ("f16", "c64"),
        ("bf16", "c64"),
        ("f32", "c64"),
        ("f64", "c128"),
        ("i32", "c64"),
        ("bool", "c64"),
        ("c64", "c64"),
        ("c128", "c128"),
    ],
)
def test_a_transform_keeps_the_width_of_its_numbers(dtype: str, wide: str):
    assert rnp.fft.fft(rnp.ones(4, dtype)).dtype == rnp.dtype(wide)


def test_a_length_that_is_known_when_the_program_runs_is_transformed():
    program = rune.jit(lambda x: rnp.fft.ifft(rnp.fft.fft(x) * 2), dims={"n": (1, 64)}, in_dims=("n",))

    for n in (1, 5, 8):
        x = drawn(n)
        near(2 * x, program(rnp.asarray(x)), relative=1e-5, why=ROUNDED)
    assert program.cache_size() == 1


def test_a_symbolic_length_is_transformed_on_a_device_by_its_definition():
    program = rune.jit(rnp.fft.fft, dims={"n": (1, 64)}, in_dims=("n",), device="reference:0")

    for n in (1, 6, 11):
        x = drawn(n)
        assert distance(program(rnp.asarray(x)), np.fft.fft(x)) < 1e-6, ROUNDED


def test_no_elements_have_no_transform_of_real_numbers():
    with pytest.raises(ShapeError, match=r"rfft: cannot transform f32\[0\] \(axis 0: length 0\)"):
        rnp.fft.rfft(rnp.zeros(0))


def test_a_length_below_one_is_refused():
    with pytest.raises(ShapeError, match=r"rfft: cannot transform f32\[4\] \(axis 0: length -2\)"):
        rnp.fft.rfft(rnp.zeros(4), -2)


def test_complex_numbers_have_no_transform_of_real_numbers():
    with pytest.raises(DtypeError, match="rfft: cannot take c64"):
        rnp.fft.rfft(rnp.ones(4, "c64"))


def test_a_norm_is_one_of_three():
    with pytest.raises(ArgumentError, match="fft: cannot use norm='half'"):
        rnp.fft.fft(rnp.ones(4), norm="half")


def test_sizes_and_axes_are_as_many():
    with pytest.raises(ArgumentError, match="fftn: cannot use 2 sizes for 1 axes"):
        rnp.fft.fftn(rnp.ones((4, 4)), (2, 2), (0,))


# The functions of NumPy and SciPy, and the least length of their vector.
OF_ANY_SIZE: dict[str, tuple[Any, Any, int]] = {
    **{
        name: (getattr(rnp.fft, name), getattr(np.fft, name), 1)
        for name in ("fft", "ifft", "rfft", "ihfft", "fftshift", "ifftshift")
    },
    **{name: (getattr(rnp.fft, name), getattr(np.fft, name), 2) for name in ("irfft", "hfft")},
    **{
        f"{name} {type}": (
            lambda x, name=name, type=type: getattr(rune.scipy.fft, name)(x, type),
            lambda x, name=name, type=type: getattr(scipy.fft, name)(x, type),
            2 if type == 1 else 1,
        )
        for name in ("dct", "idct", "dst", "idst")
        for type in (1, 2, 3, 4)
    },
    "irfft of rfft": (
        lambda x: rnp.fft.irfft(rnp.fft.rfft(x), x.shape[0]),
        lambda x: np.fft.irfft(np.fft.rfft(x), x.shape[0]),
        1,
    ),
    "irfftn ortho": (
        lambda x: rnp.fft.irfftn(rnp.outer(x, x), (2, x.shape[0]), norm="ortho"),
        lambda x: np.fft.irfftn(np.outer(x, x), (2, x.shape[0]), (0, 1), "ortho"),
        2,
    ),
    "dctn": (
        lambda x: rune.scipy.fft.dctn(rnp.outer(x, x), norm="ortho"),
        lambda x: scipy.fft.dctn(np.outer(x, x), norm="ortho"),
        1,
    ),
    "fftfreq": (lambda x: rnp.fft.fftfreq(x.shape[0], 0.5), lambda x: np.fft.fftfreq(x.shape[0], 0.5), 1),
    "rfftfreq": (lambda x: rnp.fft.rfftfreq(x.shape[0]), lambda x: np.fft.rfftfreq(x.shape[0]), 1),
}


@pytest.mark.parametrize("name", one_in(2, [*OF_ANY_SIZE]))
def test_a_transform_compiled_once_is_that_of_every_size(name: str):
    ours, numpys, least = OF_ANY_SIZE[name]
    program = rune.jit(ours, dims={"n": (least, 64)}, in_dims=("n",))

    for n in (least, 4, 7):
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        expected = numpys(x.astype(np.float64))
        np.testing.assert_allclose(program(rnp.array(x)), expected, atol=3e-5, err_msg=str(n))
    assert program.cache_size() == 1


@pytest.mark.parametrize("name", ["rfft", "irfft of rfft", "idct 2", "dct 2", "dst 3"])
def test_the_gradient_of_a_transform_compiled_once_is_that_of_every_size(name: str):
    ours = OF_ANY_SIZE[name][0]

    def gradient(x: Any) -> Any:
        return rune.grad(lambda x: rnp.sum(rnp.abs(ours(x)) ** 2))(x)

    program = rune.jit(gradient, dims={"n": (1, 64)}, in_dims=("n",))

    for n in (1, 4, 7):
        x = rnp.array(np.random.default_rng(n).normal(size=n).astype(np.float32))
        np.testing.assert_allclose(program(x), gradient(x), rtol=3e-5, atol=3e-5)


# The shapes of jax 0.10.2, where NumPy has errors.
OF_NOTHING: dict[str, tuple[Any, tuple[int, ...], Any, tuple[int, ...]]] = {
    "fft": (rnp.fft.fft, (3, 0), np.complex64, (3, 0)),
    "ifft, ortho": (lambda x: rnp.fft.ifft(x, axis=0, norm="ortho"), (0, 5), np.complex64, (0, 5)),
    "irfft of one": (rnp.fft.irfft, (3, 1), np.float32, (3, 0)),
    "irfft of one, forward": (lambda x: rnp.fft.irfft(x, axis=0, norm="forward"), (1, 7), np.float32, (0, 7)),
    "irfft of none": (rnp.fft.irfft, (3, 0), np.float32, (3, 0)),
    "hfft of one": (rnp.fft.hfft, (1,), np.float32, (0,)),
    "fftn": (rnp.fft.fftn, (2, 0, 3), np.complex64, (2, 0, 3)),
    "rfftn": (rnp.fft.rfftn, (0, 5), np.complex64, (0, 3)),
    "rfftn, axes turned": (lambda x: rnp.fft.rfftn(x, axes=(1, 0)), (5, 0), np.complex64, (3, 0)),
    "irfftn": (rnp.fft.irfftn, (0, 5), np.float32, (0, 8)),
    "irfft2 of one": (rnp.fft.irfft2, (3, 1), np.float32, (3, 0)),
    "lax, complex": (lambda x: rune.lax.fft(x + 0j, "fft", (0,)), (3, 0), np.complex64, (3, 0)),
    "lax, real": (lambda x: rune.lax.fft(x, "rfft", (0, 5)), (0, 5), np.complex64, (0, 3)),
    "lax, to real numbers": (lambda x: rune.lax.fft(x + 0j, "irfft", (0,)), (3, 1), np.float32, (3, 0)),
}


@pytest.mark.parametrize("name", OF_NOTHING)
@pytest.mark.parametrize("way", [lambda f: f, rune.jit, rune.vmap], ids=["eager", "jit", "vmap"])
def test_a_transform_without_elements_has_the_shape_it_has_in_jax(way: Any, name: str):
    transform, shape, dtype, expected = OF_NOTHING[name]
    is_mapped = way is rune.vmap

    y = way(transform)(rnp.ones((2, *shape) if is_mapped else shape))

    assert (y.shape, y.dtype) == ((2, *expected) if is_mapped else expected, dtype)


@pytest.mark.parametrize("shape", [(3, 1), (3, 0)])
def test_the_slope_of_a_transform_without_elements_is_zero(shape: tuple[int, ...]):
    slope = rune.grad(lambda x: rnp.sum(rnp.fft.irfft(x)))(rnp.ones(shape))

    assert slope.tolist() == np.zeros(shape).tolist()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_transform_of_open_size_is_also_that_of_one_frequency(n: int):
    program = rune.jit(rnp.fft.irfft)

    with rune.configure(symbolic="auto"):
        lengths = [program(rnp.ones(k)).shape for k in (3, 4, n)]

    assert lengths == [(4,), (6,), (2 * (n - 1),)]


@pytest.mark.parametrize("kind", ["fft", "irfft", "rfft", "rfftn"])
def test_a_length_of_zero_that_is_asked_for_is_refused(kind: str):
    sizes = {"s": (0,)} if kind == "rfftn" else {"n": 0}

    with pytest.raises(ShapeError, match="length 0"):
        getattr(rnp.fft, kind)(rnp.ones(3), **sizes)
