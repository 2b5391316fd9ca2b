"""Windows: how samples are weighted before a transform. M points -> [M]; periodic if not `sym`.

A window of a given number of points is a constant, so it is computed by the host in f64 and rounded
once to the dtype of the samples; the public functions give f32.

Source: Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier
transform", Proc. IEEE 66(1); four-term windows, Nuttall 1981, IEEE Trans. ASSP 29(1); flat top,
D'Antona & Ferrero 2006, "Digital Signal Processing for Measurement Systems".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune.array import as_array
from rune.errors import ArgumentError
from rune.numpy.arguments import require_room, static_int

__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman",
    "boxcar", "cosine", "exponential", "flattop", "gaussian",
    "general_cosine", "general_gaussian", "general_hamming", "get_window", "hamming",
    "hann", "kaiser", "lanczos", "nuttall", "parzen",
    "triang", "tukey",
]  # fmt: skip

Shape = Callable[..., np.ndarray]  # (M, *parameters) -> M numbers


def _centred(M: int) -> np.ndarray:
    """-1 to 1 in M steps."""
    return np.linspace(-1.0, 1.0, M)


def _cosines(*weights: float) -> Shape:
    return lambda M: general_cosine_values(M, weights)


def general_cosine_values(M: int, weights: Any) -> np.ndarray:
    """sum_k weights[k] cos(πk x), x from -1 to 1."""
    angle = np.pi * _centred(M)
    return sum((w * np.cos(k * angle) for k, w in enumerate(weights)), np.zeros(M))


def _triang(M: int) -> np.ndarray:
    n = np.arange(1, (M + 1) // 2 + 1)
    rising = (2 * n - 1) / M if M % 2 == 0 else 2 * n / (M + 1)
    return np.concatenate([rising, rising[::-1][M % 2 :]])


def _parzen(M: int) -> np.ndarray:
    x = np.abs(np.arange(-(M - 1) / 2, (M - 1) / 2 + 0.5)) / (M / 2)
    return np.where(x <= 0.5, 1 - 6 * x**2 * (1 - x), 2 * (1 - x) ** 3)


def _bohman(M: int) -> np.ndarray:
    x = np.abs(_centred(M))
    window = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    window[[0, -1]] = 0
    return window


def _barthann(M: int) -> np.ndarray:
    x = np.abs(_centred(M)) / 2
    return 0.62 - 0.48 * x + 0.38 * np.cos(2 * np.pi * x)


def _cosine(M: int) -> np.ndarray:
    return np.sin(np.pi / M * (np.arange(M) + 0.5))


def _lanczos(M: int) -> np.ndarray:
    return np.sinc(_centred(M))


def _tukey(M: int, alpha: float = 0.5) -> np.ndarray:
    if alpha <= 0:
        return np.ones(M)
    x = (1 - np.abs(_centred(M))) / min(alpha, 1.0)
    return np.where(x < 1, 0.5 * (1 - np.cos(np.pi * np.minimum(x, 1))), 1.0)


def _kaiser(M: int, beta: float) -> np.ndarray:
    x = _centred(M)
    return np.asarray(np.i0(beta * np.sqrt(np.maximum((1 - x) * (1 + x), 0))) / np.i0(beta))


def _gaussian(M: int, std: float) -> np.ndarray:
    n = np.arange(M) - (M - 1) / 2
    return np.exp(-(n**2) / (2 * std * std))


def _general_gaussian(M: int, p: float, sig: float) -> np.ndarray:
    n = np.arange(M) - (M - 1) / 2
    return np.exp(-0.5 * np.abs(n / sig) ** (2 * p))


def _general_hamming(M: int, alpha: float) -> np.ndarray:
    return general_cosine_values(M, (alpha, 1 - alpha))


def _exponential(M: int, center: float | None = None, tau: float = 1.0) -> np.ndarray:
    middle = (M - 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(M) - middle) / tau)


SHAPES: dict[str, Shape] = {
    "boxcar": np.ones,
    "triang": _triang,
    "parzen": _parzen,
    "bohman": _bohman,
    "blackman": _cosines(0.42, 0.50, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "bartlett": lambda M: 1 - np.abs(_centred(M)),
    "barthann": _barthann,
    "hann": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "cosine": _cosine,
    "lanczos": _lanczos,
    "tukey": _tukey,
    "kaiser": _kaiser,
    "gaussian": _gaussian,
    "general_gaussian": _general_gaussian,
    "general_hamming": _general_hamming,
    "general_cosine": general_cosine_values,
    "exponential": _exponential,
}
_ALIASES = {
    "box": "boxcar", "ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar",
    "tri": "triang", "triangle": "triang", "black": "blackman", "ham": "hamming",
    "hamm": "hamming", "han": "hann", "bart": "bartlett", "bohm": "bohman", "par": "parzen",
    "parz": "parzen", "halfcosine": "cosine", "sinc": "lanczos", "tuk": "tukey", "ksr": "kaiser",
    "gauss": "gaussian", "blackharr": "blackmanharris", "nutt": "nuttall", "flat": "flattop",
    "brthan": "barthann", "poisson": "exponential",
}  # fmt: skip


def window_values(name: str, M: int, *parameters: Any, sym: bool = True) -> np.ndarray:
    """The window in f64. Errors: ArgumentError for a negative number of points."""
    size = static_int(name, "a number of points", M)
    if size < 0:
        raise ArgumentError(f"{name}: cannot make a window of {size} points")
    require_room(name, size)
    if size < 2:
        return np.ones(size)
    return SHAPES[name](size + (not sym), *parameters)[:size]


def chosen_window(window: Any, size: int, *, fftbins: bool = True) -> np.ndarray:
    """The window that a name, (name, *parameters), or a number (Kaiser's β) stands for, in f64."""
    name, parameters = window, ()
    if isinstance(window, tuple):
        name, *parameters = window
    elif isinstance(window, int | float):
        name, parameters = "kaiser", (window,)
    name = _ALIASES.get(name, name)
    if name not in SHAPES:
        raise ArgumentError(f"get_window: cannot find {window!r} (one of {', '.join(SHAPES)})")
    try:
        return window_values(name, size, *parameters, sym=not fftbins)
    except TypeError as error:
        raise ArgumentError(f"get_window: cannot make {window!r} ({error})") from None


def get_window(window: Any, Nx: int, fftbins: bool = True) -> Any:
    """A window of Nx points by its name; (name, *parameters) where it takes some.

    fftbins: whether it is periodic, for a transform; else symmetric, for the design of a filter.
    Shapes: [Nx]. Types: f32.
    Errors: ArgumentError for another name, or missing parameters.

    >>> from rune.scipy import signal
    >>> signal.get_window("hann", 4), signal.get_window(("kaiser", 0.0), 2)
    (Array([0. , 0.5, 1. , 0.5], f32[4], cpu:0), Array([1., 1.], f32[2], cpu:0))
    """
    return as_array(chosen_window(window, Nx, fftbins=fftbins))


# --- one function for each ------------------------------------------------------------------------


def boxcar(M: int, sym: bool = True) -> Any:
    """No weighting: ones.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.boxcar(2)
    Array([1., 1.], f32[2], cpu:0)
    """
    return as_array(window_values("boxcar", M, sym=sym))


def triang(M: int, sym: bool = True) -> Any:
    """A triangle whose ends are not zero.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.triang(3)
    Array([0.5, 1. , 0.5], f32[3], cpu:0)
    """
    return as_array(window_values("triang", M, sym=sym))


def parzen(M: int, sym: bool = True) -> Any:
    """Four pieces of cubes.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.parzen(3).round(4)
    Array([0.0741, 1.    , 0.0741], f32[3], cpu:0)
    """
    return as_array(window_values("parzen", M, sym=sym))


def bohman(M: int, sym: bool = True) -> Any:
    """The product of a triangle and a cosine, smoothed.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.bohman(3).round(4)
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("bohman", M, sym=sym))


def blackman(M: int, sym: bool = True) -> Any:
    """Three cosine terms.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.blackman(3).round(4) + 0
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("blackman", M, sym=sym))


def nuttall(M: int, sym: bool = True) -> Any:
    """Four cosine terms with least side lobes.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.nuttall(3).round(4)
    Array([4.e-04, 1.e+00, 4.e-04], f32[3], cpu:0)
    """
    return as_array(window_values("nuttall", M, sym=sym))


def blackmanharris(M: int, sym: bool = True) -> Any:
    """Four cosine terms.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.blackmanharris(3).round(4)
    Array([1.e-04, 1.e+00, 1.e-04], f32[3], cpu:0)
    """
    return as_array(window_values("blackmanharris", M, sym=sym))


def flattop(M: int, sym: bool = True) -> Any:
    """Five cosine terms, flat in the middle of the main lobe.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.flattop(3).round(4)
    Array([-4.e-04,  1.e+00, -4.e-04], f32[3], cpu:0)
    """
    return as_array(window_values("flattop", M, sym=sym))


def bartlett(M: int, sym: bool = True) -> Any:
    """A triangle that ends in zeros.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.bartlett(3)
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("bartlett", M, sym=sym))


def barthann(M: int, sym: bool = True) -> Any:
    """A triangle and a cosine, mixed.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.barthann(3).round(4) + 0
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("barthann", M, sym=sym))


def hann(M: int, sym: bool = True) -> Any:
    """A raised cosine that ends in zeros.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.hann(3)
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("hann", M, sym=sym))


def hamming(M: int, sym: bool = True) -> Any:
    """A raised cosine on a pedestal.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.hamming(3).round(4)
    Array([0.08, 1.  , 0.08], f32[3], cpu:0)
    """
    return as_array(window_values("hamming", M, sym=sym))


def cosine(M: int, sym: bool = True) -> Any:
    """Half a wave.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.cosine(2).round(4)
    Array([0.7071, 0.7071], f32[2], cpu:0)
    """
    return as_array(window_values("cosine", M, sym=sym))


def lanczos(M: int, sym: bool = True) -> Any:
    """The main lobe of sinc.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.lanczos(3).round(4) + 0
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("lanczos", M, sym=sym))


def tukey(M: int, alpha: float = 0.5, sym: bool = True) -> Any:
    """A plateau with cosine flanks; `alpha` is the share of the flanks.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.tukey(5)
    Array([0., 1., 1., 1., 0.], f32[5], cpu:0)
    """
    return as_array(window_values("tukey", M, alpha, sym=sym))


def kaiser(M: int, beta: float, sym: bool = True) -> Any:
    """I0(β sqrt(1 - x²)) / I0(β).

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.kaiser(3, 1.0).round(4)
    Array([0.7898, 1.    , 0.7898], f32[3], cpu:0)
    """
    return as_array(window_values("kaiser", M, beta, sym=sym))


def gaussian(M: int, std: float, sym: bool = True) -> Any:
    """A bell of standard deviation `std`, in samples.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.gaussian(3, 1.0).round(4)
    Array([0.6065, 1.    , 0.6065], f32[3], cpu:0)
    """
    return as_array(window_values("gaussian", M, std, sym=sym))


def general_gaussian(M: int, p: float, sig: float, sym: bool = True) -> Any:
    """A bell of width `sig` and steepness p; p = 1 is Gauss's.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.general_gaussian(3, 1.0, 1.0).round(4)
    Array([0.6065, 1.    , 0.6065], f32[3], cpu:0)
    """
    return as_array(window_values("general_gaussian", M, p, sig, sym=sym))


def general_hamming(M: int, alpha: float, sym: bool = True) -> Any:
    """`alpha` plus 1 - alpha of a cosine.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.general_hamming(3, 0.75)
    Array([0.5, 1. , 0.5], f32[3], cpu:0)
    """
    return as_array(window_values("general_hamming", M, alpha, sym=sym))


def general_cosine(M: int, a: Any, sym: bool = True) -> Any:
    """A sum of cosines with weights `a`.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.general_cosine(3, (0.5, 0.5))
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("general_cosine", M, a, sym=sym))


def exponential(M: int, center: float | None = None, tau: float = 1.0, sym: bool = True) -> Any:
    """exp(-|n - center| / tau); only a symmetric one may have another center.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.exponential(3).round(4)
    Array([0.3679, 1.    , 0.3679], f32[3], cpu:0)
    """
    return as_array(window_values("exponential", M, center, tau, sym=sym))
