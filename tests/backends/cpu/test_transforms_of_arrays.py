"""Eager transforms of real rows, along other axes and along several: routines of all lengths.

The oracle is NumPy's transform in f64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune.backends.cpu import meanings
from rune.core.types import ArrayType
from rune.ops.fourier import fft
from tests.backends.cpu.test_transforms import ERRORS, distance, drawn, exact
from tests.support.sampling import each_value

pytestmark = each_value()

REAL = {np.complex64: np.float32, np.complex128: np.float64}
# Halves of each radix first and last, and of the fewest factors that a row may have.
EVEN = [512, 640, 2 * 509, 2 * 1031, 2160, 2500, 2 * 3**6, 2 * 5**4, 4096, 60_000, 131_072]
by_dtype = pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)


def is_by_routines(shape: Sequence[int], kind: str, axes: tuple[int, ...], dtype: Any, odd: bool = False) -> bool:
    """Whether an eager transform is not NumPy's."""
    run = meanings.meaning_of(
        fft, (ArrayType(tuple(shape), np.dtype(dtype)),), {"kind": kind, "axes": axes, "odd": odd}
    )
    return getattr(run, "func", run).__module__.startswith("rune.backends.cpu.fft")


def real(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return np.real(drawn(shape, dtype)).copy()


def rows_of(n: int) -> int:
    """How many rows of n numbers the routines take."""
    return -(-meanings.LARGE // n)


@by_dtype
@pytest.mark.parametrize("n", EVEN)
def test_real_rows_have_the_spectrum_that_numpy_finds(n: int, dtype: type):
    x = real((rows_of(n), n), dtype)

    spectrum = rnp.fft.rfft(exact(x))

    assert is_by_routines(x.shape, "rfft", (1,), x.dtype)
    assert spectrum.dtype == dtype
    assert distance(spectrum, np.fft.rfft(x.astype(np.float64))) < 2 * ERRORS[dtype]


@by_dtype
@pytest.mark.parametrize("n", EVEN)
def test_real_rows_are_recovered_from_their_spectrum(n: int, dtype: type):
    spectrum = drawn((rows_of(n), n // 2 + 1), dtype)

    x = rnp.fft.irfft(exact(spectrum))

    assert is_by_routines(spectrum.shape, "irfft", (1,), dtype)
    assert x.dtype == REAL[dtype]
    assert distance(x, np.fft.irfft(spectrum.astype(np.complex128))) < 2 * ERRORS[dtype]


@pytest.mark.parametrize(("kind", "dtype", "n"), [("rfft", "f4", 512), ("irfft", "c8", 257), ("fft", "c8", 512)])
def test_arrays_of_few_numbers_agree_with_numpy(kind: str, dtype: str, n: int):
    rows = rows_of(512)

    assert is_by_routines((rows, n), kind, (1,), dtype)
    assert not is_by_routines((rows - 1, n), kind, (1,), dtype)


@by_dtype
@pytest.mark.parametrize("n", [1023, 1025, 1031, 4096 + 1])
def test_rows_of_odd_and_prime_lengths_agree_with_numpy(n: int, dtype: type):
    x = real((3, n), dtype)

    spectrum = rnp.fft.rfft(exact(x))
    back = rnp.fft.irfft(spectrum, n=n)

    assert not is_by_routines(x.shape, "rfft", (1,), x.dtype)
    assert distance(spectrum, np.fft.rfft(x.astype(np.float64))) < 2 * ERRORS[dtype]
    assert distance(back, x) < 2 * ERRORS[dtype]


@by_dtype
def test_the_ends_of_the_spectrum_of_real_numbers_are_real(dtype: type):
    spectrum = np.asarray(rnp.fft.rfft(exact(real((5, 4096), dtype))))

    assert (np.imag(spectrum[:, [0, -1]]) == 0).all()


@by_dtype
def test_imaginary_parts_at_the_ends_of_a_spectrum_are_ignored_even_nan(dtype: type):
    spectrum = drawn((5, 1025), dtype)
    other = spectrum.copy()
    other[:, [0, -1]] += complex(0, np.nan)

    assert np.array_equal(np.asarray(rnp.fft.irfft(exact(other))), np.asarray(rnp.fft.irfft(exact(spectrum))))


def test_a_nan_affects_only_its_own_real_row():
    x = real((5, 2048), np.complex64)
    x[1, 77] = np.nan

    spectrum = np.asarray(rnp.fft.rfft(exact(x)))

    assert np.isnan(spectrum[1]).all()
    assert np.isfinite(spectrum[[0, 2, 3, 4]]).all()


# As many columns as a vector has lanes, one more, and a prime number; several arrays; primes.
COLUMNS = [
    (640, 16),
    (500, 17),
    (257, 17),
    (1021, 20),
    (7 * 64, 64),
    (64, 131),
    (3, 2, 90, 23),
    (4096, 16),
    (11, 5, 7 * 23),
    (3, 480, 3, 11),
]


@by_dtype
@pytest.mark.parametrize("name", ["fft", "ifft"])
@pytest.mark.parametrize("shape", COLUMNS, ids=str)
def test_columns_are_transformed_as_numpy_transforms_them(shape: tuple[int, ...], name: str, dtype: type):
    x, axis = drawn(shape, dtype), 1 if len(shape) == 3 or shape[-2] == 3 else len(shape) - 2

    result = getattr(rnp.fft, name)(exact(x), axis=axis)

    expected = getattr(np.fft, name)(x.astype(np.complex128), axis=axis)
    assert is_by_routines(shape, name, (axis,), dtype)
    assert distance(result, expected) < 2 * ERRORS[dtype]


def test_each_column_has_the_bits_that_it_has_among_others():
    x = drawn((2, 400, 50))

    together, fewer = (np.asarray(rnp.fft.fft(exact(part), axis=1)) for part in (x, x[1:, :, 17:40]))

    assert np.array_equal(together[1:, :, 17:40], fewer)


@pytest.mark.parametrize(("shape", "axis"), [((2000, 7), 0), ((8192, 16), 0), ((1, 16_384), 0)])
def test_transforms_of_other_shapes_agree_with_numpy(shape: tuple[int, ...], axis: int):
    x = drawn(shape)

    assert not is_by_routines(shape, "fft", (axis,), np.complex64)
    assert distance(rnp.fft.fft(exact(x), axis=axis), np.fft.fft(x.astype(np.complex128), axis=axis)) < 6e-7


@by_dtype
@pytest.mark.parametrize("name", ["fft2", "ifft2", "fftn", "ifftn"])
def test_several_axes_go_one_after_the_other(name: str, dtype: type):
    x = drawn((6, 20, 256), dtype)

    result = getattr(rnp.fft, name)(exact(x))

    assert is_by_routines(x.shape, name.strip("2n"), (0, 1, 2), dtype)
    assert distance(result, getattr(np.fft, name)(x.astype(np.complex128))) < 2 * ERRORS[dtype]


@by_dtype
@pytest.mark.parametrize("axes", [(0, 1), (1, 0, 2), (0, 2)])
def test_real_transforms_halve_only_the_last_axis(axes: tuple[int, ...], dtype: type):
    shape = (4, 30, 600) if axes[-1] == 2 else (30, 600, 4)
    x = real(shape, dtype)

    spectrum = rnp.fft.rfftn(exact(x), axes=axes)
    back = rnp.fft.irfftn(spectrum, axes=axes)

    assert distance(spectrum, np.fft.rfftn(x.astype(np.float64), axes=axes)) < 2 * ERRORS[dtype]
    assert distance(back, x) < 3 * ERRORS[dtype]


@pytest.mark.parametrize(
    "view", [lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x.T], ids=["rows", "back", "turned"]
)
def test_arrays_that_are_not_in_c_order_are_copied_first(view: Any):
    x = view(real((640, 512), np.complex64))

    assert distance(rnp.fft.rfft2(exact(x)), np.fft.rfft2(x.astype(np.float64))) < 6e-7


@pytest.mark.parametrize("name", ["rfft2", "fft2", "irfft2"])
def test_the_operand_stays_unchanged(name: str):
    x = real((64, 512), np.complex64) if name == "rfft2" else drawn((64, 257))
    operand = exact(x)

    getattr(rnp.fft, name)(operand)

    assert np.array_equal(np.asarray(operand), x)
