"""How a signal is cut into overlapping segments before their spectra are taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.errors import ArgumentError
from rune.numpy.arguments import static_int
from rune.records import dataclass
from rune.scipy.signal.window_shapes import Window, chosen_window
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Segments:
    """How a signal is divided: segments of `size` samples, `step` apart, transformed in
    `length`.
    """

    window: np.ndarray  # in f64
    size: int
    step: int
    length: int

    def scale(self, scaling: str, fs: float) -> float:
        """The factor from squared transforms to powers: per frequency ("density"), or in total."""
        if scaling == "density":
            return 1.0 / (fs * float(np.sum(self.window**2)))
        if scaling == "spectrum":
            return 1.0 / float(np.sum(self.window)) ** 2
        raise ArgumentError(f"spectrum: cannot use scaling={scaling!r} (density or spectrum)")


def cut_signal(
    name: str,
    fs: float,
    window: Window | ArrayLike | Sequence[float],
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    size: int,
) -> Segments:
    """The arguments of the public functions, checked, for a signal of `size` samples."""
    required_number(name, "fs", fs)
    if isinstance(fs, int | float) and not fs > 0:
        raise ArgumentError(f"{name}: cannot use the sampling frequency {fs} (above 0 required)")
    if isinstance(window, str | tuple | int | float):
        count = min(256, size) if nperseg is None else static_int(name, "nperseg", nperseg)
        count = min(count, size)
        if count < 1:
            raise ArgumentError(f"{name}: cannot cut segments of {count} samples")
        weights = chosen_window(window, count)
    else:
        weights = np.asarray(window, np.float64)
        count = weights.shape[0]
        if weights.ndim != 1 or count > size or nperseg not in (None, count):
            raise ArgumentError(f"{name}: cannot weight segments by a window of shape {weights.shape}")
    overlap = count // 2 if noverlap is None else static_int(name, "noverlap", noverlap)
    length = count if nfft is None else static_int(name, "nfft", nfft)
    if not 0 <= overlap < count or length < count:
        problem = f"{count} samples overlap by {overlap}, in transforms of {length}"
        raise ArgumentError(f"{name}: cannot cut segments ({problem})")
    return Segments(weights, count, count - overlap, length)
