"""Batch normalisation without hidden state: it takes running statistics and returns new ones.

Statistics are taken over the batch and all axes but the channel, and over the lanes of a named
axis: of vmap, or of the devices of pmap. Every lane then normalises by the same numbers and has
the same next state, as if all lanes were one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import lax, ops
from rune.array import Array
from rune.core.types import Shape
from rune.core.values import Value
from rune.errors import ShapeError
from rune.nn.support import record
from rune.numpy.arguments import static_int
from rune.ops.conventions import normalised_axis
from rune.scipy.special.arguments import rounded, widened
from rune.typing import ArrayLike, DTypeLike


class BatchNormState(NamedTuple):
    """Running mean and variance of every channel, f32[C], and the number of batches seen.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> _, state = nn.batch_norm(rnp.array([[1.0], [3.0]]), nn.batch_norm_state(1), momentum=None)
    >>> state.mean, state.count
    (Array([2.], f32[1], cpu:0), Array(1, i32[], cpu:0))
    """

    mean: Any
    var: Any
    count: Any


def batch_norm_state(channels: int, dtype: DTypeLike = "f32") -> BatchNormState:
    """The state before the first batch: mean 0, variance 1.

    Shapes: mean and var [channels], count []. Types: `dtype`; the count i32.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype, and
            unless `channels` is an integer.

    >>> import rune.nn as nn
    >>> nn.batch_norm_state(2).var
    Array([1., 1.], f32[2], cpu:0)
    """
    zeros, unit_variance = rnp.zeros(channels, dtype), rnp.ones(channels, dtype)
    return BatchNormState(zeros, unit_variance, rnp.zeros((), "i32"))


def batch_norm(
    x: ArrayLike,
    state: BatchNormState,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    training: bool = True,
    momentum: float | None = 0.1,
    epsilon: float = 1e-5,
    axis: int = 1,
    axis_name: str | Sequence[str] | None = None,
) -> tuple[Array, BatchNormState]:
    """x with mean 0 and variance 1 in every channel, times scale plus bias; and the next state.

    training: normalise by the batch's statistics, and move the state towards them by `momentum`
              (None: the mean over all batches so far); otherwise use the state, unchanged.
    axis:     the axis of channels.   axis_name: named axes whose lanes form one batch.
    Shapes:   x [*A, C, *B], scale, bias and state [C] -> that of x.
    Types:    half types are normalised in f32. The state's variance is the unbiased one.
    Source: Ioffe & Szegedy 2015, arXiv:1502.03167; numbers as torch.nn.BatchNorm.
    Errors: DtypeError if an argument is not an array or is complex; AxisError for an axis out of
            range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> y, state = nn.batch_norm(rnp.array([[1.0], [3.0]]), nn.batch_norm_state(1), epsilon=0.0)
    >>> y.reshape(-1), state.mean
    (Array([-1.,  1.], f32[2], cpu:0), Array([0.2], f32[1], cpu:0))
    """
    record("batch_norm", state, BatchNormState)
    wide, dtype = widened(x)
    channel = normalised_axis("batch_norm", axis, wide.type)
    others = tuple(a for a in range(wide.ndim) if a != channel)
    shape = tuple(1 if a in others else d for a, d in enumerate(wide.shape))
    if training:
        mean, var, count = _statistics(wide, others, axis_name)
        state = _updated_state(state, ops.stop_gradient(mean), ops.stop_gradient(var), count, momentum)
    else:
        mean, var = state.mean, state.var
    out = _normalised(wide, mean, var, shape, epsilon)
    out = out if scale is None else out * rnp.reshape(scale, shape)
    out = out if bias is None else out + rnp.reshape(bias, shape)
    return rounded(out, dtype), state


def _statistics(x: Array, axes: tuple[int, ...], axis_name: Any) -> tuple[Value, Value, Value]:
    """Mean and variance of each channel, and the number of elements, over all lanes."""
    count: Any = 1
    for axis in axes:
        count = count * x.shape[axis]
    mean = rnp.mean(x, axes)
    if axis_name is None:
        return mean, rnp.mean(_deviations(x, mean, axes), axes), count
    mean = lax.pmean(mean, axis_name)
    var = lax.pmean(rnp.mean(_deviations(x, mean, axes), axes), axis_name)
    return mean, var, count * lax.psum(1, axis_name)


def _deviations(x: ArrayLike, mean: ArrayLike, axes: tuple[int, ...]) -> Array:
    return rnp.square(x - rnp.expand_dims(mean, axes))


def _updated_state(state: BatchNormState, mean: Array, var: ArrayLike, n: Any, momentum: float | None) -> Any:
    count = state.count + 1
    rate = 1.0 / rnp.astype(count, state.mean.dtype) if momentum is None else momentum
    unbiased_variance = var * (n / rnp.maximum(n - 1, 1))
    return BatchNormState(
        rnp.astype((1 - rate) * state.mean + rate * mean, state.mean.dtype),
        rnp.astype((1 - rate) * state.var + rate * unbiased_variance, state.var.dtype),
        count,
    )


def _normalised(x: ArrayLike, mean: Any, var: Any, shape: Shape, epsilon: float) -> Array:
    root = ops.rsqrt(rnp.reshape(var, shape) + epsilon)
    return (x - rnp.reshape(mean, shape)) * root


def group_norm(
    x: ArrayLike, groups: int, scale: ArrayLike | None = None, bias: ArrayLike | None = None, epsilon: float = 1e-5
) -> Array:
    """x standardised over each of `groups` groups of channels, times scale plus bias.

    Shapes: x [N, C, *S], scale and bias [C] -> that of x.
    Types:  that of `x`; bools and integers become floats.
    Errors: ShapeError for x without channels, or channels that the groups do not divide.
    Source: Wu & He 2018, arXiv:1803.08494. One channel per group is instance normalisation.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.group_norm(rnp.array([[1.0, 3.0, 5.0, 7.0]]), 2, epsilon=0.0)
    Array([[-1.,  1., -1.,  1.]], f32[1,4], cpu:0)
    """
    wide, dtype = widened(x)
    groups = static_int("group_norm", "groups", groups)
    channels = wide.shape[1] if wide.ndim > 1 else None
    if channels is None or groups < 1 or (isinstance(channels, int) and channels % groups):
        raise ShapeError(
            f"group_norm: cannot split {wide.type} into {groups} groups ([N, C, *S] required, and groups that divide C)"
        )
    split = rnp.reshape(wide, (wide.shape[0], groups, -1))
    mean = rnp.mean(split, -1, keepdims=True)
    var = rnp.mean(rnp.square(split - mean), -1, keepdims=True)
    out = rnp.reshape((split - mean) * ops.rsqrt(var + epsilon), wide.shape)
    shape = (1, -1, *(1,) * (wide.ndim - 2))
    out = out if scale is None else out * rnp.reshape(scale, shape)
    out = out if bias is None else out + rnp.reshape(bias, shape)
    return rounded(out, dtype)
