"""hessenberg: Q with Qᴴ A Q zero below the first subdiagonal, as reflections.

Results as LAPACK's gehrd: the Hessenberg matrix, with the vectors of the reflections below its
subdiagonal, and their taus [*B, N-1]. `householder_product(reflectors[1:, :-1], taus)` is Q without
its first row and column, which are those of the identity.

Derivative: Q's first column does not change, so with X = Qᴴ Q̇ and M = Qᴴ Ȧ Q all of X follows from
the condition that M - X H + H X is in Hessenberg form with a real subdiagonal (implicit Q theorem),
column by column; that matrix is then Ḣ, and the reflections follow Q (closed_form). Where an
element of the subdiagonal is zero, A has an invariant subspace that contains the first unit vector,
and the columns of Q after it are free: their tangents are infinite or NaN.

Expansion:  the same reflections, one after another, applied to the whole matrix.
Source:     Golub & Van Loan 4e, §7.4.2 (algorithm 7.4.2), §7.4.5 (theorem 7.4.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Params, Value
from rune.dims import Size
from rune.ops.arithmetic import add, div, gt, mul, select, sub
from rune.ops.complex_numbers import complex, imag, is_complex
from rune.ops.family import reshape, stretch
from rune.ops.linalg.closed_form import reflections_jvp
from rune.ops.linalg.commutator import hessenberg_commutator, times_column
from rune.ops.linalg.householder import reflection
from rune.ops.linalg.qr import householder_product
from rune.ops.matrix_helpers import (
    adjoint,
    batch_leading,
    columns,
    conjugate,
    diagonal,
    from_diagonal,
    full,
    matmul,
    number,
    put,
    real_part,
    require_matrices,
    require_square,
    steps,
    upper_triangle,
    window,
    zeros,
)
from rune.ops.movement import concatenate, pad, part
from rune.ops.reduction import cumsum


def reflections(n: Size) -> Size:
    """The number of reflections for a matrix of n rows."""
    return n - 1 if n != 0 else 0


def _type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    dtype = require_matrices("hessenberg", a)
    n = require_square("hessenberg", a)
    return a.strong(), ArrayType((*a.shape[:-2], reflections(n)), dtype)


# --- reference --------------------------------------------------------------------------------


def reduced(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All lanes at once, column by column. [*B, N, N] -> [*B, N, N], [*B, N-1]."""
    reflectors = np.array(a)
    n = a.shape[-1]
    taus = np.zeros((*a.shape[:-2], reflections(n)), a.dtype)
    for k in range(reflections(n)):
        v, tau, head = reflector(reflectors[..., k + 1 :, k])
        below = reflectors[..., k + 1 :, k + 1 :]
        below -= v[..., None] * (tau.conj()[..., None] * _row_times(v.conj(), below))[..., None, :]
        right = reflectors[..., :, k + 1 :]
        right -= (tau[..., None] * times_column(right, v))[..., None] * v.conj()[..., None, :]
        reflectors[..., k + 1, k], reflectors[..., k + 2 :, k], taus[..., k] = head, v[..., 1:], tau
    return reflectors, taus


def reflector(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v with v₀ = 1, tau and the real head with (1 - tau v vᴴ)ᴴ x = (head, 0, …). [*B, M]."""
    # Scaled by the largest, so that squares neither overflow nor underflow; its inverse is normal.
    greatest = np.abs(x).max(-1, keepdims=True)
    least = np.finfo(greatest.dtype).tiny
    greatest = np.clip(greatest, least, 1 / least)
    x = x * (1 / greatest)
    head = x[..., 0]
    tail = np.sum(np.abs(x[..., 1:]) ** 2, -1)
    is_reduced = (tail == 0) & (np.imag(head) == 0)
    norm = np.sqrt(np.abs(head) ** 2 + tail)
    beta = np.where(np.real(head) < 0, norm, -norm)
    beta = np.where(is_reduced, np.real(head), beta)
    divisor = np.where(is_reduced, 1, head - beta)
    v = np.where(is_reduced[..., None], 0, x / divisor[..., None])
    v[..., 0] = 1
    tau = np.where(is_reduced, 0, (beta - head) / np.where(beta == 0, 1, beta)).astype(x.dtype)
    return v.astype(x.dtype), tau, (beta * greatest[..., 0]).astype(x.dtype)


def _row_times(row: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.matmul(row[..., None, :], a)[..., 0, :]


# --- expansion --------------------------------------------------------------------------------


def expanded(a: Value) -> list[Value]:
    """Reflection k is computed from column k below row k + 1, and applied from both sides."""
    *lead, n, _ = type_of(a).shape
    count = reflections(n)

    def step(k: Value, work: Value, taus: Value) -> list[Value]:
        v, tau, reflectors = reflection(window(work, -1, k, 1), add(k, np.int32(1)))
        shape = type_of(work).shape
        inner = matmul(adjoint(v), work)
        rows_change = _outer(v, mul(stretch(conjugate(tau), type_of(inner).shape), inner), shape)
        work = select(gt(columns(shape), k), sub(work, rows_change), work)
        across = matmul(work, v)
        across = mul(stretch(tau, type_of(across).shape), across)
        work = sub(work, _outer(across, adjoint(v), shape))
        return [put(work, -1, k, reflectors), put(taus, -2, k, tau)]

    reflectors, taus = steps(count, step, a, full(number(0, a), (*lead, count, 1)))
    return [reflectors, reshape(taus, shape=(*lead, count))]


def _outer(column: Value, row: Value, shape: Shape) -> Value:
    return mul(stretch(column, shape), stretch(row, shape))


# --- derivative -------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Value], list[Value]]:
    (a,), (da,) = primals, tangents
    reflectors, taus = hessenberg(a)
    dh, dv, dtaus = form_jvp(reflectors, taus, upper_triangle(reflectors, -1), da)
    return [reflectors, taus], [add(upper_triangle(dh, -1), dv), dtaus]


def form_jvp(reflectors: Value, taus: Value, h: Value, da: Value) -> tuple[Value, Value, Value]:
    """The tangents of H, of the vectors below its subdiagonal, and of the taus."""
    n = type_of(h).shape[-1]
    if n == 0:
        return da, zeros(da), taus
    vectors = part(part(reflectors, -2, 1, n), -1, 0, n - 1)
    q = householder_product(vectors, taus)
    inside = _in_basis(q, da)
    turn, dh = _turn(h, inside)
    dq = matmul(q, part(part(turn, -2, 1, n), -1, 1, n))
    dv, dtaus = reflections_jvp(vectors, taus, dq)
    return dh, _padded(dv, (1, 0), (0, 1)), dtaus


def _in_basis(q: Value, a: Value) -> Value:
    """Qᴴ A Q for the Q that consists of `q` after a first row and column of the identity."""
    last = type_of(a).ndim - 1
    n = type_of(a).shape[-1]
    right = concatenate(part(a, -1, 0, 1), matmul(part(a, -1, 1, n), q), axis=last)
    below = matmul(adjoint(q), part(right, -2, 1, n))
    return concatenate(part(right, -2, 0, 1), below, axis=last - 1)


def _turn(h: Value, inside: Value) -> tuple[Value, Value]:
    """The skew-Hermitian X with a first row and column of zeros, and M - X H + H X."""
    below = hessenberg_commutator(h, inside, transposed=False)
    turn = sub(below, adjoint(below))
    dh = form_tangent(inside, turn, h)
    if not is_complex(h):
        return turn, dh
    phases = _phases(h, dh)
    return add(turn, phases), form_tangent(dh, phases, h)


def form_tangent(inside: Value, turn: Value, h: Value) -> Value:
    """M - X H + H X: the derivative M of a form H, whose basis turns by X."""
    return add(sub(inside, matmul(turn, h)), matmul(h, turn))


def _phases(h: Value, dh: Value) -> Value:
    """The imaginary diagonal of X, from 0 on, for which the subdiagonal stays real."""
    n = type_of(h).shape[-1]
    subdiagonal, change = (diagonal(part(part(x, -2, 1, n), -1, 0, n - 1)) for x in (h, dh))
    turns = div(imag(change), real_part(subdiagonal))
    first = type_of(turns).ndim - 1
    zero = number(0, turns)
    low = (*(0 for _ in range(first)), 1)
    turns = pad(turns, zero, low=low, high=(0,) * (first + 1), interior=(0,) * (first + 1))
    angles = cumsum(turns, axis=first, reverse=False)
    return from_diagonal(complex(zeros(angles), angles))


def _padded(a: Value, low: tuple[int, int], high: tuple[int, int]) -> Value:
    no_padding = (0,) * (type_of(a).ndim - 2)
    return pad(a, number(0, a), low=(*no_padding, *low), high=(*no_padding, *high), interior=(*no_padding, 0, 0))


hessenberg: Primitive = Primitive(
    "hessenberg",
    "linalg",
    _type,
    reduced,
    multiple_results=True,
    jvp_equation=_jvp,
    batch=batch_leading(lambda: hessenberg),
    lower=Library(lanes_of_matrices),
    expand=expanded,
)
