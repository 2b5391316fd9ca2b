"""Softmax and its kin, and normalisation over axes.

Each is one max or mean and one sum over the same axes, the form that becomes a single kernel. The
maximum that keeps exp from overflowing carries no derivative: it cancels, so its own would only
add noise. Half types are normalised in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rune.numpy as rnp
from rune import ops
from rune.errors import ArgumentError
from rune.nn.support import real, rounded, widened

Axis = int | Sequence[int] | None


def largest_of(x: Any, axis: Axis, where: Any) -> Any:
    """The largest element of each slice (-inf of none), as a constant of differentiation."""
    initial = -rnp.inf if where is not None or 0 in x.shape else None
    return rnp.max(ops.stop_gradient(x), axis, keepdims=True, initial=initial, where=where)


def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False, return_sign: bool = False,
    where: Any = None,
) -> Any:  # fmt: skip
    """log(sum(b exp(a))) over axes, without overflow; -inf for a slice of -inf.

    return_sign: also the sign of the sum, whose magnitude the logarithm is then taken of.
    Errors: a negative sum gives NaN without `return_sign`.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.logsumexp(rnp.array([1e4, -1e4]))
    Array(10000., f32[], cpu:0)
    """
    x, kept = widened(a)
    largest = largest_of(x, axis, where)
    # An infinite shift would give inf - inf = NaN; with 0, exp makes the sum what it is: 0 or inf.
    shift = rnp.where(rnp.isfinite(largest), largest, 0.0)
    terms = rnp.exp(x - shift)
    total = rnp.sum(terms if b is None else terms * b, axis, keepdims=keepdims, where=where)
    out = rnp.log(rnp.abs(total) if return_sign else total)
    out = rounded(out + rnp.reshape(shift, out.shape), kept)
    return (out, rounded(rnp.sign(total), kept)) if return_sign else out


def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(x))) over axes, without overflow.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.logmeanexp(rnp.array([1e4, 1e4]))
    Array(10000., f32[], cpu:0)
    """
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    ones = rnp.ones(rnp.shape(x), total.dtype)
    count = rnp.sum(ones, axis, keepdims=keepdims, where=where)
    return total - rnp.log(count)


def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over an axis, without overflow; 0 where the mask is False.

    Errors: a slice that is all -inf, or holds +inf or NaN, gives NaN.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.softmax(rnp.array([1e4, 1e4]))
    Array([0.5, 0.5], f32[2], cpu:0)
    """
    x, kept = widened(x)
    terms = rnp.exp(x - largest_of(x, axis, where))
    if where is not None:
        terms = rnp.where(where, terms, 0.0)
    return rounded(terms / rnp.sum(terms, axis, keepdims=True), kept)


def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """log(softmax(x)) over an axis, without underflow; -inf where the mask is False.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.log_softmax(rnp.array([1e4, -1e4]))
    Array([     0., -20000.], f32[2], cpu:0)
    """
    x, kept = widened(x)
    shifted = x - largest_of(x, axis, where)
    out = shifted - rnp.log(rnp.sum(rnp.exp(shifted), axis, keepdims=True, where=where))
    return rounded(out if where is None else rnp.where(where, out, -rnp.inf), kept)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Any:
    """1 at the class of each label, else 0; all 0 for a label outside 0…num_classes-1.

    Shapes: x [*I] -> [*I, num_classes], the new axis at `axis`. Types: f32 unless given.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.one_hot(rnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], f32[2,3], cpu:0)
    """
    labels = rnp.asarray(x)
    if labels.dtype == rnp.bool_:
        raise ArgumentError("one_hot: cannot use bools as labels (integers required)")
    return rnp.astype(is_class(labels, num_classes, axis), dtype)


def is_class(labels: Any, count: Any, axis: int) -> Any:
    """Whether each label is each of the classes 0…count-1, which stand along a new axis."""
    labels = rnp.expand_dims(labels, axis)
    if labels.dtype.itemsize < 4:
        labels = rnp.astype(labels, rnp.result_type(labels, rnp.int32))
    spread = tuple(-1 if i == axis % labels.ndim else 1 for i in range(labels.ndim))
    return rnp.equal(labels, rnp.arange(count, dtype=labels.dtype).reshape(spread))


# --- normalisation ----------------------------------------------------------------------------


def standardize(
    x: Any, axis: Axis = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5,
    where: Any = None, *, algorithm: str = "fast",
) -> Any:  # fmt: skip
    """(x - mean) / sqrt(variance + epsilon) over an axis.

    algorithm: accepted and of no consequence; the variance is always the mean squared deviation.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.standardize(rnp.array([-1.0, 1.0]), epsilon=0.0)
    Array([-1.,  1.], f32[2], cpu:0)
    """
    x, kept = widened(x)
    if mean is None:
        mean = rnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        variance = rnp.var(x, axis, keepdims=True, where=where, mean=mean)
    return rounded((x - mean) * _reciprocal_root(variance, epsilon), kept)


def _reciprocal_root(variance: Any, epsilon: Any) -> Any:
    return ops.rsqrt(real(rnp.add(variance, epsilon)))


def layer_norm(
    x: Any, scale: Any = None, bias: Any = None, axis: Axis = -1, epsilon: float = 1e-5
) -> Any:
    """`standardize`, then times scale and plus bias. Source: Ba et al. 2016, arXiv:1607.06450.

    Shapes: scale and bias broadcast against x.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.layer_norm(rnp.array([-1.0, 1.0]), scale=2.0, bias=1.0, epsilon=0.0)
    Array([-1.,  3.], f32[2], cpu:0)
    """
    out = standardize(x, axis, epsilon=epsilon)
    out = out if scale is None else out * scale
    return out if bias is None else out + bias


def rms_norm(x: Any, scale: Any = None, axis: Axis = -1, epsilon: float = 1e-5) -> Any:
    """x / sqrt(mean(x²) + epsilon) over an axis, times scale.

    Source: Zhang & Sennrich 2019, arXiv:1910.07467.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.rms_norm(rnp.array([2.0, -2.0]), epsilon=0.0)
    Array([ 1., -1.], f32[2], cpu:0)
    """
    x, kept = widened(x)
    square = rnp.mean(x * x, axis, keepdims=True)
    out = rounded(x * _reciprocal_root(square, epsilon), kept)
    return out if scale is None else out * scale
