"""Eager transforms of short rows, two in each vector, and of real rows twice as long.

The oracle is NumPy's transform in f64.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune.numpy as rnp
from rune.backends.cpu.fft import twins
from rune.backends.cpu.fft.lengths import twin_factors
from rune.backends.cpu.vector_routines import shape_of
from rune.ops.complex_numbers import PART, WHOLE
from tests.backends.cpu.test_transforms import ERRORS, distance, drawn, exact
from tests.backends.cpu.test_transforms_of_arrays import REAL, by_dtype, real, rows_of
from tests.backends.cpu.test_transforms_of_groups import step_of

COUNTS = [2, 3, 4, 7, 37]


def lengths(dtype: type) -> list[int]:
    """The complex lengths that have code on this processor."""
    lanes = shape_of(np.dtype(REAL[dtype])).lanes
    return [n for n in (16, 32, 64, 128, 256) if twin_factors(n, lanes)]


def transformed(x: np.ndarray, *, inverse: bool) -> np.ndarray:
    """The transform of rows, or its inverse."""
    call = twins.call_for("backward" if inverse else "complex", *x.shape, PART[x.dtype])
    return call(x, np.empty_like(x))


def spectrum_of(x: np.ndarray) -> np.ndarray:
    """The frequencies of real rows from 0 on."""
    count, half = x.shape[0], x.shape[1] // 2
    return twins.call_for("forward", count, half, x.dtype)(x, np.empty((count, half + 1), WHOLE[x.dtype]))


@by_dtype
@pytest.mark.parametrize("count", COUNTS)
def test_twins_have_numpys_spectrum_and_are_recovered_from_it(count: int, dtype: type):
    for n in lengths(dtype):
        x = drawn((count, n), dtype)

        spectrum = transformed(x, inverse=False)
        assert spectrum.dtype == dtype
        assert distance(exact(spectrum), np.fft.fft(x.astype(np.complex128))) < 2 * ERRORS[dtype]
        back = transformed(x, inverse=True)
        assert distance(exact(back), np.fft.ifft(x.astype(np.complex128))) < 2 * ERRORS[dtype]


@by_dtype
@pytest.mark.parametrize("count", COUNTS)
def test_real_twins_have_numpys_spectrum(count: int, dtype: type):
    for n in lengths(dtype):
        x = real((count, 2 * n), dtype)

        spectrum = spectrum_of(x)
        assert spectrum.dtype == dtype
        assert distance(exact(spectrum), np.fft.rfft(x.astype(np.float64))) < 2 * ERRORS[dtype]
        assert not np.imag(spectrum[:, [0, n]]).any()


@by_dtype
def test_single_frequencies_of_real_twins_are_right(dtype: type):
    for n in lengths(dtype):
        t = np.arange(2 * n)
        for k in (0, 1, n // 2, n - 1, n):
            x = np.cos(np.pi * (k * t % (2 * n)) / n).astype(REAL[dtype])

            spectrum = spectrum_of(np.stack([x, 0 * x, 2 * x]))
            expected = np.zeros(n + 1)
            expected[k] = 2 * n if k in (0, n) else n
            assert distance(exact(spectrum[0]), expected) < 2 * ERRORS[dtype]
            assert not spectrum[1].any()
            np.testing.assert_array_equal(spectrum[2], 2 * spectrum[0])


@by_dtype
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
def test_eager_rows_of_such_lengths_are_twins(name: str, dtype: type):
    for n in lengths(dtype):
        x = real((rows_of(n) + 1, 2 * n), dtype) if name == "rfft" else drawn((rows_of(n) + 1, n), dtype)

        assert step_of(x.shape, name, 1, x.dtype) is twins.call_for
        wide = x.astype(np.float64 if name == "rfft" else np.complex128)
        result = getattr(rnp.fft, name)(exact(x))
        assert distance(result, getattr(np.fft, name)(wide)) < 2 * ERRORS[dtype]


@by_dtype
def test_one_row_and_other_lengths_are_no_twins(dtype: type):
    for n in (16, 64, 256):
        assert not twins.is_routine(1, n, np.dtype(dtype))
        assert not twins.is_routine(4, n + 1, np.dtype(dtype))
        assert not twins.is_real_routine(4, 2 * n + 1, np.dtype(REAL[dtype]))


@by_dtype
def test_a_row_has_the_same_bits_beside_any_other(dtype: type):
    for n in lengths(dtype):
        x, y = drawn((83, n), dtype), real((83, 2 * n), dtype)

        for first, last in ((13, 60), (14, 61), (81, 83)):
            part = transformed(x[first:last], inverse=False)
            np.testing.assert_array_equal(part, transformed(x, inverse=False)[first:last])
            np.testing.assert_array_equal(spectrum_of(y[first:last]), spectrum_of(y)[first:last])


@by_dtype
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_affects_only_its_own_row(value: float, dtype: type):
    for n in lengths(dtype):
        x, y = drawn((33, n), dtype), real((33, 2 * n), dtype)
        x[20, 5] = y[20, 5] = x[32, n - 1] = y[32, 2 * n - 1] = value

        with np.errstate(all="ignore"):
            for spectrum in (transformed(x, inverse=False), spectrum_of(y)):
                bad = ~np.isfinite(spectrum)
                assert bad[[20, 32]].all()
                assert not np.delete(bad, [20, 32], axis=0).any()


@by_dtype
def test_the_smallest_and_the_largest_numbers_keep_their_accuracy(dtype: type):
    info = np.finfo(REAL[dtype])
    for n in lengths(dtype):
        x = drawn((5, n), dtype)
        x /= np.abs(x).max()
        for size in (float(info.tiny) * 2.0 ** (info.nmant // 2), float(info.max) / (4 * n)):
            scaled = (x * size).astype(dtype)

            spectrum = transformed(scaled, inverse=False).astype(np.complex128) / size
            assert distance(exact(spectrum), np.fft.fft(scaled.astype(np.complex128) / size)) < 4 * ERRORS[dtype]
