"""Uses of fft: every kind, over one axis and several, lengths of every kind of algorithm.

The oracle is the definition, a product with the matrix of all roots of unity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rune import dtypes
from rune.ops.fourier import fft
from tests.ops.calls import Operand
from tests.ops.use import Use


def _transformed(x: np.ndarray, axis: int, sign: int) -> np.ndarray:
    """The definition along one axis."""
    k = np.arange(x.shape[axis])
    matrix = np.exp(sign * 2j * np.pi * (np.outer(k, k) % len(k)) / len(k))
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def _all(x: np.ndarray, axes: Sequence[int], sign: int) -> np.ndarray:
    for axis in axes:
        x = _transformed(x, axis, sign)
    return x


def _expected(kind: str, axes: tuple[int, ...], odd: bool) -> Callable[..., list[np.ndarray]]:
    *others, last = axes

    def forward(x: np.ndarray) -> np.ndarray:
        spectrum = _all(x, axes, -1)
        return np.take(spectrum, range(x.shape[last] // 2 + 1), last) if kind == "rfft" else spectrum

    def backward(x: np.ndarray) -> np.ndarray:
        if kind == "irfft":
            x = _all(x, others, 1) / np.prod([x.shape[axis] for axis in others])
            size = x.shape[last]
            mirror_image = np.flip(np.take(x, range(1, size - 1 + odd), last), last).conj()
            ends = [0] if odd else [0, size - 1]
            rows = np.moveaxis(x.copy(), last, 0)
            rows[ends] = np.real(rows[ends])
            x = np.concatenate([np.moveaxis(rows, 0, last), mirror_image], last)
            return np.real(_transformed(x, last, 1) / x.shape[last])
        return _all(x, axes, 1) / np.prod([x.shape[axis] for axis in axes])

    run = backward if kind in ("ifft", "irfft") else forward
    return lambda x: [run(x)]


def _use(kind: str, shape: tuple[int, ...], *axes: int, odd: bool = False) -> Use:
    operand = Operand(shape, dtypes.f64 if kind == "rfft" else dtypes.c128)
    params = {"kind": kind, "axes": axes, "odd": odd}
    return Use(fft, (operand,), _expected(kind, axes, odd), params=params)


USES = (
    *(_use("fft", (n,), 0) for n in (1, 2, 3, 5, 8, 11, 36, 67)),
    *(_use("ifft", (2, n), 1) for n in (1, 4, 7, 12, 71)),
    *(_use("rfft", (n,), 0) for n in (1, 2, 9, 16, 22)),
    *(_use("irfft", (2, m, 2), 1) for m in (2, 5, 9)),
    *(_use("irfft", (m,), 0, odd=True) for m in (1, 2, 8)),
    _use("fft", (3, 4, 2), 0, 2),
    _use("ifft", (3, 4, 2), 1, 0),
    _use("rfft", (3, 4, 6), 2, 0),
    _use("irfft", (3, 4, 5), 1, 0),
    _use("irfft", (3, 4, 5), 0, 2, odd=True),
)
