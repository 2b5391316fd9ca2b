"""Covariance and correlation of variables that were observed together."""

from __future__ import annotations

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import inexact, rank, value
from rune.numpy.joining import concatenate
from rune.numpy.matrices import diagonal
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.complex_numbers import real_dtype
from rune.ops.family import size_value, wide
from rune.ops.promote import apply, constant
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike


def _variables(name: str, m: ArrayLike, y: ArrayLike | None, rowvar: bool, dtype: DTypeLike | None) -> Array:
    """Variables as rows, observations as columns, in floats."""
    both = [inexact(name, value(name, x)) for x in (m, y) if x is not None]
    if any(rank(x) > 2 for x in both):
        raise ShapeError(f"{name}: cannot take {', '.join(str(type_of(x)) for x in both)} (rank 2 at most)")
    rows = [_rows(x, rowvar) for x in c.same_dtype(name, *both)]
    rows = rows[:1] if type_of(rows[0]).shape[0] == 0 else rows  # as in NumPy: no variables, no covariances
    variables = rows[0] if len(rows) == 1 else concatenate(rows, 0)
    return variables if dtype is None else c.astype(variables, dtypes.as_dtype(dtype))


def _rows(x: Array, rowvar: bool) -> Array:
    if rank(x) < 2:
        return c.reshape(x, (1, -1))
    return x if rowvar else c.transpose(x)


def _weights(
    fweights: ArrayLike | None, aweights: ArrayLike | None, count: Size, like: ArrayLike
) -> tuple[Value | None, Value | None]:
    """(weight of each observation or None, only the importance weights or None)."""
    real = real_dtype(type_of(like).dtype)
    product = None
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        w = value("cov", weights)
        if type_of(w).shape != (count,):
            raise ShapeError(f"cov: cannot use {name}={type_of(w)} ({count} observations)")
        if name == "fweights" and type_of(w).dtype not in dtypes.INTEGER:
            raise DtypeError(f"cov: cannot use {name}={type_of(w)} (integer dtype required)")
        w = c.astype(w, real)
        product = w if product is None else ops.mul(product, w)
    return product, None if aweights is None else c.astype(value("cov", aweights), real)


@tiered
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance of every pair of variables.

    Shapes: m [N, K] with K observations of N variables (rowvar=False: [K, N]) -> [N, N]; one
            variable gives a scalar. `y` adds variables; weights are [K].
    Types:  bools and integers become floats.
    ddof:   subtracted from the number of observations; 1, or 0 if `bias`.
    Errors: ShapeError above rank 2 or for weights of another shape; DtypeError for fweights that
            are not integers; ArgumentError for a ddof that is not an integer.

    >>> import rune.numpy as rnp
    >>> rnp.cov(rnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], f32[2,2], cpu:0)
    """
    if ddof is not None and not isinstance(ddof, int):
        raise ArgumentError(f"cov: cannot use ddof={ddof!r} (integer required)")
    x = _variables("cov", m, y, rowvar, dtype)
    less = (0 if bias else 1) if ddof is None else ddof
    observations = c.astype(x, wide(type_of(x).dtype))
    weights = _weights(fweights, aweights, type_of(x).shape[1], observations)
    return c.astype(c.squeeze(_covariance(observations, *weights, less)), type_of(x).dtype)


def _covariance(x: Array, w: Value | None, importance: Value | None, ddof: int) -> Array:
    """The covariances [N, N] of N variables; see `_weights`."""
    if type_of(x).shape[0] == 0:
        return ops.broadcast(constant(0, x), shape=(0, 0), axes=())
    mean, divisor = _moments(x, w, importance, ddof)
    deviations = apply(ops.sub, x, mean)
    weighted_deviations = deviations if w is None else apply(ops.mul, deviations, w)
    total = c.matmul(weighted_deviations, c.transpose(c.conj(deviations)))
    return apply(ops.div, total, c.astype(divisor, type_of(x).dtype))


def _moments(x: ArrayLike, w: Value | None, importance: Value | None, ddof: int) -> tuple[Value, Value]:
    """(mean of each variable as a column, divisor of the sums of products)."""
    if w is None:
        dtype = real_dtype(type_of(x).dtype)
        count = size_value(type_of(x).shape[1], dtype)
        return st.mean(x, 1, keepdims=True), st.left_over(count, ddof)
    total = st.sum(w)
    mean = apply(ops.div, st.sum(apply(ops.mul, x, w), 1, None, True), total)
    if not ddof:
        return mean, total
    correction = (
        constant(ddof, total)
        if importance is None
        else apply(ops.div, ops.mul(st.sum(ops.mul(w, importance)), constant(ddof, total)), total)
    )
    return mean, ops.max(ops.sub(total, correction), constant(0, total))


@tiered
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> Array:
    """Pearson's correlation of every pair of variables, within [-1, 1]; arguments as for `cov`.

    NaN for a variable that does not vary.
    Shapes: as `cov`. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype;
            ShapeError for any other rank.

    >>> import rune.numpy as rnp
    >>> rnp.corrcoef(rnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], f32[2,2], cpu:0)
    """
    variables = _variables("corrcoef", x, y, rowvar, dtype)
    dtype = type_of(variables).dtype
    covariance = c.squeeze(_covariance(c.astype(variables, wide(dtype)), None, None, 1))
    if rank(covariance) == 0:
        return c.astype(ops.div(covariance, covariance), dtype)
    spread = ops.sqrt(c.real(diagonal(covariance)))
    correlation = apply(ops.div, apply(ops.div, covariance, c.expand_dims(spread, 1)), spread)
    return c.astype(c.by_parts(lambda part: c.clip(part, -1, 1), correlation), dtype)


__all__ = ["corrcoef", "cov"]
