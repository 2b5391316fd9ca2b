"""Softmax and related functions, and normalisation over axes.

Each is one max or mean and one sum over the same axes, the form that becomes a single kernel. Sums
of exponentials are those of rune.scipy.special. Half types are normalised in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError
from rune.nn.support import real
from rune.ops import conventions as c
from rune.scipy.special.arguments import rounded, widened
from rune.scipy.special.sums import logsumexp, masked_log_softmax, masked_softmax
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike

Axis = int | Sequence[int] | None


def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) over axes, without overflow.

    Shapes: any -> [] unless an axis is given. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array or is complex; AxisError for an axis out of
            range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.logmeanexp(rnp.array([1e4, 1e4]))
    Array(10000., f32[], cpu:0)
    """
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    counts = rnp.ones(rnp.shape(x), total.dtype)
    count = rnp.sum(counts, axis, keepdims=keepdims, where=where)
    return total - rnp.log(count)


@tiered
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)) over an axis, without overflow; 0 where the mask is False.

    Shapes: any, unchanged. Types: real; bools and integers become floats.
    Errors: a slice that is all -inf, or holds +inf or NaN, gives NaN.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.softmax(rnp.array([1e4, 1e4]))
    Array([0.5, 0.5], f32[2], cpu:0)
    """
    return masked_softmax(x, axis, where)


@tiered
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)) over an axis, without underflow; -inf where the mask is False.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array or is complex; AxisError for an axis out of
            range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.log_softmax(rnp.array([1e4, -1e4]))
    Array([     0., -20000.], f32[2], cpu:0)
    """
    return masked_log_softmax(x, axis, where)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """1 at the class of each label, else 0; all 0 for a label outside 0…num_classes-1.

    Shapes: x [*I] -> [*I, num_classes], the new axis at `axis`. Types: f32 unless given.
    Errors: DtypeError if an argument is not an array or the dtype is unknown; AxisError for an axis
            out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.one_hot(rnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], f32[2,3], cpu:0)
    """
    labels = rnp.asarray(x)
    is_whole = not isinstance(num_classes, float | str | tuple | list)
    if not is_whole or num_classes < 0:
        raise ArgumentError(f"one_hot: cannot use {num_classes=} (a whole number required)")
    if labels.dtype == rnp.bool_:
        raise ArgumentError("one_hot: cannot use bools as labels (integers required)")
    return rnp.astype(is_class(labels, num_classes, axis), dtype)


def is_class(labels: Array, count: Size, axis: int) -> Array:
    """Whether each label is each of the classes 0…count-1, which stand along a new axis."""
    labels = rnp.expand_dims(labels, axis)
    if labels.dtype.itemsize < 4:
        labels = rnp.astype(labels, rnp.result_type(labels, rnp.int32))
    spread = tuple(-1 if i == axis % labels.ndim else 1 for i in range(labels.ndim))
    return rnp.equal(labels, rnp.arange(count, dtype=labels.dtype).reshape(spread))


# --- normalisation ----------------------------------------------------------------------------


def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) over an axis.

    algorithm: accepted without effect; the variance is always the mean squared deviation.
    Shapes: x any, unchanged; mean and variance broadcast to it.
    Types:  x, mean and variance promoted together; bools and integers become floats.
    Errors: DtypeError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.standardize(rnp.array([-1.0, 1.0]), epsilon=0.0)
    Array([-1.,  1.], f32[2], cpu:0)
    """
    known = [v for v in (mean, variance) if v is not None]
    x, dtype = widened(c.same_dtype("standardize", x, *known)[0])
    if mean is None:
        mean = rnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        variance = rnp.var(x, axis, keepdims=True, where=where, mean=mean)
    return rounded((x - mean) * _reciprocal_root(variance, epsilon), dtype)


def _reciprocal_root(variance: ArrayLike, epsilon: ArrayLike) -> Array:
    return ops.rsqrt(real(rnp.add(variance, epsilon)))


def layer_norm(
    x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, axis: Axis = -1, epsilon: float = 1e-5
) -> Array:
    """`standardize`, then times scale and plus bias. Source: Ba et al. 2016, arXiv:1607.06450.

    Shapes: scale and bias broadcast against x.
    Types:  bools and integers become floats.
    Errors: DtypeError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.layer_norm(rnp.array([-1.0, 1.0]), scale=2.0, bias=1.0, epsilon=0.0)
    Array([-1.,  3.], f32[2], cpu:0)
    """
    out = standardize(x, axis, epsilon=epsilon)
    out = out if scale is None else out * scale
    return out if bias is None else out + bias


def rms_norm(x: ArrayLike, scale: ArrayLike | None = None, axis: Axis = -1, epsilon: float = 1e-5) -> Array:
    """x / sqrt(mean(x²) + epsilon) over an axis, times scale.

    Shapes: x any, unchanged; scale broadcasts to it. Types: bools and integers become floats.
    Source: Zhang & Sennrich 2019, arXiv:1910.07467.
    Errors: DtypeError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.rms_norm(rnp.array([2.0, -2.0]), epsilon=0.0)
    Array([ 1., -1.], f32[2], cpu:0)
    """
    x, dtype = widened(x)
    square = rnp.mean(x * x, axis, keepdims=True)
    out = rounded(x * _reciprocal_root(square, epsilon), dtype)
    return out if scale is None else out * scale
