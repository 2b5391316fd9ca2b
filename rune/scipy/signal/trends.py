"""Whole signals: detrended, as analytic signals, at other sampling rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import dtypes
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.numpy.arguments import floating, inexact, static_int, static_ints, static_size, value
from rune.numpy.creation import arange, zeros
from rune.numpy.fft import fft, ifft, irfft, rfft
from rune.numpy.joining import concatenate
from rune.numpy.logic import where
from rune.numpy.reductions import sum
from rune.numpy.shapes import moveaxis
from rune.ops import conventions as c
from rune.ops.complex_numbers import real_dtype
from rune.ops.family import wide
from rune.scipy.sequences import from_sequences
from rune.scipy.signal.window_shapes import Window, chosen_window
from rune.typing import ArrayLike, Nested


def detrend(data: Nested, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0) -> Array:
    """The signal without its mean ("constant"), or its best straight line ("linear").

    bp:     positions at which another line begins.
    Shapes: as data. Types: as data, complex included; bools and integers become f32.
    Errors: ArgumentError for an unknown type, or a position outside.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.detrend(rnp.array([1.0, 2.0, 4.0]), type="constant").round(3)
    Array([-1.333, -0.333,  1.667], f32[3], cpu:0)
    """
    x = inexact("detrend", value("detrend", *from_sequences(data)))
    dtype = type_of(x).dtype
    y = moveaxis(c.astype(x, wide(dtype)), axis, -1)
    if type in ("constant", "c"):
        residual = y - y.mean(axis=-1, keepdims=True)
    elif type in ("linear", "l"):
        residual = _without_lines(y, bp)
    else:
        raise ArgumentError(f"detrend: cannot use type={type!r} (linear or constant)")
    return c.astype(moveaxis(residual, -1, axis), dtype)


def _without_lines(y: Array, bp: int | Sequence[int]) -> Array:
    size = type_of(y).shape[-1]
    breaks = sorted({0, *static_ints("detrend", "a position", bp)})
    if any(not (0 <= at and at <= size) for at in breaks):
        raise ArgumentError(f"detrend: cannot break {type_of(y)} at {bp} (0 to {size})")
    ends = [*breaks[1:], size] if breaks[-1] != size else breaks[1:]
    pieces = [_without_line(y[..., a:b]) for a, b in zip(breaks, ends, strict=False)]
    return pieces[0] if len(pieces) == 1 else concatenate(pieces, axis=-1)


def _without_line(y: Array) -> Array:
    """y minus the least-squares line."""
    y_type = type_of(y)
    t = c.astype(arange(y_type.shape[-1]), real_dtype(type_of(y).dtype))
    t = t - t.mean()
    square = sum(t * t)
    slope = sum(y * t, axis=-1, keepdims=True) / where(square == 0, 1, square)
    return y - y.mean(axis=-1, keepdims=True) - slope * t


def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Array:
    """The analytic signal: the same real part, and no negative frequencies.

    N: the length of the transform, by default that of the axis.
    Shapes: as x, with N elements along the axis. Types: c64, or c128 for f64.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            for no elements; AxisError for an axis out of range.
    Source: one-sided spectra, Oppenheim & Schafer 3e, §12.4.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.hilbert(rnp.array([1.0, 0.0, -1.0, 0.0])).imag.round(3) + 0
    Array([ 0.,  1.,  0., -1.], f32[4], cpu:0)
    """
    y = moveaxis(floating("hilbert", value("hilbert", x)), axis, -1)
    n = type_of(y).shape[-1] if N is None else static_size("hilbert", "a length", N)
    spectrum = fft(y, n)
    k = arange(n)
    is_alone = (k == 0) | (2 * k == n)
    weight = where(is_alone, 1.0, where(2 * k < n, 2.0, 0.0))
    analytic = ifft(spectrum * c.astype(weight, real_dtype(type_of(spectrum).dtype)))
    return moveaxis(analytic, -1, axis)


def resample(
    x: ArrayLike,
    num: int,
    t: ArrayLike | None = None,
    axis: int = 0,
    window: Window | ArrayLike | None = None,
    domain: str = "time",
) -> Any:
    """The signal at `num` equally spaced points of the same period, by its Fourier series.

    t:      the positions of the samples; the result is then (y, the new positions).
    window: weights of the spectrum: a name, or an array of as many frequencies, 0 first.
    domain: "time", or "freq" if x is a spectrum.
    Shapes: as x, with num elements along the axis; t [N] -> [num].
    Types:  as x, complex included; bools, integers and halves become f32.
    Errors: ArgumentError for an unknown domain or a number below 1.
    Source: the Fourier transform cut or filled with zeros, Oppenheim & Schafer 3e, §8.4.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.resample(rnp.array([1.0, 0.0, -1.0, 0.0]), 8).round(3)[:3] + 0
    Array([1.   , 0.707, 0.   ], f32[3], cpu:0)
    """
    x = inexact("resample", value("resample", x))
    count = static_int("resample", "a number of samples", num)
    if domain not in ("time", "freq") or count < 1:
        raise ArgumentError(f"resample: cannot make {num} samples of domain={domain!r}")
    y = moveaxis(x, axis, -1)
    size = static_int("resample", "a number of samples", type_of(y).shape[-1])
    is_real = domain == "time" and type_of(y).dtype in dtypes.FLOATING
    spectrum = y if domain == "freq" else rfft(y) if is_real else fft(y)
    if window is not None:
        spectrum = spectrum * _spectral_weights(window, size, spectrum, is_real)
    spectrum = _refolded(spectrum, size, count, is_real)
    samples = (irfft(spectrum, count) if is_real else ifft(spectrum)) * (count / size)
    samples = moveaxis(samples, -1, axis)
    if t is None:
        return samples
    times = floating("resample", value("resample", t))
    return samples, arange(count) * (times[1] - times[0]) * (size / count) + times[0]


def _spectral_weights(window: Window | ArrayLike, size: int, spectrum: Array, is_real: bool) -> Array:
    """The weight of each frequency; for a real signal, the mean of those of k and -k."""
    if isinstance(window, str | tuple | int | float):
        weights: Any = np.fft.ifftshift(chosen_window(window, size))
        weights = as_array(weights, real_dtype(type_of(spectrum).dtype))
    else:
        weights = value("resample", window)
    if not is_real:
        return weights
    mirror_image = concatenate([weights[:1], weights[:0:-1]])
    return ((weights + mirror_image) / 2)[: type_of(spectrum).shape[-1]]


def _refolded(spectrum: Array, size: int, count: int, is_real: bool) -> Array:
    """The spectrum of `size` frequencies cut, or padded with zeros, to one of `count`."""
    least = min(size, count)
    half = least // 2 + 1 if is_real else (least + 1) // 2
    positive = spectrum[..., :half]
    middle = 1 if least % 2 == 0 else 0  # the frequency that equals its own negative
    if is_real:
        if middle and size != count:
            factor = 2.0 if count < size else 0.5
            positive = concatenate([positive[..., :-1], positive[..., -1:] * factor], axis=-1)
        missing = count // 2 + 1 - half
        return concatenate([positive, _zeros(spectrum, missing)], axis=-1)
    negative = spectrum[..., size - (least - half - middle) :]
    if not middle:
        return concatenate([positive, _zeros(spectrum, count - least), negative], axis=-1)
    top, bottom = spectrum[..., half : half + 1], spectrum[..., size - half : size - half + 1]
    if count < size:
        return concatenate([positive, top + bottom, negative], axis=-1)
    if count == size:
        return spectrum
    gap = _zeros(spectrum, count - least - 1)
    return concatenate([positive, top / 2, gap, top / 2, negative], axis=-1)


def _zeros(like: Array, count: int) -> Array:
    like_type = type_of(like)
    return zeros((*like_type.shape[:-1], count), like_type.dtype)
