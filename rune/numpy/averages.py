"""Means and variances, and the reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy import reductions as r
from rune.numpy.arguments import inexact, refuse, value
from rune.ops import arithmetic as a
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops import transcendental
from rune.ops.conventions import Axis
from rune.ops.family import wide
from rune.ops.promote import apply, broadcast_to, constant, promoted


def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *,
    where: Any = None,
) -> Any:  # fmt: skip
    """Arithmetic mean of the elements where the mask is true; integers as floats.

    >>> import rune.numpy as rnp
    >>> rnp.mean(rnp.array([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], f32[2], cpu:0)
    """
    refuse("mean", out=out)
    x = value("mean", a)
    if where is None:
        return st.mean(x, axis, dtype, keepdims)
    return _masked_mean("mean", x, where, axis, dtype, keepdims)


def _in_floats(name: str, x: Any, dtype: Any) -> tuple[Any, np.dtype]:
    """x in the dtype to compute in, and the dtype of the result."""
    x = inexact(name, x if dtype is None else c.astype(x, dtypes.as_dtype(dtype)))
    found = type_of(x).dtype
    return a.cast(x, wide(found)), found


def _masked_mean(name: str, x: Any, where: Any, axis: Axis, dtype: Any, keepdims: bool) -> Any:
    x, found = _in_floats(name, x, dtype)
    mask = broadcast_to(name, c.astype(value(name, where), dtypes.bool_), type_of(x).shape)
    total = r.sum(a.select(mask, x, constant(0, x)), axis, keepdims=keepdims)
    count = r.sum(mask, axis, type_of(x).dtype, keepdims=keepdims)
    return a.cast(a.div(total, count), found)


def var(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: float | None = None,
) -> Any:  # fmt: skip
    """Mean squared distance from the mean; the divisor is the count minus `ddof` (`correction`).

    >>> import rune.numpy as rnp
    >>> rnp.var(rnp.array([1.0, 3.0]))
    Array(1., f32[], cpu:0)
    """
    refuse("var", out=out)
    x, less = value("var", a), _correction("var", ddof, correction)
    if where is None:
        return st.var(x, axis, dtype, less, keepdims, mean)
    return _masked_var("var", x, where, axis, dtype, less, keepdims, mean)


def _correction(name: str, ddof: float, correction: float | None) -> float:
    if correction is not None and ddof != 0:
        raise ArgumentError(f"{name}: cannot use both ddof and correction (they mean the same)")
    return ddof if correction is None else correction


def _masked_var(
    name: str, x: Any, where: Any, axis: Axis, dtype: Any, ddof: float, keepdims: bool, mean: Any
) -> Any:
    x, found = _in_floats(name, x, dtype)
    mask = broadcast_to(name, c.astype(value(name, where), dtypes.bool_), type_of(x).shape)
    centre = _masked_mean(name, x, mask, axis, None, True) if mean is None else mean
    distance = a.select(mask, apply(a.sub, x, centre), constant(0, x))
    total = r.sum(a.mul(distance, distance), axis, keepdims=keepdims)
    count = r.sum(mask, axis, type_of(x).dtype, keepdims=keepdims)
    return a.cast(a.div(total, apply(a.sub, count, float(ddof))), found)


def std(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: float | None = None,
) -> Any:  # fmt: skip
    """Square root of `var`; its derivative is NaN where all elements are equal.

    >>> import rune.numpy as rnp
    >>> rnp.std(rnp.array([1.0, 3.0]))
    Array(1., f32[], cpu:0)
    """
    refuse("std", out=out)
    x, found = _in_floats("std", value("std", a), dtype)
    less = _correction("std", ddof, correction)
    squared = var(x, axis, ddof=less, keepdims=keepdims, where=where, mean=mean)
    return _as(transcendental.sqrt(squared), found)


def _as(x: Any, dtype: np.dtype) -> Any:
    return a.cast(x, dtype)


def average(
    a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Weighted mean; with `returned`, (mean, sum of the weights).

    Shapes: weights as `a`, or one axis as long as `axis` of `a`.

    >>> import rune.numpy as rnp
    >>> rnp.average(rnp.array([1.0, 3.0]), weights=rnp.array([3.0, 1.0]))
    Array(1.5, f32[], cpu:0)
    """
    x = value("average", a)
    if weights is None:
        found = st.mean(x, axis, None, keepdims)
        count = r.sum(r_ones(x), axis, keepdims=keepdims)
    else:
        x, w = promoted_pair(x, value("average", weights), axis)
        count = r.sum(w, axis, keepdims=keepdims)
        found = divided(r.sum(product(x, w), axis, keepdims=keepdims), count)
    return (found, count) if returned else found
