"""The shapes of windows, in f64: M points of a constant that the host computes.

Source: Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier
transform", Proc. IEEE 66(1); four-term windows, Nuttall 1981, IEEE Trans. ASSP 29(1); flat top,
D'Antona & Ferrero 2006, "Digital Signal Processing for Measurement Systems".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune.errors import ArgumentError
from rune.numpy.arguments import require_room, static_int

Window = str | float | tuple[Any, ...]  # a name, (name, *parameters), or Kaiser's β
Shape = Callable[..., np.ndarray]  # (M, *parameters) -> M numbers


def _centred(M: int) -> np.ndarray:
    """-1 to 1 in M steps."""
    return np.linspace(-1.0, 1.0, M)


def _cosines(*weights: float) -> Shape:
    return lambda M: general_cosine_values(M, weights)


def general_cosine_values(M: int, weights: Sequence[float]) -> np.ndarray:
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
    "cosine": lambda M: np.sin(np.pi / M * (np.arange(M) + 0.5)),
    "lanczos": lambda M: np.sinc(_centred(M)),
    "tukey": _tukey,
    "kaiser": _kaiser,
    "gaussian": _gaussian,
    "general_gaussian": _general_gaussian,
    "general_hamming": lambda M, alpha: general_cosine_values(M, (alpha, 1 - alpha)),
    "general_cosine": general_cosine_values,
    "exponential": _exponential,
}
_ALIASES = {
    "box": "boxcar",
    "ones": "boxcar",
    "rect": "boxcar",
    "rectangular": "boxcar",
    "tri": "triang",
    "triangle": "triang",
    "black": "blackman",
    "ham": "hamming",
    "hamm": "hamming",
    "han": "hann",
    "bart": "bartlett",
    "bohm": "bohman",
    "par": "parzen",
    "parz": "parzen",
    "halfcosine": "cosine",
    "sinc": "lanczos",
    "tuk": "tukey",
    "ksr": "kaiser",
    "gauss": "gaussian",
    "blackharr": "blackmanharris",
    "nutt": "nuttall",
    "flat": "flattop",
    "brthan": "barthann",
    "poisson": "exponential",
}


def window_values(name: str, M: int, *parameters: object, sym: bool = True) -> np.ndarray:
    """The window in f64. Errors: ArgumentError for a negative number of points."""
    size = static_int(name, "a number of points", M)
    if size < 0:
        raise ArgumentError(f"{name}: cannot make a window of {size} points")
    require_room(name, size)
    if size < 2:
        return np.ones(size)
    return SHAPES[name](size + (not sym), *parameters)[:size]


def chosen_window(window: Any, size: int, *, fftbins: bool = True) -> np.ndarray:
    """The window for a name, (name, *parameters), or a number (Kaiser's β), in f64."""
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
