"""Spectra of segments of a signal: short-time transforms, and mean powers over time.

All begin with `_pieces`: the signal is divided into overlapping segments (a view, not a copy); each
is detrended, weighted by a window, and transformed.

Source: mean periodograms, Welch 1967, IEEE Trans. Audio Electroacoustics 15(2); reconstruction by
least squares, Griffin & Lim 1984, IEEE Trans. ASSP 32(2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rune import dtypes
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, rank, static_int, value
from rune.numpy.arithmetic import abs
from rune.numpy.complex_numbers import angle
from rune.numpy.creation import arange, zeros
from rune.numpy.fft import fft, fftfreq, ifft, irfft, rfft, rfftfreq
from rune.numpy.logic import where
from rune.numpy.order_statistics import median
from rune.numpy.padding import pad
from rune.numpy.shapes import broadcast_to, moveaxis
from rune.numpy.signals import unwrap
from rune.ops import conventions as c
from rune.ops.complex_numbers import complex_dtype, real_dtype
from rune.ops.sliding import windows
from rune.scipy.signal.filtering import oddly_continued
from rune.scipy.signal.segments import Segments, cut_signal
from rune.scipy.signal.trends import detrend as without_trend
from rune.scipy.signal.window_shapes import Window
from rune.typing import ArrayLike

_BOUNDARIES = {"even": "reflect", "odd": "reflect", "constant": "edge", "zeros": "constant"}


def _signals(name: str, axis: int, *xs: ArrayLike) -> list[Array]:
    """Signals of one dtype along the last axis."""
    signals = c.same_dtype(name, *(inexact(name, value(name, x)) for x in xs))
    return [moveaxis(x, axis, -1) for x in signals]


def _pieces(x: Array, cut: Segments, detrend: bool | str, onesided: bool) -> Array:
    """The transforms of all segments. Shapes: [*B, N] -> [*B, segments, frequencies]."""
    axis = rank(x) - 1
    segments = windows(x, (axis,), (cut.size,), (cut.step,), (1,))
    if isinstance(detrend, str):
        segments = without_trend(segments, type=detrend)
    elif callable(detrend):
        segments = detrend(segments)
    return (rfft if onesided else fft)(segments * _weights(cut, x), cut.length)


def _weights(cut: Segments, x: Array) -> Array:
    """The window in the dtype of x's parts."""
    return as_array(cut.window, real_dtype(type_of(x).dtype))


def _length(name: str, x: Array) -> int:
    return static_int(name, "a number of samples", type_of(x).shape[-1])


def _is_onesided(x: Array, is_requested: bool) -> bool:
    return is_requested and type_of(x).dtype in dtypes.FLOATING


def _frequencies(cut: Segments, fs: float, onesided: bool, like: Array) -> Array:
    """The frequencies of a transform, in the dtype of the parts of `like`."""
    dtype = real_dtype(type_of(like).dtype)
    return (rfftfreq if onesided else fftfreq)(cut.length, 1 / fs, dtype=dtype)


def _times(cut: Segments, size: int, fs: float, like: Array) -> Array:
    """The middle of each segment, in seconds."""
    count = (size - cut.size) // cut.step + 1
    return (c.astype(arange(count) * cut.step, real_dtype(type_of(like).dtype)) + cut.size / 2) / fs


def _doubled(power: Array, cut: Segments) -> Array:
    """Powers, doubled for frequencies that stand for two."""
    k = arange(type_of(power).shape[-1])
    return power * where((k == 0) | (2 * k == cut.length), 1, 2)


# --- powers -------------------------------------------------------------------------------------


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: float = 1.0,
    window: Window | ArrayLike | Sequence[float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power of two signals at each frequency: the mean of conj(X) Y over segments.

    y:       None stands for x itself, whose power is real.
    nperseg, noverlap: samples of a segment (256 at most, by default), and of an overlap (half).
    average: "mean" or "median", which is corrected for its bias.
    Result:  frequencies, powers.
    Shapes:  x, y [..., N, ...] -> [F], [..., F, ...]; F is nfft // 2 + 1 if one-sided, nfft for
             complex signals, 0 for no samples.
    Types:   frequencies real in the dtype of x, powers c64, or c128 for f64.
    Errors:  ArgumentError for segments that do not fit together.
    Source: Welch 1967, IEEE Transactions on Audio and Electroacoustics 15(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> frequencies, power = signal.csd(rnp.ones(8), rnp.arange(8.0), nperseg=4)
    >>> power.shape
    (3,)
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return _cross_power("csd", x, y, *options)


def _cross_power(
    name: str,
    x: ArrayLike,
    y: ArrayLike | None,
    fs: float,
    window: Window | ArrayLike | Sequence[float],
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: bool | str,
    return_onesided: bool,
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Array, Array]:
    """`csd`, under the name of the function that was called."""
    p, q = _signals(name, axis, x, x if y is None else y)
    lengths = [_length(name, v) for v in (p, q)]
    if 0 in lengths:
        power = moveaxis(_no_spectra(p[..., :0] + q[..., :0]), -1, axis)
        return _no_frequencies(p), c.real(power) if y is None else power
    p, q = (_followed(v, max(lengths) - n) for v, n in zip((p, q), lengths, strict=True))
    cut = cut_signal(name, fs, window, nperseg, noverlap, nfft, max(lengths))
    onesided = _is_onesided(p, return_onesided)
    first = _pieces(p, cut, detrend, onesided)
    second = first if y is None or y is x else _pieces(q, cut, detrend, onesided)
    power = c.conj(first) * second * cut.scale(scaling, fs)
    power = _averaged(name, _doubled(power, cut) if onesided else power, average)
    power = c.real(power) if y is None else power
    return _frequencies(cut, fs, onesided, p), moveaxis(power, -1, axis)


def _no_frequencies(like: Array) -> Array:
    return zeros((0,), real_dtype(type_of(like).dtype))


def _no_spectra(no_samples: Array) -> Array:
    """The spectra of no samples, none, in their dtype."""
    return c.astype(no_samples, complex_dtype(type_of(no_samples).dtype))


def _followed(x: Array, zeros_behind: int) -> Array:
    return pad(x, [(0, 0)] * (rank(x) - 1) + [(0, zeros_behind)])


def _averaged(name: str, power: Array, average: str) -> Array:
    """The mean over segments."""
    if average == "mean":
        return power.mean(axis=-2)
    if average != "median":
        raise ArgumentError(f"{name}: cannot use average={average!r} (mean or median)")
    count = static_int(name, "a number of segments", type_of(power).shape[-2])
    # For squares of normal numbers, the median is smaller than the mean by this factor.
    odd = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (odd + 1) - 1 / odd))
    return c.by_parts(lambda v: median(v, axis=-2) / bias, power)


def welch(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike | Sequence[float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power of a signal at each frequency, a mean over segments. Arguments as `csd`.

    Shapes: as `csd`. Types: real: frequencies in the dtype of x, powers f32, or f64 for f64.
    Errors: ArgumentError if an argument is not an array or `nperseg` is not an integer; AxisError
            for an axis out of range.
    Source: Welch 1967, IEEE Transactions on Audio and Electroacoustics 15(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> frequencies, power = signal.welch(rnp.arange(16.0), nperseg=8)
    >>> frequencies
    Array([0.   , 0.125, 0.25 , 0.375, 0.5  ], f32[5], cpu:0)
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return _cross_power("welch", x, None, *options)


def periodogram(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike | Sequence[float] = "boxcar",
    nfft: int | None = None,
    detrend: bool | str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Array, Array]:
    """The power of a signal at each frequency, by one transform of the whole signal.

    Shapes: as `csd`, nfft N by default. Types: as `welch`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.
    Source: Welch 1967, IEEE Transactions on Audio and Electroacoustics 15(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.periodogram(rnp.array([1.0, -1.0, 1.0, -1.0]))[1].round(3) + 0
    Array([0., 0., 4.], f32[3], cpu:0)
    """
    signal = moveaxis(inexact("periodogram", value("periodogram", x)), axis, -1)
    signal = signal if nfft is None else signal[..., :nfft]
    size = _length("periodogram", signal)
    options = (fs, window, size, 0, nfft, detrend, return_onesided, scaling, -1, "mean")
    frequencies, power = _cross_power("periodogram", signal, None, *options)
    return frequencies, moveaxis(power, -1, axis)


def coherence(
    x: ArrayLike,
    y: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike | Sequence[float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str = "constant",
    axis: int = -1,
) -> tuple[Array, Array]:
    """The coherence of two signals, from 0 to 1: |Pxy|² / (Pxx Pyy).

    Shapes: as `csd`. Types: real: frequencies in the dtype of x, the others f32, or f64 for f64.
    Errors: ArgumentError if an argument is not an array or `nperseg` is not an integer; AxisError
            for an axis out of range.
    Source: Welch 1967, IEEE Transactions on Audio and Electroacoustics 15(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> x = rnp.arange(16.0) ** 2
    >>> signal.coherence(x, 2 * x, nperseg=4)[1].round(3)
    Array([1., 1., 1.], f32[3], cpu:0)
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, True, "density", axis, "mean")
    frequencies, xx = _cross_power("coherence", x, None, *options)
    (_, yy), (_, xy) = (_cross_power("coherence", *pair, *options) for pair in ((y, None), (x, y)))
    return frequencies, abs(xy) ** 2 / xx / yy


# --- over time ----------------------------------------------------------------------------------


def spectrogram(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike | Sequence[float] = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Array, Array, Array]:
    """The spectrum of each segment of a signal.

    mode:   "psd": powers;  "complex", "magnitude", "angle", "phase" (without jumps).
    Result: frequencies, times, and an array with the frequencies in place of the axis and the
            times behind all others.
    Shapes: x [..., N] -> [F], [T], [..., F, T], F as in `csd`.
    Types:  as `welch`; of mode "complex" c64, or c128 for f64.
    Errors: ArgumentError if an argument is not an array, `mode` is unknown or `nperseg` is not an
            integer; AxisError for an axis out of range.
    Source: Welch 1967, IEEE Transactions on Audio and Electroacoustics 15(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.spectrogram(rnp.arange(32.0), nperseg=8)[2].shape
    (5, 4)
    """
    (y,) = _signals("spectrogram", axis, x)
    size = _length("spectrogram", y)
    overlap = 0 if noverlap is None else noverlap
    cut = cut_signal("spectrogram", fs, window, nperseg, overlap, nfft, size)
    if noverlap is None:
        cut = replace(cut, step=cut.size - cut.size // 8)
    onesided = _is_onesided(y, return_onesided)
    spectra = _pieces(y, cut, detrend, onesided)
    output = _output(spectra, cut, scaling, fs, onesided, mode)
    place = axis if axis >= 0 else axis - 1
    output = moveaxis(c.swapaxes(output, -1, -2), -2, place)
    return _frequencies(cut, fs, onesided, y), _times(cut, size, fs, y), output


def _nothing_over_time(no_samples: Array, axis: int) -> tuple[Array, Array, Array]:
    """Frequencies, times and spectra of no samples."""
    spectra = _no_spectra(no_samples)[..., None, :]
    none = _no_frequencies(no_samples)
    return none, none, moveaxis(spectra[..., :0, :], -2, axis if axis >= 0 else axis - 1)


def _output(spectra: Array, cut: Segments, scaling: str, fs: float, onesided: bool, mode: str) -> Array:
    """The output for `mode`, from transforms [*B, segments, frequencies]."""
    scale = cut.scale(scaling, fs)
    if mode == "psd":
        power = c.real(c.conj(spectra) * spectra) * scale
        return _doubled(power, cut) if onesided else power
    if mode not in _MODES:
        names = ", ".join(("psd", *_MODES))
        raise ArgumentError(f"spectrogram: cannot use mode={mode!r} (one of {names})")
    return _MODES[mode](spectra * scale**0.5)


_MODES: dict[str, Callable[[Array], Array]] = {
    "complex": lambda x: x,
    "magnitude": abs,
    "angle": angle,
    "phase": lambda x: unwrap(angle(x), axis=-1),
}


def stft(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike | Sequence[float] = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform.

    boundary: how the signal is extended by half a segment, so that its ends are in the middle of
            one: "zeros", "even", "odd", "constant", or None.
    padded: whether zeros complete the last segment.
    Result: frequencies, times, and an array with the frequencies in place of the axis and the
            times as its last axis.
    Shapes: x [..., N] -> [F], [T], [..., F, T], F as in `csd`.
    Types:  frequencies and times real in the dtype of x, the transforms c64, or c128 for f64.
    Errors: ArgumentError if an argument is not an array or `nperseg` is not an integer; AxisError
            for an axis out of range.
    Source: Welch 1967, IEEE Transactions on Audio and Electroacoustics 15(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.stft(rnp.ones(16), nperseg=8)[2].shape
    (5, 5)
    """
    (y,) = _signals("stft", axis, x)
    if _length("stft", y) == 0:
        return _nothing_over_time(y, axis)
    cut = cut_signal("stft", fs, window, nperseg, noverlap, nfft, _length("stft", y))
    if boundary is not None:
        y = _continued(y, cut.size // 2, boundary)
    if padded:
        missing = -(_length("stft", y) - cut.size) % cut.step % cut.size
        y = _followed(y, missing)
    onesided = _is_onesided(y, return_onesided)
    scale = cut.scale("density" if scaling == "psd" else scaling, fs)
    spectra = _pieces(y, cut, detrend, onesided) * scale**0.5
    times = _times(cut, _length("stft", y), fs, y)
    times = times if boundary is None else times - cut.size / 2 / fs
    place = axis if axis >= 0 else axis - 1
    spectra = moveaxis(c.swapaxes(spectra, -1, -2), -2, place)
    return _frequencies(cut, fs, onesided, y), times, spectra


def _continued(x: Array, by: int, boundary: str) -> Array:
    """The signal extended by `by` samples at both ends."""
    if boundary not in _BOUNDARIES:
        names = ", ".join(_BOUNDARIES)
        raise ArgumentError(f"stft: cannot use boundary={boundary!r} (None or one of {names})")
    extension = pad(x, [(0, 0)] * (rank(x) - 1) + [(by, by)], mode=_BOUNDARIES[boundary])
    return oddly_continued(x, extension, by) if boundary == "odd" and by else extension


def istft(
    Zxx: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike | Sequence[float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Array, Array]:
    """The signal whose short-time transforms are nearest to the given ones, by least squares.

    Arguments are those of `stft`; boundary tells whether it extended the signal.
    Result: times, signal.
    Shapes: Zxx [..., F, T] -> [N], [..., N].
    Types:  real, or a complex signal if not one-sided: f32 and c64, or f64 and c128 for 64-bit
            dtypes.
    Errors: ArgumentError if an argument is not an array or `nperseg` is not an integer; ShapeError
            for rank 0.
    Source: Welch 1967, IEEE Transactions on Audio and Electroacoustics 15(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> x = rnp.arange(16.0)
    >>> signal.istft(signal.stft(x, nperseg=8)[2], nperseg=8)[1].round(3)[1:4]
    Array([1., 2., 3.], f32[3], cpu:0)
    """
    z = inexact("istft", value("istft", Zxx))
    if rank(z) < 2:
        raise ShapeError(f"istft: cannot invert {type_of(z)} (frequencies and times required)")
    places = c.normalised_axes("istft", (time_axis, freq_axis), type_of(z))
    z = moveaxis(z, places, (-2, -1))
    frequencies = _length("istft", z)
    full_length = 2 * (frequencies - 1) if input_onesided else frequencies
    length = full_length if nfft is None else nfft
    size = full_length if nperseg is None else nperseg
    if nfft is None and input_onesided and size == full_length + 1:
        length = size
    cut = cut_signal("istft", fs, window, size, noverlap, length, size)
    pieces = (irfft if input_onesided else ifft)(z, length)[..., : cut.size]
    weights = _weights(cut, pieces)
    scale = cut.scale("density" if scaling == "psd" else scaling, fs) ** -0.5
    total = _overlapped(pieces * weights, cut) * scale
    power = _overlapped(broadcast_to(weights**2, type_of(pieces).shape[-2:]), cut)
    signal = total / where(power > 1e-10, power, 1)
    edge = cut.size // 2 if boundary else 0
    signal = signal[..., edge : type_of(signal).shape[-1] - edge]
    times = c.astype(arange(type_of(signal).shape[-1]), real_dtype(type_of(signal).dtype)) / fs
    time, frequency = places
    return times, moveaxis(signal, -1, time - (frequency < time))


def _overlapped(pieces: Array, cut: Segments) -> Array:
    """The sum of segments at their positions in the signal. Shapes: [*B, S, P] -> [*B, (S-1)·step +
    P].
    """
    shape = type_of(pieces).shape
    size = (shape[-2] - 1) * cut.step + cut.size
    places = arange(shape[-2])[:, None] * cut.step + arange(cut.size)
    return zeros((*shape[:-2], size), type_of(pieces).dtype).at[..., places].add(pieces)
