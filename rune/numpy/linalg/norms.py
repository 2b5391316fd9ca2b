"""Norms of vectors and matrices, of every order that NumPy has.

A norm has no derivative at zero; rune uses 0 there, which is one of its subgradients, for every
order. (JAX's is NaN.) Where a single element is zero, its share is 0 likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, AxisError
from rune.numpy import reductions as r
from rune.numpy.arguments import rank
from rune.numpy.linalg.arguments import computing
from rune.numpy.linalg.spectra import svd
from rune.numpy.shapes import moveaxis
from rune.ops import conventions as c
from rune.ops.complex_numbers import is_complex, real_dtype
from rune.ops.matrix_helpers import number
from rune.ops.statistics import squared_length
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike

Axes = int | tuple[int, ...] | None


@tiered
def norm(x: ArrayLike, ord: int | float | str | None = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """A norm of vectors (one axis) or of matrices (two axes).

    ord:   None is the root of the sum of squares, over all axes if `axis` is None. For vectors: any
           number, inf, -inf, and 0, the number of nonzero elements. For matrices: "fro", "nuc", 1,
           -1, 2, -2, inf, -inf.
    axis:  None with an ord requires a vector or a matrix.

    Shapes: the axes are removed, or are 1 with keepdims.
    Types:  real: f32 and f64 unchanged, complex dtypes become that of their parts, integers f32.
    Errors: ArgumentError for an unknown order; AxisError for more than two axes.
    The derivative at zero is 0.
    Source: Golub & Van Loan 4e, §2.2 and §2.3.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.norm(rnp.array([3.0, 4.0]))
    Array(5., f32[], cpu:0)
    """
    (value,), narrow = computing("norm", x)
    if axis is None and ord is None:
        axes = tuple(range(rank(value)))
        return narrow(_of_vectors(value, 2, axes, keepdims))
    axes = c.normalised_axes("norm", axis, type_of(value))
    if len(axes) == 1:
        return narrow(_of_vectors(value, 2 if ord is None else ord, axes, keepdims))
    if len(axes) != 2:
        raise AxisError(f"norm: cannot take the axes {axes} of {type_of(value)} (one or two)")
    return narrow(_of_matrices(value, "fro" if ord is None else ord, axes, keepdims))


@tiered
def vector_norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: int | float | str = 2) -> Array:
    """A norm of vectors, with all of the axes treated as one; arguments as for `norm`.

    Shapes: the axes, all of them for None, are removed, or are 1 with keepdims.
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ArgumentError for an unknown order.
    The derivative at zero is 0.
    Source: Golub & Van Loan 4e, §2.2.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.vector_norm(rnp.array([[3.0, 4.0], [0.0, 1.0]]), axis=1)
    Array([5., 1.], f32[2], cpu:0)
    """
    (value,), narrow = computing("vector_norm", x)
    axes = c.normalised_axes("vector_norm", axis, type_of(value))
    return narrow(_of_vectors(value, ord, axes, keepdims))


@tiered
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro") -> Array:
    """A norm of matrices, over the last two axes; arguments as for `norm`.

    Shapes: [*B, M, N] -> [*B], or [*B, 1, 1] with keepdims.
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ArgumentError for an unknown order; AxisError below rank 2.
    The derivative at zero is 0.
    Source: Golub & Van Loan 4e, §2.3.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.matrix_norm(rnp.array([[3.0, 0.0], [0.0, 4.0]]), ord="nuc")
    Array(7., f32[], cpu:0)
    """
    (value,), narrow = computing("matrix_norm", x)
    axes = c.normalised_axes("matrix_norm", (-2, -1), type_of(value))
    return narrow(_of_matrices(value, ord, axes, keepdims))


# --- vectors ----------------------------------------------------------------------------------


def _magnitude(x: ArrayLike) -> Array:
    """|x| with the derivative 0 at 0."""
    return ops.abs(x) if is_complex(x) else ops.mul(x, ops.sign(x))


def _guarded(x: ArrayLike, function: Callable[[Array], Array]) -> Array:
    """`function` of x, and 0 with the derivative 0 where x is 0."""
    nothing = ops.eq(x, number(0, x))
    safe = ops.select(nothing, number(1, x), x)
    return ops.select(nothing, number(0, x), function(safe))


def _of_vectors(x: ArrayLike, ord: Array | int | float | str, axes: tuple[int, ...], keepdims: bool) -> Array:
    over = {"axis": axes, "keepdims": keepdims}
    if isinstance(ord, str):
        if ord not in ("inf", "-inf"):
            raise _unknown(ord, "vectors")
        ord = float(ord)
    if ord == float("inf"):
        return r.max(_magnitude(x), initial=0, **over)  # of no elements it is 0
    if ord == -float("inf"):
        return r.min(_magnitude(x), **over)
    if ord == 0:
        is_nonzero = c.astype(ops.ne(x, number(0, x)), real_dtype(type_of(x).dtype))
        return r.sum(is_nonzero, **over)
    if ord == 1:
        return r.sum(_magnitude(x), **over)
    if ord == 2:
        return _guarded(r.sum(squared_length(x), **over), ops.sqrt)
    return _power_mean(_magnitude(x), float(ord), over)


def _power_mean(x: ArrayLike, p: float, over: dict[str, Any]) -> Array:
    """(Σ x^p)^(1/p); for a negative p it is 0 where an element is 0."""
    present = ops.ne(x, number(0, x))
    powers = ops.pow(ops.select(present, x, number(1, x)), ops.fit(number(p, x), type_of(x).shape))
    if p > 0:
        powers = ops.select(present, powers, number(0, x))
    total = r.sum(powers, **over)
    inverse = ops.fit(number(1 / p, total), type_of(total).shape)
    norm = _guarded(total, lambda safe: ops.pow(safe, inverse))
    if p > 0:
        return norm
    norm = ops.select(ops.eq(total, number(0, total)), number(float("inf"), norm), norm)
    return ops.select(r.all(present, **over), norm, number(0, norm))


# --- matrices ---------------------------------------------------------------------------------


def _of_matrices(x: ArrayLike, ord: int | float | str, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord in ("fro", "f"):
        return _guarded(r.sum(squared_length(x), axis=axes, keepdims=keepdims), ops.sqrt)
    x = moveaxis(x, axes, (-2, -1))
    if ord in ("nuc", 2, -2):
        out = _of_singular_values(x, ord)
    elif ord in (1, -1, float("inf"), -float("inf"), "inf", "-inf"):
        out = _of_sums(x, float(ord))
    else:
        raise _unknown(ord, "matrices")
    return c.expand_dims(out, tuple(sorted(axes))) if keepdims else out


def _of_singular_values(x: ArrayLike, ord: int | str) -> Array:
    # The tangent of a zero singular value depends on the choice of its vectors.
    values = _guarded(svd(x, compute_uv=False), lambda s: s)
    if ord == "nuc":
        return r.sum(values, axis=-1)
    return r.max(values, axis=-1, initial=0) if ord == 2 else r.min(values, axis=-1)


def _of_sums(x: ArrayLike, ord: float) -> Array:
    """The greatest or least sum of a column (±1) or a row (±inf)."""
    sums = r.sum(_magnitude(x), axis=-2 if abs(ord) == 1 else -1)
    return r.max(sums, axis=-1, initial=0) if ord > 0 else r.min(sums, axis=-1)


def _unknown(ord: object, of: str) -> ArgumentError:
    return ArgumentError(f"norm: cannot take a norm of order {ord!r} of {of}")
