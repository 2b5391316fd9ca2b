"""pad: constants around an array, or its own elements continued. Movement only."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import ops
from rune.core.interpreter import type_of
from rune.dims import Dim, Size, UndecidedComparison, at_most
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, value
from rune.numpy.joining import repeated
from rune.numpy.shapes import cut_out
from rune.ops import promote

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    """`array` with elements added at both ends of each axis.

    pad_width: an integer, (before, after), or such a pair per axis.
    mode:      constant (constant_values=0), edge, reflect, symmetric, wrap.
    Errors:    ArgumentError for another mode or option.

    >>> import rune.numpy as rnp
    >>> rnp.pad(rnp.arange(3), (1, 2)), rnp.pad(rnp.arange(3), 2, mode="reflect")
    (Array([0, 0, 1, 2, 0, 0], i32[6], cpu:0), Array([2, 1, 0, 1, 2, 1, 0], i32[7], cpu:0))
    """
    x = value("pad", array)
    if mode not in _MODES:
        raise ArgumentError(f"pad: cannot use mode={mode!r} (one of {', '.join(_MODES)})")
    unknown = set(kwargs) - ({"constant_values"} if mode == "constant" else set())
    if unknown:
        raise ArgumentError(f"pad: cannot use {', '.join(sorted(unknown))} with mode={mode!r}")
    widths = _pairs(pad_width, x)
    if any(w < 0 for pair in widths for w in pair):
        raise ArgumentError(f"pad: cannot pad by {pad_width} (a width is negative)")
    if mode == "constant":
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    for axis, (low, high) in enumerate(widths):
        x = _pad_axis(x, axis, low, high, mode)
    return x


def _pairs(pad_width: Any, x: Any) -> list[list[Size]]:
    """(before, after) for each axis of x."""
    if isinstance(pad_width, dict):
        raise ArgumentError("pad: cannot use a dict as pad_width (pairs per axis required)")
    found = np.asarray(pad_width)
    symbolic = found.dtype == object and all(isinstance(w, int | Dim) for w in found.flat)
    if found.dtype.kind not in "iu" and not symbolic:
        raise ArgumentError(f"pad: cannot use pad_width={pad_width!r} (integers required)")
    if found.shape not in {(), (1,), (2,), (1, 1), (1, 2), (rank(x), 1), (rank(x), 2)}:
        raise ArgumentError(
            f"pad: cannot pad {type_of(x)} by pad_width={pad_width!r} "
            f"(a number, a pair or {rank(x)} pairs required)"
        )
    return np.broadcast_to(found, (rank(x), 2)).tolist()


def _pad_constant(x: Any, widths: list, fill: Any) -> Any:
    found = type_of(x)
    zeros = (0,) * found.ndim
    if np.ndim(fill) == 0:
        low, high = (tuple(pair[side] for pair in widths) for side in (0, 1))
        number = promote.as_type(fill, found.dtype, found.weak, "pad")
        return ops.pad(x, number, low=low, high=high, interior=zeros)
    fills = np.broadcast_to(np.asarray(fill), (found.ndim, 2))
    for axis, pair in enumerate(widths):
        for side, width in enumerate(pair):
            at = tuple(width if i == axis else 0 for i in range(found.ndim))
            low, high = (at, zeros) if side == 0 else (zeros, at)
            number = fills[axis, side].astype(found.dtype)
            x = ops.pad(x, number, low=low, high=high, interior=zeros)
    return x


def _pad_axis(x: Any, axis: int, low: Size, high: Size, mode: Any) -> Any:
    """NumPy says which element goes where; runs of neighbours become slices of x."""
    if low == high == 0:
        return x
    size = type_of(x).shape[axis]
    if size == 0:
        raise ShapeError(f"pad: cannot pad {type_of(x)} with mode={mode!r} (axis {axis} is empty)")
    if isinstance(size, Dim) or isinstance(low, Dim) or isinstance(high, Dim):
        return _pad_once(x, axis, low, high, mode)
    source = np.pad(np.arange(size), (low, high), mode=mode).tolist()
    parts = [_run(x, axis, run) for run in _runs(source)]
    return parts[0] if len(parts) == 1 else ops.concatenate(*parts, axis=axis)


def _pad_once(x: Any, axis: int, low: Size, high: Size, mode: str) -> Any:
    """Symbolic sizes: what is added must come from the array without starting over."""
    size = type_of(x).shape[axis]
    if mode == "edge":
        first, last = cut_out(x, axis, 0, 1), cut_out(x, axis, size - 1, size)
        return ops.concatenate(repeated(first, low, axis), x, repeated(last, high, axis), axis=axis)
    inner = 1 if mode == "reflect" else 0  # the edge itself is not repeated
    if not (at_most(low + inner, size) and at_most(high + inner, size)):
        raise UndecidedComparison(
            f"pad: cannot pad {type_of(x)} with mode={mode!r} "
            f"(axis {axis}: by {low} and {high}, which may be more than {size - inner})",
            f"declare a larger lower bound of the size of axis {axis} in dims",
            (low if at_most(high, low) else high, "<=", size - inner),
        )
    if mode == "wrap":
        before, after = cut_out(x, axis, size - low, size), cut_out(x, axis, 0, high)
    else:
        before, after = (
            ops.reverse(cut_out(x, axis, start, start + width), axes=(axis,))
            for start, width in ((inner, low), (size - inner - high, high))
        )
    return ops.concatenate(before, x, after, axis=axis)


def _runs(source: list[int]) -> list[tuple[int, int, int]]:
    """(first, step, count) of maximal runs with a step of 1, -1 or 0."""
    runs: list[tuple[int, int, int]] = []
    for at in source:
        if runs:
            first, step, count = runs[-1]
            gap = at - (first + step * (count - 1))
            if (count == 1 and abs(gap) <= 1) or gap == step:
                runs[-1] = (first, gap, count + 1)
                continue
        runs.append((at, 1, 1))
    return runs


def _run(x: Any, axis: int, run: tuple[int, int, int]) -> Any:
    first, step, count = run
    if step == 0:
        return repeated(cut_out(x, axis, first, first + 1), count, axis)
    if step == 1 or count == 1:
        return cut_out(x, axis, first, first + count)
    return ops.reverse(cut_out(x, axis, first - count + 1, first + 1), axes=(axis,))
