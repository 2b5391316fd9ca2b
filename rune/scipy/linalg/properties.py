"""Properties of a matrix: norms, bands, symmetry."""

from __future__ import annotations

import rune.numpy as rnp
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ShapeError
from rune.numpy.linalg import norm as _norm
from rune.numpy.linalg.norms import Axes
from rune.typing import ArrayLike, Nested


def norm(
    a: ArrayLike,
    ord: int | float | str | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    check_finite: bool = True,
) -> Array:
    """A norm of vectors or matrices, as `rune.numpy.linalg.norm`.

    Shapes: the axes are removed, or are 1 with keepdims.
    Types:  real; bools and integers become floats.
    Errors: ArgumentError for an unknown order.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.norm(rnp.array([3.0, 4.0]))
    Array(5., f32[], cpu:0)
    """
    return _norm(a, ord, axis, keepdims)


def _matrix(name: str, a: Nested) -> Array:
    x = rnp.asarray(a)
    if type_of(x).ndim != 2:
        raise ShapeError(f"{name}: cannot take {type_of(x)} (one matrix required)")
    return x


def bandwidth(a: Nested) -> tuple[Array, Array]:
    """How many diagonals below and above the main one are needed to hold all nonzero elements.

    Shapes: [M, N] -> [], []; i32.
    Types:  i32.
    Errors: ShapeError unless `a` is a matrix.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.bandwidth(rnp.array([[1.0, 2.0], [0.0, 3.0]]))
    (Array(0, i32[], cpu:0), Array(1, i32[], cpu:0))
    """
    x = _matrix("bandwidth", a)
    row, column = rnp.expand_dims(rnp.arange(x.shape[0]), 1), rnp.arange(x.shape[1])
    reach = rnp.where(x != 0, row - column, 0)
    above = rnp.where(x != 0, column - row, 0)
    return rnp.max(reach, initial=0), rnp.max(above, initial=0)


def issymmetric(a: Nested, atol: float | None = None, rtol: float | None = None) -> Array:
    """Whether a matrix equals its transpose, exactly or within tolerances.

    Shapes: [N, N] -> []; false for matrices that are not square.
    Types:  bool.
    Errors: ShapeError unless `a` is a matrix.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.issymmetric(rnp.eye(2))
    Array(True, bool[], cpu:0)
    """
    x = _matrix("issymmetric", a)
    return _equals(x, x.T, atol, rtol)


def ishermitian(a: Nested, atol: float | None = None, rtol: float | None = None) -> Array:
    """Whether a matrix equals its conjugate transpose, exactly or within tolerances.

    Shapes: [N, N] -> []; false for matrices that are not square.
    Types:  bool.
    Errors: ShapeError unless `a` is a matrix.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.ishermitian(rnp.array([[1.0, 2j], [-2j, 1.0]]))
    Array(True, bool[], cpu:0)
    """
    x = _matrix("ishermitian", a)
    return _equals(x, rnp.conj(x.T), atol, rtol)


def _equals(x: Array, y: Array, atol: float | None, rtol: float | None) -> Array:
    if x.shape != y.shape:
        return rnp.asarray(False)
    if atol is None and rtol is None:
        return rnp.all(x == y)
    return rnp.allclose(x, y, atol=atol or 0.0, rtol=rtol or 0.0)
