"""Sums over exactly the overlap of a sequence and a kernel that slides over it.

If there are few products they are one dot: every window of x with the part of the kernel that lies
on x there. For long sequences the matrix of all windows would be too large, so they are convolved
as images with zero padding. There, zero times an infinity in the kernel would be NaN: if the kernel
is not finite, windows are multiplied in batches, as many at a time as memory has room for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from rune import control, dtypes, ops
from rune.array import Array
from rune.core.interpreter import is_evaluating, literal, type_of
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError
from rune.numpy.arguments import rank
from rune.numpy.creation import arange
from rune.numpy.logic import isfinite
from rune.ops import conventions as c
from rune.ops.family import zeros_like
from rune.ops.sliding import windows
from rune.typing import ArrayLike

MODES = ("full", "same", "valid")  # all overlaps, as many as elements of x, or whole ones
_LARGEST = 1 << 22  # the most elements in a matrix of windows


def slid(x: Array, kernel: Array, *padding: tuple[Size, Size]) -> Array:
    """y[k] = sum_j x[k+j-low] kernel[j] over the elements of x; padding: (low, high) for each axis.

    Places without an element of x add nothing, even where the kernel is infinite or NaN.
    """
    if len(padding) == 1 and _is_large(x, kernel, padding[0]):
        return _long(x, kernel, *padding[0])  # type: ignore[arg-type]
    among_zeros = _padded(x, literal(0, type_of(x).dtype), padding)
    if type_of(x).dtype not in dtypes.INEXACT or all(pair == (0, 0) for pair in padding):
        return _products(among_zeros, kernel)
    truth = ops.broadcast(literal(True, dtypes.bool_), shape=type_of(x).shape, axes=())
    return _products_within(among_zeros, kernel, _padded(truth, literal(False, dtypes.bool_), padding))


# --- one dot ------------------------------------------------------------------------------------


def _padded(x: ArrayLike, value: Value, padding: Sequence[tuple[Size, Size]]) -> Array:
    low, high = (tuple(pair[side] for pair in padding) for side in (0, 1))
    return ops.pad(x, value, low=low, high=high, interior=(0,) * len(padding))


def _products(x: Array, kernel: ArrayLike) -> Array:
    """One dot: every window of x, which is a view, with the kernel."""
    axes, inner = tuple(range(rank(x))), tuple(range(rank(x), 2 * rank(x)))
    return c.contract(_windows(x, kernel), kernel, ((inner, axes), ((), ())))


def _products_within(x: Array, kernel: ArrayLike, inside: Array) -> Array:
    """The same, with the part of the kernel that is `inside` at each window."""
    axes, inner = tuple(range(rank(x))), tuple(range(rank(x), 2 * rank(x)))
    mask_windows = _windows(inside, kernel)
    copies = ops.broadcast(kernel, shape=type_of(mask_windows).shape, axes=inner)
    kernels = ops.select(mask_windows, copies, zeros_like(copies))
    return c.contract(_windows(x, kernel), kernels, ((inner, inner), (axes, axes)))


def _windows(x: Array, kernel: ArrayLike) -> Array:
    unit_steps = (1,) * rank(x)
    return windows(x, tuple(range(rank(x))), type_of(kernel).shape, unit_steps, unit_steps)


# --- long sequences -----------------------------------------------------------------------------


def _is_large(x: Array, kernel: Array, padding: tuple[Size, Size]) -> bool:
    sizes = (type_of(x).shape[0], *padding, type_of(kernel).shape[0])
    if not all(isinstance(d, int) for d in sizes):
        return False
    return sum(sizes[:3]) * sizes[3] > _LARGEST  # type: ignore[operator]


def _long(x: Array, kernel: Array, low: int, high: int) -> Array:
    among_zeros = _padded(x, literal(0, type_of(x).dtype), [(low, high)])
    if type_of(x).dtype not in dtypes.INEXACT or low == high == 0:
        return convolved(among_zeros, kernel)
    in_runs = functools.partial(_in_runs, low, low + x.shape[0])
    is_finite = isfinite(kernel).all()
    if is_evaluating():  # nothing has to be compiled where the answer is known
        return (convolved if is_finite else in_runs)(among_zeros, kernel)
    return control.cond(is_finite, convolved, in_runs, among_zeros, kernel)


def convolved(x: Array, kernel: Array) -> Array:
    """The whole overlaps as a convolution of one feature, which needs no matrix of windows.

    Shapes: x [*N], kernel [*K] -> [*(N - K + 1)].
    """
    ndim = rank(x)
    once, unpadded, in_order = (1,) * ndim, ((0, 0),) * ndim, (tuple(range(ndim + 2)),) * 3
    convolution = ops.conv_general_dilated(
        *(c.expand_dims(v, (0, 1)) for v in (x, kernel)),
        strides=once,
        padding=unpadded,
        lhs_dilation=once,
        rhs_dilation=once,
        specs=in_order,
        groups=(1, 1),
    )
    return c.squeeze(convolution, (0, 1))


def _in_runs(first: int, end: int, x: Array, kernel: Array) -> Array:
    """The same for the elements x[first:end], without the zeros around them."""
    n = kernel.shape[0]
    count = x.shape[0] - n + 1
    size = max(1, _LARGEST // n)  # windows per batch
    starts = arange(0, count, size)
    x = _padded(x, literal(0, type_of(x).dtype), [(0, starts.shape[0] * size - count)])

    def run(start: Array) -> Array:
        places = start + arange(size + n - 1)
        segment = ops.dynamic_slice(x, start, sizes=(size + n - 1,))
        return _products_within(segment, kernel, (places >= first) & (places < end))

    return c.reshape(control.map(run, starts), -1)[:count]


def check_mode(name: str, mode: str) -> None:
    """Errors: ArgumentError for a mode that is not one of MODES."""
    if mode not in MODES:
        raise ArgumentError(f"{name}: cannot use mode={mode!r} (one of {', '.join(MODES)})")


def pads_of(mode: str, size: Size) -> tuple[Size, Size]:
    """The zeros before and after an axis over which `size` elements slide, in one of MODES."""
    return {"full": (size - 1, size - 1), "same": (size // 2, (size - 1) // 2), "valid": (0, 0)}[mode]
