"""schur: A = Z T Zᴴ, Z unitary and T upper triangular; for real matrices quasi-triangular.

The T of a real matrix has 1 × 1 blocks for real eigenvalues, and 2 × 2 blocks of equal diagonals
and subdiagonal elements of opposite signs for conjugate pairs. Results T, Z, or T alone without
`vectors`; the order of eigenvalues is free. A matrix that is not finite gives NaN.

Derivative: with X = Zᴴ Ż and M = Zᴴ Ȧ Z, the part of X below the blocks is determined by
Ṫ = M - X T + T X being zero there, a triangular Sylvester equation (`sylvester`, below=True); X is
skew-Hermitian, and its diagonal, the free phases of Z, is zero. A real 2 × 2 block rotates so that
its diagonal elements stay equal.
Where two eigenvalues are equal the tangents of all vectors between them are infinite or NaN. So are
those of a real block [[a, b], [-b, a]], which orthogonal and skew-symmetric matrices have, since no
basis of it is distinguished; the complex form of such a matrix has a derivative.

The host computes it for every device, since it is sequential. schur_numpy has the algorithms.
Source: derivative, Golub & Van Loan 4e, §7.6.2 and §7.6.3 (the equations of its perturbation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.ops.arithmetic import add, cast, div, mul, ne, neg, select, sub
from rune.ops.complex_numbers import complex_dtype, is_complex
from rune.ops.creation import stop_gradient
from rune.ops.linalg.blocks import beside_diagonal, shifted, triangular_form
from rune.ops.linalg.hessenberg import form_tangent
from rune.ops.linalg.schur_numpy import schur_form
from rune.ops.linalg.sylvester import sylvester, under_blocks
from rune.ops.matrix_helpers import (
    adjoint,
    batch_leading,
    diagonal,
    eye,
    from_diagonal,
    keep,
    matmul,
    number,
    require_matrices,
    require_square,
)
from rune.ops.movement import part

if TYPE_CHECKING:
    from rune.array import Array


def _type(a: ArrayType, *, vectors: bool) -> tuple[ArrayType, ...]:
    require_matrices("schur", a)
    require_square("schur", a)
    return (a.strong(), a.strong()) if vectors else (a.strong(),)


def both(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and Z of every lane, computed in double precision; in the dtype of `a`."""
    # In C order, whatever that of `a`, so that the lanes below are views.
    wide = a.astype(np.complex128 if np.iscomplexobj(a) else np.float64, order="C")
    t, z = np.empty_like(wide), np.empty_like(wide)
    flat = [x.reshape(math.prod(a.shape[:-2]), *a.shape[-2:]) for x in (wide, t, z)]
    for lane, of_t, of_z in zip(*flat, strict=True):
        of_t[...], of_z[...] = schur_form(lane)
    return t.astype(a.dtype), z.astype(a.dtype)


# --- derivative -------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Value], list[Value]]:
    (a,), (da,) = primals, tangents
    t, z = schur(a, vectors=True)
    turn, dt = _turn(t, matmul(matmul(adjoint(z), da), z))
    return ([t, z], [dt, matmul(z, turn)]) if params["vectors"] else ([t], [dt])


def _turn(t: Value, inside: Value) -> tuple[Array, Array]:
    """X and Ṫ = M - X T + T X."""
    form, z = (stop_gradient(x) for x in _triangular(t))
    factors = neg(form), z, form, z
    below = sylvester(neg(t), t, *factors, inside, transposed=False, below=True)
    turn = sub(below, adjoint(below))
    dt = form_tangent(inside, turn, t)
    if not is_complex(t):
        block_turn = _turn_of_blocks(t, dt)
        turn, dt = add(turn, block_turn), form_tangent(dt, block_turn, t)
    return turn, select(under_blocks(t), number(0, t), dt)


def _triangular(t: Value) -> tuple[Value, Value]:
    """A complex triangular form, and its basis relative to that of T."""
    wide = cast(t, complex_dtype(type_of(t).dtype))
    one = eye(type_of(t).shape, type_of(wide).dtype)
    return (wide, one) if is_complex(t) else triangular_form(wide, one)


def _turn_of_blocks(t: Value, dt: Value) -> Value:
    """The angles (Ṫ₂₂ - Ṫ₁₁) / 2 (b + c) that keep blocks [[a, b], [c, a]] in their form."""
    n = type_of(t).shape[-1]
    if n == 0:
        return t
    below, above = beside_diagonal(t)
    on, is_block = diagonal(dt), ne(below, number(0, below))
    change = keep(is_block, sub(part(on, -1, 1, n), part(on, -1, 0, n - 1)))
    twice = mul(number(2, below), add(below, above))
    angle = from_diagonal(div(change, select(is_block, twice, number(1, twice))))
    return sub(shifted(angle, 1), shifted(angle, -1))


schur: Primitive = Primitive(
    "schur",
    "linalg",
    _type,
    lambda a, *, vectors: both(a) if vectors else both(a)[:1],
    multiple_results=True,
    jvp_equation=_jvp,
    batch=batch_leading(lambda: schur),
    lower=Library(lanes_of_matrices),
    jax_names={"compute_schur_vectors": "vectors"},
)


# --- by its use -------------------------------------------------------------------------------


def complex_schur(a: Value) -> tuple[Array, Array]:
    """The triangular Schur form of square matrices, complex; it has no derivative."""
    a = cast(stop_gradient(a), complex_dtype(type_of(a).dtype))
    t, z = schur(a, vectors=True)
    return t, z


def solve_sylvester(a: Value, b: Value, c: Value) -> Array:
    """X with A X + X B = C. Shapes: [*B, M, M], [*B, N, N], [*B, M, N] -> [*B, M, N]."""
    return sylvester(a, b, *complex_schur(a), *complex_schur(b), c, transposed=False)
