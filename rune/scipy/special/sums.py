"""Sums of exponentials over axes, without overflow.

The maximum that keeps exp from overflowing carries no derivative: it cancels, so its own would only
add noise. Half types are summed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rune.numpy as rnp
from rune import ops

Axis = int | Sequence[int] | None


def _widened(x: Any) -> tuple[Any, Any]:
    """`x` as a floating array, half types in f32, and the dtype of the result."""
    x = rnp.asarray(x)
    x = x if rnp.issubdtype(x.dtype, rnp.inexact) else rnp.true_divide(x, 1)
    half = rnp.finfo(x.dtype).bits < 32
    return (rnp.astype(x, rnp.float32) if half else x), x.dtype


def _rounded(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else rnp.astype(x, dtype)


def _largest(x: Any, axis: Axis, where: Any) -> Any:
    """The largest element of each slice (-inf of none), 0 where that is infinite."""
    initial = -rnp.inf if where is not None or 0 in x.shape else None
    found = rnp.max(ops.stop_gradient(x), axis, keepdims=True, initial=initial, where=where)
    # An infinite shift would give inf - inf = NaN; with 0, exp makes the sum what it is: 0 or inf.
    return rnp.where(rnp.isfinite(found), found, 0.0)


def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False, return_sign: bool = False,
    where: Any = None,
) -> Any:  # fmt: skip
    """log(sum(b exp(a))) over axes, without overflow; -inf for a slice of -inf.

    return_sign: also the sign of the sum, whose magnitude the logarithm is then taken of.
    Errors: a negative sum gives NaN without `return_sign`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import logsumexp
    >>> logsumexp(rnp.array([1e4, -1e4]))
    Array(10000., f32[], cpu:0)
    """
    x, kept = _widened(a)
    shift = _largest(x, axis, where)
    terms = rnp.exp(x - shift)
    total = rnp.sum(terms if b is None else terms * b, axis, keepdims=keepdims, where=where)
    out = rnp.log(rnp.abs(total) if return_sign else total)
    out = _rounded(out + rnp.reshape(shift, out.shape), kept)
    return (out, _rounded(rnp.sign(total), kept)) if return_sign else out


def softmax(x: Any, axis: Axis = None) -> Any:
    """exp(x) / sum(exp(x)) over axes (all by default), without overflow.

    Errors: a slice that is all -inf, or holds +inf or NaN, gives NaN.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import softmax
    >>> softmax(rnp.array([1e4, 1e4]))
    Array([0.5, 0.5], f32[2], cpu:0)
    """
    x, kept = _widened(x)
    largest = rnp.max(ops.stop_gradient(x), axis, keepdims=True)
    terms = rnp.exp(x - largest)
    return _rounded(terms / rnp.sum(terms, axis, keepdims=True), kept)


def log_softmax(x: Any, axis: Axis = None) -> Any:
    """log(softmax(x)) over axes (all by default), without underflow.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import log_softmax
    >>> log_softmax(rnp.array([0.0, 1e4]))
    Array([-10000.,      0.], f32[2], cpu:0)
    """
    x, kept = _widened(x)
    moved = x - rnp.max(ops.stop_gradient(x), axis, keepdims=True)
    return _rounded(moved - rnp.log(rnp.sum(rnp.exp(moved), axis, keepdims=True)), kept)
