"""Sums of exponentials over axes, without overflow.

The maximum that keeps exp from overflowing carries no derivative: it cancels, so its derivative
would only add noise. Half types are summed in f32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.numpy.arguments import inexact
from rune.ops import conventions as c
from rune.ops.complex_numbers import real_dtype
from rune.scipy.special.arguments import rounded, widened
from rune.typing import ArrayLike, Axis


def largest_of(x: Array, axis: Axis, where: ArrayLike | None) -> Array:
    """The largest element of each slice (-inf for none), as a constant in derivatives."""
    initial = -rnp.inf if where is not None or 0 in x.shape else None
    return rnp.max(ops.stop_gradient(x), axis, keepdims=True, initial=initial, where=where)


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis,
    b: ArrayLike | None,
    keepdims: bool,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any: ...
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """log(sum(b exp(a))) over axes, without overflow; -inf for a slice of -inf.

    return_sign: also returns the sign of the sum; the logarithm is then that of its magnitude.
    Shapes: a without the axes, or with 1 there if keepdims; a and b broadcast together,
            where to them.
    Types:  real, the common dtype of a and b; bools and integers become floats.
    Errors: a negative sum gives NaN without `return_sign`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import logsumexp
    >>> logsumexp(rnp.array([1e4, -1e4]))
    Array(10000., f32[], cpu:0)
    """
    if b is not None:
        a, b = rnp.broadcast_arrays(*c.same_dtype("logsumexp", a, b))
    x, dtype = widened(inexact("logsumexp", a))
    largest = largest_of(rnp.real(x), axis, _weighty(b, where))
    # An infinite shift would give inf - inf = NaN; with 0, exp gives the sum itself: 0 or inf.
    shift = rnp.where(rnp.isfinite(largest), largest, 0.0)
    difference = _inside(x - shift, where)
    terms = rnp.exp(difference) if b is None else rnp.exp(_bounded(difference, b)) * b
    total = rnp.sum(terms, axis, keepdims=keepdims, where=where)
    out = rnp.log(rnp.abs(total) if return_sign else total)
    out = rounded(out + rnp.reshape(shift, out.shape), real_dtype(np.dtype(dtype)) if return_sign else dtype)
    return (out, rounded(rnp.sign(total), dtype)) if return_sign else out


def _weighty(b: ArrayLike | None, where: ArrayLike | None) -> ArrayLike | None:
    """The mask of elements with a nonzero weight, which determine how large a sum may be."""
    if b is None:
        return where
    return rnp.not_equal(b, 0) if where is None else rnp.logical_and(where, rnp.not_equal(b, 0))


def _inside(x: Array, where: ArrayLike | None) -> Array:
    """x in the mask, 0 elsewhere: elements outside may be so large that exp overflows."""
    return x if where is None else rnp.where(where, x, 0.0)


def _bounded(x: Array, b: ArrayLike) -> Array:
    """x, clipped where its weight is 0 so that exp stays finite: 0 · inf is NaN."""
    most = math.log(float(rnp.finfo(x.dtype).max)) - 1
    return rnp.where(rnp.equal(b, 0), rnp.minimum(x, most), x)


def softmax(x: ArrayLike, axis: Axis = None) -> Array:
    """exp(x) / sum(exp(x)) over axes (all by default), without overflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: a slice that is all -inf, or holds +inf or NaN, gives NaN.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import softmax
    >>> softmax(rnp.array([1e4, 1e4]))
    Array([0.5, 0.5], f32[2], cpu:0)
    """
    return masked_softmax(x, axis, None)


def masked_softmax(x: ArrayLike, axis: Axis, where: ArrayLike | None) -> Array:
    """`softmax` of the elements in the mask, 0 elsewhere."""
    x, dtype = widened(x)
    terms = rnp.exp(_inside(x - largest_of(x, axis, where), where))
    total = rnp.sum(terms, axis, keepdims=True, where=where)
    if where is None:
        return rounded(terms / total, dtype)
    # The sum is 0 only if there are no elements: then all results are 0 too.
    shares = terms / rnp.where(total == 0, 1.0, total)
    return rounded(rnp.where(where, shares, 0.0), dtype)


def log_softmax(x: ArrayLike, axis: Axis = None) -> Array:
    """log(softmax(x)) over axes (all by default), without underflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array or is complex; AxisError for an axis out of
            range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import log_softmax
    >>> log_softmax(rnp.array([0.0, 1e4]))
    Array([-10000.,      0.], f32[2], cpu:0)
    """
    return masked_log_softmax(x, axis, None)


def masked_log_softmax(x: ArrayLike, axis: Axis, where: ArrayLike | None) -> Array:
    """`log_softmax` of the elements in the mask, -inf elsewhere."""
    x, dtype = widened(x)
    difference = _inside(x - largest_of(x, axis, where), where)
    out = difference - rnp.log(rnp.sum(rnp.exp(difference), axis, keepdims=True, where=where))
    return rounded(out if where is None else rnp.where(where, out, -rnp.inf), dtype)
