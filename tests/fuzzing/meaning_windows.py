"""The meaning of convolutions and windowed reductions, window by window, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def _spread(x: np.ndarray, axes: Sequence[int], steps: Sequence[int], fill: Any) -> np.ndarray:
    """With step - 1 more elements between each two of an axis."""
    shape = list(x.shape)
    index = [slice(None)] * x.ndim
    for axis, step in zip(axes, steps):
        shape[axis] = max((shape[axis] - 1) * step + 1, 0)
        index[axis] = slice(None, None, step)
    out = np.full(shape, fill, x.dtype)
    out[tuple(index)] = x
    return out


def conv_general_dilated(
    x: Any,
    kernel: Any,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    feature_group_count: int = 1,
) -> Any:
    """x[batch, channels, *space] with kernel[out, channels / groups, *window]."""
    space = tuple(range(2, x.ndim))
    ones = (1,) * len(space)
    rows = np.pad(_spread(np.asarray(x), space, lhs_dilation or ones, 0), [(0, 0), (0, 0), *padding])
    weights = _spread(np.asarray(kernel), space, rhs_dilation or ones, 0)
    extents = [max((rows.shape[a] - weights.shape[a]) // s + 1, 0) for a, s in zip(space, window_strides)]
    out = np.zeros((x.shape[0], kernel.shape[0], *extents), np.result_type(x, kernel))
    kernel_groups = weights.reshape(feature_group_count, -1, *weights.shape[1:])
    for at in np.ndindex(*extents):
        box = tuple(slice(i * s, i * s + weights.shape[a]) for i, s, a in zip(at, window_strides, space))
        part = rows[(slice(None), slice(None), *box)]
        part = part.reshape(part.shape[0], feature_group_count, -1, *part.shape[2:])
        letters = "xyz"[: len(space)]
        product = np.einsum(f"bgc{letters},goc{letters}->bgo", part, kernel_groups)
        out[(slice(None), slice(None), *at)] = product.reshape(out.shape[:2])
    return out


def reduce_window(
    x: Any,
    initial: Any,
    combine: Callable[..., Any],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Any:
    """Every window of the padded array, reduced."""
    values = np.pad(np.asarray(x), padding, constant_values=initial)
    extents = [max((d - w) // s + 1, 0) for d, w, s in zip(values.shape, window, strides)]
    out = np.zeros(extents, values.dtype)
    for at in np.ndindex(*extents):
        box = tuple(slice(i * s, i * s + w) for i, s, w in zip(at, strides, window))
        out[at] = combine.reduce(values[box], axis=None, initial=initial)  # type: ignore[attr-defined]
    return out
