"""Eager transforms of many short rows, of real columns, and how routines are called.

The oracle is NumPy's transform in f64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune.backends.cpu import meanings, routine_calls
from rune.backends.cpu.fft import groups, odd_rows, real_columns
from rune.backends.cpu.fft.lengths import few_radices
from rune.backends.cpu.vector_routines import shape_of
from rune.core.types import ArrayType
from rune.ops.fourier import fft
from tests.backends.cpu.test_transforms import ERRORS, distance, drawn, exact
from tests.backends.cpu.test_transforms_of_arrays import REAL, by_dtype, real

# As many rows as a vector has lanes, one more, and a prime number; every radix first and last.
SHORT = [(16, 64), (17, 64), (31, 60), (67, 16), (16, 90), (2, 19, 48), (37, 128), (131, 50), (23, 400), (17, 518)]
# The first radix the smallest, and the largest; lines of one stage, of several, of a convolution.
ODD = [(17, 21), (37, 45), (64, 33), (31, 1155), (16, 289), (19, 3 * 257)]


def step_of(shape: tuple[int, ...], kind: str, axis: int, dtype: Any) -> Any:
    """The function that gives the routine of such an array in eager calls, or NumPy's function."""
    options = {"kind": kind, "axes": (axis,), "odd": False}
    run = meanings.meaning_of(fft, (ArrayType(shape, np.dtype(dtype)),), options)
    arguments = getattr(run, "args", ())
    return arguments[0].func if arguments else run


@by_dtype
@pytest.mark.parametrize("name", ["fft", "ifft"])
@pytest.mark.parametrize("shape", SHORT, ids=str)
def test_many_short_rows_are_transformed_as_numpy_transforms_them(shape: tuple[int, ...], name: str, dtype: type):
    x = drawn(shape, dtype)

    result = getattr(rnp.fft, name)(exact(x))

    assert distance(result, getattr(np.fft, name)(x.astype(np.complex128))) < 2 * ERRORS[dtype]


@by_dtype
@pytest.mark.parametrize("shape", [*SHORT, *ODD], ids=str)
def test_many_short_real_rows_have_a_spectrum_and_are_recovered_from_it(shape: tuple[int, ...], dtype: type):
    x = real(shape, dtype)

    spectrum = rnp.fft.rfft(exact(x))
    back = rnp.fft.irfft(spectrum, n=shape[-1])

    assert distance(spectrum, np.fft.rfft(x.astype(np.float64))) < 2 * ERRORS[dtype]
    assert distance(back, x) < 2 * ERRORS[dtype]


@by_dtype
@pytest.mark.parametrize("shape", ODD, ids=str)
def test_rows_of_odd_length_ignore_the_imaginary_part_of_frequency_0(shape: tuple[int, ...], dtype: type):
    spectrum = drawn((shape[0], shape[1] // 2 + 1), dtype)
    call = odd_rows.call_for("inverse", *shape, np.dtype(REAL[dtype]))
    back, other = np.empty((2, *shape), REAL[dtype])

    call(spectrum, back)
    spectrum[:, 0] += complex(0, np.nan)
    call(spectrum, other)

    assert distance(back, np.fft.irfft(np.nan_to_num(spectrum.astype(np.complex128)), shape[1])) < 2 * ERRORS[dtype]
    assert np.array_equal(back, other)


@pytest.mark.parametrize("name", ["fft", "rfft"])
def test_short_rows_are_taken_in_groups_if_they_fill_the_lanes(name: str):
    dtype = np.complex64 if name == "fft" else np.float32
    lanes = shape_of(np.dtype(np.float32)).lanes

    assert step_of((lanes, 80), name, 1, dtype) is groups.call_for
    assert name == "fft" or step_of((lanes, 75), name, 1, dtype) is odd_rows.call_for
    assert step_of((lanes - 1, 80), name, 1, dtype) is not groups.call_for


def test_a_row_has_the_same_bits_in_any_group():
    x = drawn((83, 96))

    together, fewer = (np.asarray(rnp.fft.fft(exact(part))) for part in (x, x[13:60]))

    assert np.array_equal(together[13:60], fewer)


@pytest.mark.parametrize(("name", "n"), [("fft", 80), ("rfft", 80), ("rfft", 75), ("fft", 83)])
def test_a_nan_affects_only_its_own_row_of_a_group(name: str, n: int):
    x = drawn((33, n)) if name == "fft" else real((33, n), np.complex64)
    x[20, n - 3] = np.nan

    spectrum = np.asarray(getattr(rnp.fft, name)(exact(x)))

    assert np.isnan(spectrum[20]).all()
    assert np.isfinite(np.delete(spectrum, 20, 0)).all()


@by_dtype
@pytest.mark.parametrize("shape", [(33, 65), (65, 33)], ids=str)
def test_imaginary_parts_at_the_ends_of_short_spectra_are_ignored_even_nan(shape: tuple[int, ...], dtype: type):
    axis = shape.index(65)
    spectrum = drawn(shape, dtype)
    ends = (slice(None), [0, -1]) if axis else [0, -1]
    other = spectrum.copy()
    other[ends] += complex(0, np.nan)

    first, second = (np.asarray(rnp.fft.irfft(exact(x), axis=axis)) for x in (other, spectrum))

    assert np.array_equal(first, second)


@by_dtype
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((64, 16), 0), ((2000, 17), 0), ((3, 90, 23), 1), ((5, 2, 131), 1), ((2, 96, 4, 11), 1)],
    ids=str,
)
def test_real_columns_have_a_spectrum_and_are_recovered_from_it(shape: tuple[int, ...], axis: int, dtype: type):
    x = real(shape, dtype)

    spectrum = rnp.fft.rfft(exact(x), axis=axis)
    back = rnp.fft.irfft(spectrum, axis=axis)

    assert distance(spectrum, np.fft.rfft(x.astype(np.float64), axis=axis)) < 2 * ERRORS[dtype]
    assert distance(back, x) < 2 * ERRORS[dtype]


def test_real_columns_of_even_length_go_by_the_routine():
    shape = (96, 32)

    assert step_of(shape, "rfft", 0, np.float32) is real_columns.call_for
    assert step_of((95, 32), "rfft", 0, np.float32) is not real_columns.call_for


@pytest.mark.parametrize("kind", ["fft", "rfft"])
def test_large_arrays_of_rows_agree_with_numpy(kind: str):
    x = drawn((300, 1000)) if kind == "fft" else real((300, 1000), np.complex64)

    assert (
        distance(
            getattr(rnp.fft, kind)(exact(x)),
            getattr(np.fft, kind)(x.astype(np.complex128).real if kind == "rfft" else x.astype(np.complex128)),
        )
        < 6e-7
    )


@pytest.mark.parametrize("n", [2, 3, 4, 8, 15, 16, 32, 48, 64, 128, 256, 360, 512, 1024, 4096])
def test_few_radices_multiply_to_the_length(n: int):
    assert np.prod(few_radices(n)) == n


def test_routines_are_called_by_addresses_where_the_layout_of_arrays_is_unknown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(routine_calls, "abi", lambda: None)
    x, result = drawn((17, 64)), np.empty((17, 64), np.complex64)

    call = groups.call_for.__wrapped__("complex", 17, 64, np.dtype(np.float32))
    call(x, result)

    assert distance(result, np.fft.fft(x.astype(np.complex128))) < 2 * ERRORS[np.complex64]
