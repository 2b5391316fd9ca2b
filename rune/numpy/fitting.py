"""Polynomials that fit points by least squares."""

from __future__ import annotations

from typing import Any, Literal, overload

from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, rank, static_int, value
from rune.numpy.linalg.generalised_inverses import lstsq
from rune.numpy.linalg.solves import inv
from rune.numpy.polynomials import vander
from rune.numpy.products import outer
from rune.numpy.transcendental import sqrt
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops.complex_numbers import real_dtype
from rune.ops.family import size_value, wide
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: object = False,
) -> tuple[Array, Array, Array, Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: object = False,
) -> tuple[Array, Array, Array, Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    *,
    cov: Literal[True, "unscaled"],
) -> tuple[Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None,
    full: Literal[False],
    w: ArrayLike | None,
    cov: Literal[True, "unscaled"],
) -> tuple[Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: object = False,
) -> Any: ...
@tiered
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: object = False
) -> Array | tuple[Array, ...]:
    """The polynomial of degree `deg` nearest to the points (x, y), the highest power first.

    Shapes: [M], [M] or [M, K] -> [deg + 1] or [deg + 1, K].
    Types:  bools and integers become floats, promoted together.
    rcond:  singular values below this fraction of the largest count as zero; by default M eps.
    w:      weights of the residuals.
    full:   the result is (p, residuals, rank, singular values, rcond).
    cov:    the result is (p, its covariance), scaled by the residuals unless "unscaled".
    Errors: ShapeError for points that do not match, ArgumentError for a negative degree.
    Source: least squares by the singular values of the scaled Vandermonde matrix.

    >>> import rune.numpy as rnp
    >>> rnp.polyfit(rnp.arange(4.0), rnp.array([1.0, 3.0, 5.0, 7.0]), 1).round(3)
    Array([2., 1.], f32[2], cpu:0)
    """
    order = static_int("polyfit", "a degree", deg) + 1
    x, y = c.same_dtype("polyfit", *(inexact("polyfit", value("polyfit", v)) for v in (x, y)))
    _check_points(x, y, order)
    x_dtype = type_of(x).dtype
    x, y = (ops.cast(v, wide(x_dtype)) for v in (x, y))  # squares of powers would overflow in half types
    matrix, right = vander(x, order), y
    if w is not None:
        w = c.astype(value("polyfit", w), type_of(x).dtype)
        matrix, right = matrix * w[:, None], right * (w[:, None] if rank(y) == 2 else w)
    scale = sqrt((matrix * matrix).sum(axis=0))
    matrix = matrix / scale
    dtype = real_dtype(type_of(x).dtype)
    cutoff = size_value(type_of(x).shape[0], dtype) * finfo(dtype).eps if rcond is None else rcond
    solution, residuals, matrix_rank, values = lstsq(matrix, right, cutoff)
    p = ops.cast((solution.T / scale).T, x_dtype)
    if full:
        return p, residuals, matrix_rank, values, cutoff
    return (p, ops.cast(_covariance(matrix, scale, residuals, x, order, cov), x_dtype)) if cov else p


def _check_points(x: ArrayLike, y: ArrayLike, order: int) -> None:
    if order < 1:
        raise ArgumentError(f"polyfit: cannot fit a polynomial of degree {order - 1}")
    if rank(x) != 1 or rank(y) not in (1, 2) or type_of(x).shape[0] != type_of(y).shape[0]:
        why = "one vector of places, one value or row for each, required"
        raise ShapeError(f"polyfit: cannot fit {type_of(y)} at {type_of(x)} ({why})")


def _covariance(matrix: Array, scale: Array, residuals: Array, x: Array, order: int, cov: Any) -> Array:
    """The covariance of the coefficients, for one column of values or several."""
    base = inv(c.matmul(matrix.T, matrix)) / outer(scale, scale)
    if isinstance(cov, str):
        if cov != "unscaled":
            raise ArgumentError(f"polyfit: cannot use cov={cov!r} (a bool or 'unscaled')")
        return base
    points = type_of(x).shape[0]
    spare = points - order
    if spare <= 0:
        raise ArgumentError(
            f"polyfit: cannot scale the covariance of {order} coefficients by {points} points "
            "(more points than coefficients required)"
        )
    factor = residuals / spare
    return base * factor[0] if type_of(factor).shape == (1,) else base[:, :, None] * factor
