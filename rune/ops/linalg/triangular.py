"""triangular_solve: X with A X = B, for A triangular; linear in B.

Only the selected triangle is read, and with a unit diagonal not even its diagonal. A zero on the
diagonal gives infinities and NaN, as division does; nothing is raised. The other side, transposes
and adjoints are expressed by transposing (`rune.lax.linalg.triangular_solve`), which costs nothing.
An element of B that is not finite spoils its column from its own row on, and no earlier row.

Reference:  substitution, all lanes of small matrices at once; from 64 rows on by blocks, whose
            diagonal blocks are inverted first, so that nearly all work is done by matrix products.
            Where a product is not finite, substitution solves for that block again.
Expansion:  the same, compiled on the CPU too, where it is faster at every size
            (measured: 2 to 20 times). Tiny matrices are written out, vectorised over lanes.
Source:     Golub & Van Loan 4e, §3.1; inverted diagonal blocks: Du Croz & Higham 1992,
            IMA J. Numer. Anal. 12(1); derivative: Giles 2008, §2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops.arithmetic import div, mul, neg, sub
from rune.ops.complex_scalars import quotient
from rune.ops.family import Batched, stretch
from rune.ops.linalg.dense import dense
from rune.ops.linalg.diagonal_blocks import in_blocks
from rune.ops.linalg.jax_forms import TRIANGULAR_NAMES, triangular_form
from rune.ops.linalg.small import is_small, lanes_first, lanes_last, over_matrices, prefers_lanes
from rune.ops.matrix_helpers import (
    batch_leading,
    elements,
    eye,
    is_static,
    lower_triangle,
    matmul,
    next_multiple,
    put,
    require_matrices,
    require_square,
    steps,
    swapped,
    upper_triangle,
    window,
    zeros,
)
from rune.ops.movement import concatenate, part, reverse

if TYPE_CHECKING:
    from rune.array import Array

Divide = Callable[[np.ndarray, np.ndarray], np.ndarray]
Forward = Callable[[Value, Value, bool], Value]

BLOCK = 32  # rows of a diagonal block
WIDE = 128  # the same for matrices of more than 512 rows
LARGE = 64  # rows from which blocks are faster


def _type(a: ArrayType, b: ArrayType, *, lower: bool, unit_diagonal: bool) -> ArrayType:
    require_matrices("triangular_solve", a, b)
    require_right_side("triangular_solve", a, b)
    return b.strong()


def require_right_side(name: str, a: ArrayType, b: ArrayType) -> None:
    """Errors: ShapeError unless `a` is square, of as many rows as `b`."""
    if require_square(name, a) != b.shape[-2]:
        raise ShapeError(f"{name}: cannot solve {a} for {b} ({a.shape[-1]} unknowns, {b.shape[-2]} rows)")


# --- reference --------------------------------------------------------------------------------


def solve_in_numpy(a: np.ndarray, b: np.ndarray, *, lower: bool, unit_diagonal: bool) -> np.ndarray:
    """The meaning in NumPy."""
    if not lower:  # from the last unknown to the first
        reversed_solution = solve_in_numpy(a[..., ::-1, ::-1], b[..., ::-1, :], lower=True, unit_diagonal=unit_diagonal)
        return reversed_solution[..., ::-1, :]
    if a.ndim > 2 and prefers_lanes(a):
        solution = _by_quotients(_substituted_lanes, lanes_last(a), lanes_last(b), unit_diagonal)
        return lanes_first(solution, b.shape[:-2])
    one = _solved_in_blocks if a.shape[-1] >= LARGE else partial(_by_quotients, _substituted)
    return over_matrices(lambda p, q: one(p, q, unit_diagonal), a, b)


def _by_quotients(substitute: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray, unit: bool) -> np.ndarray:
    """The results of substitution; NumPy's own quotients of complex numbers are not always
    finite.
    """
    out = substitute(a, b, unit, np.divide)
    if out.dtype in dtypes.COMPLEX and not np.isfinite(out).all():
        return substitute(a, b, unit, quotient)
    return out


def _substituted(a: np.ndarray, b: np.ndarray, unit: bool, divide: Divide) -> np.ndarray:
    out = np.array(b)
    for i in range(a.shape[0]):
        if i:
            out[i] -= a[i, :i] @ out[:i]
        if not unit:
            out[i] = divide(out[i], a[i, i])
    return out


def _substituted_lanes(a: np.ndarray, b: np.ndarray, unit: bool, divide: Divide) -> np.ndarray:
    # a [N, N, B], b [N, K, B]
    out = np.array(b)
    for i in range(a.shape[0]):
        for j in range(i):
            out[i] -= a[i, j] * out[j]
        if not unit:
            out[i] = divide(out[i], a[i, i])
    return out


def _solved_in_blocks(a: np.ndarray, b: np.ndarray, unit: bool) -> np.ndarray:
    n, size = a.shape[0], next_multiple(a.shape[0], BLOCK)
    matrix = np.eye(size, dtype=a.dtype)
    matrix[:n, :n] = a
    blocks = [matrix[k : k + BLOCK, k : k + BLOCK] for k in range(0, size, BLOCK)]
    units = np.broadcast_to(np.eye(BLOCK, dtype=a.dtype)[..., None], (BLOCK, BLOCK, len(blocks)))
    inverses = _substituted_lanes(np.stack(blocks, -1), units, unit, np.divide)
    out = np.array(b)
    for block, start in enumerate(range(0, n, BLOCK)):
        end = min(start + BLOCK, n)
        right_side = out[start:end] - a[start:end, :start] @ out[:start]
        solution = inverses[: end - start, : end - start, block] @ right_side
        if not np.isfinite(solution).all():  # the zeros of the inverse have been multiplied by it
            solution = _by_quotients(_substituted, a[start:end, start:end], right_side, unit)
        out[start:end] = solution
    return out


# --- expansion --------------------------------------------------------------------------------


def _expand(a: Value, b: Value, *, lower: bool, unit_diagonal: bool) -> Array:
    if is_small(type_of(a)):
        return _written_out(a, b, lower, unit_diagonal)
    return dense_solve(a, b, lower=lower, unit_diagonal=unit_diagonal, parts=1)


def _by_loops(a: Value, b: Value, *, lower: bool, unit_diagonal: bool) -> Value:
    return from_first(_forward, a, b, lower=lower, unit_diagonal=unit_diagonal)


def from_first(forward: Forward, a: Value, b: Value, *, lower: bool, unit_diagonal: bool) -> Value:
    """The solution by a function that solves lower triangles: an upper one is reversed.

    forward: a function of a, b, and whether the diagonal is of ones
    """
    if lower:
        return forward(a, b, unit_diagonal)
    last = type_of(a).ndim - 1
    solution = forward(reverse(a, axes=(last - 1, last)), reverse(b, axes=(last - 1,)), unit_diagonal)
    return reverse(solution, axes=(last - 1,))


def _forward(a: Value, b: Value, unit: bool) -> Value:
    n = type_of(a).shape[-1]
    if is_static((n,)) and n > LARGE:
        return in_blocks(a, b, BLOCK if n <= 512 else WIDE, lambda blocks: _inverted(blocks, unit), unit)
    return _by_rows(a, b, unit)


def _inverted(blocks: Value, unit: bool) -> Array:
    return _by_rows(blocks, eye(type_of(blocks).shape, type_of(blocks).dtype), unit)


def _by_rows(a: Value, b: Value, unit: bool) -> Array:
    """Unknown by unknown; those not yet computed are zero."""
    below = lower_triangle(a, -1)

    def step(i: Value, out: Value) -> list[Array]:
        solution = sub(window(b, -2, i, 1), matmul(window(below, -2, i, 1), out))
        if not unit:
            pivot = window(window(a, -2, i, 1), -1, i, 1)
            solution = div(solution, stretch(pivot, type_of(solution).shape))
        return [put(out, -2, i, solution)]

    (out,) = steps(type_of(a).shape[-1], step, zeros(b))
    return out


def _written_out(a: Value, b: Value, lower: bool, unit: bool) -> Any:
    entries, sides = elements(a), right_side_rows(b)
    n = len(entries)
    order = range(n) if lower else reversed(range(n))
    out: list[Any] = [None] * n
    solved_rows: list[int] = []
    for i in order:
        value = sides[i]
        for j in solved_rows:
            value = sub(value, times_row(entries[i][j], out[j]))
        out[i] = value if unit else over_row(value, entries[i][i])
        solved_rows.append(i)
    return concatenate(*out, axis=type_of(b).ndim - 2) if n else b


def right_side_rows(b: Value) -> list[Array]:
    """The rows of right-hand sides, each [*B, 1, K]."""
    return [part(b, -2, i, i + 1) for i in range(type_of(b).shape[-2])]


def times_row(x: Value, row: Value) -> Array:
    """An element times a row. Shapes: [*B], [*B, 1, K] -> [*B, 1, K]."""
    return mul(stretch(x, type_of(row).shape), row)


def over_row(row: Value, x: Value) -> Array:
    """A row divided by an element."""
    return div(row, stretch(x, type_of(row).shape))


def _call(a: ArrayType, b: ArrayType, *, lower: bool, unit_diagonal: bool) -> dict[str, Size]:
    return {"sides": b.shape[-1], "lower": int(lower), "unit_diagonal": int(unit_diagonal)}


dense_solve = dense("dense_solve", "triangular_solve", _type, _by_loops, _call)


# --- derivative -------------------------------------------------------------------------------


def _jvp_a(da: Value, a: Value, b: Value, x: Value, *, lower: bool, unit_diagonal: bool) -> Value:
    """-A⁻¹ Ȧ X, for the triangle that is read."""
    k = 1 if unit_diagonal else 0
    read = lower_triangle(da, -k) if lower else upper_triangle(da, k)
    return neg(triangular_solve(a, matmul(read, x), lower=lower, unit_diagonal=unit_diagonal))


def _transpose(
    ct: Value, linear: Batched, a: Value, b: ArrayType, *, lower: bool, unit_diagonal: bool
) -> list[Array | None]:
    cotangent = triangular_solve(swapped(a), ct, lower=not lower, unit_diagonal=unit_diagonal)
    return [None, cotangent]


triangular_solve: Primitive = Primitive(
    "triangular_solve",
    "linalg",
    _type,
    solve_in_numpy,
    jvp=(_jvp_a, lambda db, a, b, x, **params: triangular_solve(a, db, **params)),
    transpose=_transpose,
    linear_in=((1,),),
    solves=True,
    batch=batch_leading(lambda: triangular_solve),
    lower=Library(lanes_of_matrices, lambda *types, **params: False, columns=1),
    expand=_expand,
    jax_names=TRIANGULAR_NAMES,
    jax_form=triangular_form(lambda: triangular_solve),
)
