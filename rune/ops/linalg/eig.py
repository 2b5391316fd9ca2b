"""eig: eigenvalues and eigenvectors of square matrices; always complex, in no particular order.

Results w, then V with A V = V diag(w) if `right`, and U with Uᴴ A = diag(w) Uᴴ if `left`. A vector
has length one, and its largest component is real; vectors of a real eigenvalue of a real matrix
are real. A matrix that is not finite gives NaN.

Derivative: with X = V⁻¹ Ȧ V the eigenvalues move by X's diagonal, the vectors by V F∘X with
F_ij = 1 / (w_j - w_i), without the components that would change their length or the phase of their
largest component. Where two eigenvalues are equal the tangents of their vectors are infinite or
NaN. If the matrix is defective, so are those of the eigenvalues, which have no derivative.

The host computes it for every device: LAPACK's geev through NumPy; for left vectors, the Schur form
and substitution.
Source: Golub & Van Loan 4e, §7.2.2, §7.6.4; derivative: Boeddeker et al. 2017, arXiv:1701.00392,
§4.1; Magnus 1985, Econometric Theory 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.program import Equation
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.ops.arithmetic import abs, cast, div, eq, mul, select, sub
from rune.ops.complex_numbers import complex, complex_dtype, conj, imag, real
from rune.ops.creation import iota
from rune.ops.family import broadcast, reduce_sum
from rune.ops.linalg.direct import solve
from rune.ops.linalg.eigh import inverse_gaps
from rune.ops.linalg.lapack import routine
from rune.ops.linalg.schur import both
from rune.ops.linalg.schur_numpy import complexified
from rune.ops.matrix_helpers import (
    adjoint,
    batch_leading,
    diagonal,
    keep,
    matmul,
    require_matrices,
    require_square,
    scaled_columns,
)
from rune.ops.reduction import argmax

if TYPE_CHECKING:
    from rune.array import Array


def _type(a: ArrayType, *, left: bool, right: bool) -> tuple[ArrayType, ...]:
    dtype = complex_dtype(require_matrices("eig", a))
    require_square("eig", a)
    return ArrayType(a.shape[:-1], dtype), *((ArrayType(a.shape, dtype),) * (left + right))


# --- reference --------------------------------------------------------------------------------

_VALUES = routine("eigvals", np.linalg.eigvals, complex64=False)
_RIGHT = routine("eig", np.linalg.eig, complex64=False)


def _reference(a: np.ndarray, *, left: bool, right: bool) -> tuple[np.ndarray, ...]:
    if not left:
        return _RIGHT(a) if right else (_VALUES(a),)
    is_real = not np.iscomplexobj(a)
    t, z = both(a.astype(np.float64 if is_real else np.complex128))
    t, z = complexified(t, z) if is_real else (t, z)
    w = np.diagonal(t, axis1=-2, axis2=-1)
    vectors = [_normalised(z @ x) for x in _vectors(t)[: 1 + right]]
    if is_real:
        vectors = [np.where(np.imag(w[..., None, :]) == 0, np.real(x), x) for x in vectors]
    return tuple(x.astype(complex_dtype(a.dtype)) for x in (w, *vectors))


def _vectors(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right eigenvectors of upper triangular matrices, for all lanes and vectors at once.

    M T = diag(w) M with a unit upper triangular M is solved column by column, T X = X diag(w)
    row by row. Divisors are kept away from zero, as LAPACK does, so that a defective matrix
    has parallel vectors.
    """
    n = t.shape[-1]
    w = np.diagonal(t, axis1=-2, axis2=-1)
    rows = np.broadcast_to(np.eye(n, dtype=t.dtype), t.shape).copy()
    columns = rows.copy()
    least = np.maximum(np.finfo(float).eps * np.abs(t).max((-2, -1), initial=0), 1e-300)
    gaps = w[..., :, None] - w[..., None, :]
    gaps = np.where(np.abs(gaps) < least[..., None, None], least[..., None, None], gaps)
    for j in range(1, n):
        known = np.matmul(rows[..., :j, :j], t[..., :j, j, None])[..., 0]
        rows[..., :j, j] = known / gaps[..., :j, j]
    for i in range(n - 2, -1, -1):
        known = np.matmul(t[..., i, None, i + 1 :], columns[..., i + 1 :, i + 1 :])[..., 0, :]
        columns[..., i, i + 1 :] = -known / gaps[..., i, i + 1 :]
    return np.conj(np.swapaxes(rows, -1, -2)), columns


def _normalised(v: np.ndarray) -> np.ndarray:
    """Columns of length one, with a real largest component."""
    v = v / np.linalg.norm(v, axis=-2, keepdims=True)
    if v.shape[-1] == 0:
        return v
    largest = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
    return v * (np.conj(largest) / np.abs(largest))


# --- derivative -------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Array], list[Array]]:
    (a,), (da,) = primals, tangents
    outs = eig(a, left=params["left"], right=True)
    w, v = outs[0], outs[-1]
    da = cast(da, type_of(v).dtype)
    inside = solve(v, matmul(da, v))
    moves = [diagonal(inside)]
    if params["left"]:
        u, da = outs[1], adjoint(da)
        moves.append(_turned(conj(w), u, solve(u, matmul(da, u))))
    if params["right"]:
        moves.append(_turned(w, v, inside))
    return outs[: len(moves)], moves


def _turned(w: Value, v: Value, inside: Value) -> Array:
    """V F∘X, each column minus a multiple of itself: its length and the phase of its largest
    component stay.
    """
    if 0 in type_of(v).shape:
        return sub(v, v)
    free = matmul(v, mul(inverse_gaps(w), inside))
    rows = type_of(v).ndim - 2
    along = real(reduce_sum(mul(conj(v), free), axes=(rows,)))
    turn = imag(reduce_sum(mul(_at_largest(v), free), axes=(rows,)))
    return sub(free, scaled_columns(v, complex(along, turn)))


def _at_largest(v: Value) -> Value:
    """The inverse of every column's largest component, at its position among zeros."""
    shape = type_of(v).shape
    row = len(shape) - 2
    at = argmax(abs(v), axis=row, dtype=dtypes.i32)
    lanes = tuple(i for i in range(len(shape)) if i != row)
    is_largest = eq(iota(shape=shape, axis=row, dtype=dtypes.i32), broadcast(at, shape=shape, axes=lanes))
    one = np.ones((), type_of(v).dtype)
    return keep(is_largest, div(one, select(is_largest, v, one)))


def _dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    """Without the vectors that nothing reads."""
    names = [n for n in ("left", "right") if equation.params[n]]
    is_used = {n: w for n, w in zip(names, used_results[1:], strict=True)}
    results = (equation.results[0], *(r for r, w in zip(equation.results[1:], used_results[1:]) if w))
    params = {n: is_used.get(n, False) for n in ("left", "right")}
    return replace(equation, results=results, params=params)


eig: Primitive = Primitive(
    "eig",
    "linalg",
    _type,
    _reference,
    multiple_results=True,
    jvp_equation=_jvp,
    batch=batch_leading(lambda: eig),
    dead_code=_dead_code,
    lower=Library(lanes_of_matrices),
    jax_names={"compute_left_eigenvectors": "left", "compute_right_eigenvectors": "right"},
)
