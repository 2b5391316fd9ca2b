"""Calls of rune.scipy.signal: convolutions, filters, spectra, windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numpy.fourier_cases import z
from tests.numpy.spelling import Case, Spec, f, i, pos


def case(name: str, call: Callable[..., Any], *specs: Spec, **flags: Any) -> Case:
    """A case whose call takes the module `signal`."""
    return Case(f"signal.{name}", lambda sp, *xs: call(sp.signal, *xs), specs, module="scipy", **flags)


_MODES = ("full", "same", "valid")
_NO_MATRIX = {"*0": "SciPy divides by zero, and the process dies, of no elements"}
CONVOLUTIONS = [
    *[
        case(
            f"{name} {mode} {p}, {q}", lambda s, x, y, name=name, mode=mode: getattr(s, name)(x, y, mode), f(*p), f(*q)
        )
        for name in ("convolve", "correlate", "fftconvolve", "oaconvolve")
        for mode in _MODES
        for p, q in (((7,), (3,)), ((3,), (4,)), ((4, 5), (3, 2)))
    ],
    *[
        case(
            f"{name} {mode} {boundary} {p}, {q}",
            lambda s, x, y, name=name, mode=mode, boundary=boundary: getattr(s, name)(x, y, mode, boundary),
            f(*p),
            f(*q),
            without=_NO_MATRIX,
        )
        for name in ("convolve2d", "correlate2d")
        for mode in _MODES
        for boundary in ("fill", "wrap", "symm")
        for p, q in (((5, 4), (3, 2)), ((4, 4), (4, 3)))
    ],
    case("convolve2d filled", lambda s, x, y: s.convolve2d(x, y, fillvalue=2.0), f(3, 3), f(2, 2), without=_NO_MATRIX),
    case("convolve by fft", lambda s, x, y: s.convolve(x, y, method="fft"), f(6), f(3)),
    case("convolve integers", lambda s, x, y: s.convolve(x, y), i(6), i(3), smooth=False),
    case("convolve integers by fft", lambda s, x, y: s.convolve(x, y, method="fft"), i(6), i(3), smooth=False),
    case("correlate complex numbers", lambda s, x, y: s.correlate(x, y, "same"), z(6), z(3)),
    case("fftconvolve of complex numbers", lambda s, x, y: s.fftconvolve(x, y), z(6), z(3)),
    case("fftconvolve of an axis", lambda s, x, y: s.fftconvolve(x, y, axes=1), f(2, 5), f(2, 3)),
    case("oaconvolve of a long one", lambda s, x, y: s.oaconvolve(x, y), f(150), f(3)),
    case("oaconvolve along an axis", lambda s, x, y: s.oaconvolve(x, y, "same"), f(3, 90), f(2, 2)),
    case("oaconvolve with a long one", lambda s, x, y: s.oaconvolve(x, y, "same"), f(2), f(90)),
    case(
        "correlation_lags", lambda s: [s.correlation_lags(m, n, mode) for mode in _MODES for m, n in ((5, 3), (3, 5))]
    ),
    case(
        "choose_conv_method",
        lambda s, x, y: s.choose_conv_method(x, y) == "direct",
        f(9),
        f(3),
        smooth=False,
        static=True,
    ),
]


def _normal(sos: Any) -> Any:
    """Sections with a0 = 1, as SciPy requires, and poles inside the unit circle."""
    return sos / sos[:, 3:4]


def _evenly(t: Any) -> Any:
    """Evenly spaced points that begin with the first two."""
    return t[0] + t[1] * np.arange(t.shape[0], dtype=np.float32)


FILTERS = [
    case("lfilter", lambda s, b, a, x: s.lfilter(b, a + 5, x), f(3), f(2), f(2, 9)),
    case("lfilter along an axis", lambda s, b, a, x: s.lfilter(b, a + 5, x, 0), f(2), f(4), f(9, 2)),
    case("lfilter without recursion", lambda s, b, x: s.lfilter(b, x[:1] + 9, x), f(3), f(9)),
    case("lfilter by a number", lambda s, b, x: s.lfilter(b, b + 9, x), f(1), f(9)),
    case(
        "lfilter from a state",
        lambda s, b, a, x, zi: s.lfilter(b, a + 5, x, zi=zi),
        f(3),
        f(3),
        f(2, 9),
        f(2, 2),
        without={"9 to 0": "SciPy leaves the state of no samples as it found the memory"},
    ),
    case("lfilter_zi", lambda s, b, a: s.lfilter_zi(b, a + 5), f(3), pos(3)),
    case("filtfilt", lambda s, b, a, x: s.filtfilt(b, a[:1] * 0 + 2, x), f(2), pos(2), f(2, 20)),
    *[
        case(
            f"filtfilt {padtype}",
            lambda s, b, x, padtype=padtype: s.filtfilt(b, b[:1] * 0 + 2, x, 0, padtype, 4),
            f(3),
            f(9, 2),
        )
        for padtype in ("even", "constant", "odd", None)
    ],
    case("sosfilt", lambda s, sos, x: s.sosfilt(_normal(sos), x), pos(2, 6), f(2, 9)),
    case(
        "sosfilt from a state",
        lambda s, sos, x, zi: s.sosfilt(_normal(sos), x, 0, zi=zi),
        pos(2, 6),
        f(9, 3),
        f(2, 2, 3),
    ),
    *[
        case(f"savgol_filter {mode}", lambda s, x, mode=mode: s.savgol_filter(x, 5, 2, mode=mode, cval=1.0), f(2, 9))
        for mode in ("interp", "mirror", "nearest", "wrap", "constant")
    ],
    case("savgol_filter, a derivative", lambda s, x: s.savgol_filter(x, 7, 3, deriv=2, delta=0.5, axis=0), f(9, 2)),
    case(
        "savgol_coeffs",
        lambda s: (s.savgol_coeffs(7, 3), s.savgol_coeffs(5, 2, 1, 0.5), s.savgol_coeffs(5, 2, pos=1, use="dot")),
    ),
]


SPECTRA = [
    case("periodogram", lambda s, x: s.periodogram(x), f(2, 9)),
    case(
        "periodogram scaled",
        lambda s, x: s.periodogram(x, 2.0, "hann", 12, "linear", scaling="spectrum", axis=0),
        f(9, 2),
    ),
    case("periodogram cut", lambda s, x: s.periodogram(x, nfft=6, detrend=False), f(9)),
    case("welch", lambda s, x: s.welch(x, 10.0, nperseg=8), f(2, 31)),
    case("welch of both sides", lambda s, x: s.welch(x, nperseg=8, return_onesided=False), f(31)),
    case("welch of complex numbers", lambda s, x: s.welch(x, nperseg=8, return_onesided=False), z(31)),
    case("welch by medians", lambda s, x: s.welch(x, nperseg=8, average="median"), f(31)),
    case(
        "welch with a window", lambda s, x, w: s.welch(x, window=[0.5, 1.0, 2.0, 1.0], noverlap=1, nfft=7), f(31), f(1)
    ),
    case("csd", lambda s, x, y: s.csd(x, y, nperseg=7, noverlap=3), f(2, 31), f(2, 31)),
    case("csd of two lengths", lambda s, x, y: s.csd(x, y, nperseg=8, detrend="linear"), f(31), f(20)),
    case("csd by medians", lambda s, x, y: s.csd(x, y, nperseg=8, average="median"), f(31), f(31)),
    case("coherence", lambda s, x, y: s.coherence(x, y, nperseg=8), f(40), f(40)),
    case("spectrogram", lambda s, x: s.spectrogram(x, nperseg=16), f(2, 50)),
    *[
        case(
            f"spectrogram {mode}",
            lambda s, x, mode=mode: s.spectrogram(x, 2.0, "hann", 8, 4, mode=mode, axis=0),
            f(30, 2),
        )
        for mode in ("complex", "magnitude", "psd")
    ],
    case(
        "spectrogram phase",
        lambda s, x: s.spectrogram(x + 9, 2.0, "hann", 8, 4, mode="phase", detrend=False)[2][1],
        pos(30),
    ),
    case(
        "spectrogram angle",
        lambda s, x: s.spectrogram(x + 9, 2.0, "hann", 8, 4, mode="angle", detrend=False)[2][1],
        pos(30),
    ),
    case("stft", lambda s, x: s.stft(x, 4.0, nperseg=8), f(2, 31)),
    *[
        case(
            f"stft {boundary}",
            lambda s, x, boundary=boundary: s.stft(
                x, nperseg=8, noverlap=5, nfft=9, boundary=boundary, axis=0, scaling="psd"
            ),
            f(31, 2),
        )
        for boundary in ("even", "odd", "constant", None)
    ],
    case(
        "stft of both sides",
        lambda s, x: s.stft(x, nperseg=8, return_onesided=False, padded=False, detrend="constant"),
        f(31),
    ),
    case("istft", lambda s, x: s.istft(x, 4.0, nperseg=8), z(5, 6)),
    # SciPy's times are those of the first axis, whatever that is.
    case("istft of two signals", lambda s, x: s.istft(x, 4.0, nperseg=8)[1], z(2, 5, 6)),
    case(
        "istft of other axes", lambda s, x: s.istft(x, nperseg=8, noverlap=5, time_axis=0, freq_axis=2)[1], z(6, 2, 5)
    ),
    case(
        "istft of both sides",
        lambda s, x: s.istft(x, nperseg=7, nfft=8, input_onesided=False, boundary=False, scaling="psd", noverlap=6),
        z(8, 6),
    ),
]

TRENDS = [
    case("detrend", lambda s, x: s.detrend(x), f(2, 9)),
    case("detrend by the mean", lambda s, x: s.detrend(x, 0, "constant"), f(9, 2)),
    case("detrend in pieces", lambda s, x: s.detrend(x, bp=[3, 6]), f(2, 9)),
    case("hilbert", lambda s, x: s.hilbert(x), f(2, 8)),
    case("hilbert, odd and padded", lambda s, x: s.hilbert(x, 9, axis=0), f(7, 2)),
    *[case(f"resample to {n}", lambda s, x, n=n: s.resample(x, n), f(8, 2)) for n in (3, 8, 9, 16)],
    case("resample to a half", lambda s, x: s.resample(x, 4), f(8)),
    *[case(f"resample 7 to {n}", lambda s, x, n=n: s.resample(x, n), f(7)) for n in (3, 4, 7, 10)],
    *[
        case(f"resample {m} complex numbers to {n}", lambda s, x, n=n: s.resample(x, n, axis=1), z(2, m))
        for m, n in ((8, 4), (8, 5), (8, 8), (8, 12), (7, 4), (7, 12), (6, 9))
    ],
    case("resample at places", lambda s, x, t: s.resample(x, 5, t=_evenly(t)), f(8), pos(8)),
    case("resample through a window", lambda s, x: s.resample(x, 6, window="hamming"), f(8)),
]

_PLAIN = "boxcar triang parzen bohman blackman nuttall blackmanharris flattop bartlett barthann \
hann hamming cosine lanczos tukey exponential"
_NAMED = [(name,) for name in _PLAIN.split()] + [
    ("tukey", 0.25),
    ("kaiser", 5.0),
    ("gaussian", 2.0),
    ("general_gaussian", 1.5, 2.0),
    ("general_hamming", 0.6),
    ("general_cosine", [0.5, 0.3, 0.2]),
    ("exponential", None, 2.0),
]
WINDOWS = [
    *[
        case(
            f"get_window {args} of {n}",
            lambda s, args=args, n=n: (
                s.get_window(args if len(args) > 1 else args[0], n),
                s.get_window(args, n, fftbins=False),
            ),
        )
        for args in _NAMED
        for n in (1, 7, 8)
    ],
    *[
        case(
            f"windows.{args[0]} {args[1:]}",
            lambda s, args=args: (
                getattr(s.windows, args[0])(8, *args[1:]),
                getattr(s.windows, args[0])(9, *args[1:], sym=False),
            ),
        )
        for args in _NAMED
    ],
    case("get_window by a number", lambda s: s.get_window(4.0, 8)),
]

SIGNAL = [*CONVOLUTIONS, *FILTERS, *SPECTRA, *TRENDS, *WINDOWS]
