"""sylvester: X with A X + X B = C, given Schur forms of A and B; and roots of triangular matrices.

The operands of sylvester are a, b, the factors T and Z of each (complex), and c. The factors are
determined by `a` and `b`, so they carry no derivative: the rule is the implicit one,
A X' + X' B = C' - A' X - X B'. `transposed` solves Aᵀ X + X Bᵀ = C by the same factors, as reverse
mode needs. Where A and -B share an eigenvalue the result is infinite or NaN.

With `below`, A and B are quasi-triangular themselves, with the same 1 × 1 and 2 × 2 blocks. X is
zero except below the blocks, and the equation holds only there, where the remaining terms do not
depend on the rest of X. The Schur form's derivative is such an X.

triangular_sqrt(t) is the upper triangular R with R R = T and eigenvalues in the right half plane.
If no root exists it is NaN.

In both, an element depends on those to its left and below it, so all elements of one diagonal are
computed at once: a step for each diagonal, of n² operations.
Source: Bartels & Stewart 1972, Comm. ACM 15(9); Björck & Hammarling 1983, Linear Algebra Appl. 52.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import ZERO, Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops.arithmetic import add, cast, div, eq, gt, logical_and, logical_not, mul, ne, neg, select, sub
from rune.ops.complex_numbers import complex_dtype
from rune.ops.creation import stop_gradient
from rune.ops.family import Batched, reduce_sum, size_value, stretch, types_text
from rune.ops.matrix_helpers import (
    adjoint,
    batch_leading,
    columns,
    conjugate,
    diagonal,
    eye,
    from_diagonal,
    keep,
    matmul,
    nan_like,
    number,
    real_part,
    require_matrices,
    require_square,
    rows,
    steps,
    swapped,
    upper_triangle,
    window,
    zeros,
)
from rune.ops.movement import pad, reverse
from rune.ops.transcendental import sqrt

if TYPE_CHECKING:
    from rune.array import Array


# --- types ------------------------------------------------------------------------------------


def _type(
    a: ArrayType,
    b: ArrayType,
    ta: ArrayType,
    za: ArrayType,
    tb: ArrayType,
    zb: ArrayType,
    c: ArrayType,
    *,
    transposed: bool,
    below: bool = False,
) -> ArrayType:
    require_matrices("sylvester", a, b, c)
    require_matrices("sylvester", ta, za, tb, zb)
    sizes = require_square("sylvester", a), require_square("sylvester", b)
    if c.shape[-2:] != sizes or ta.shape != a.shape or tb.shape != b.shape:
        raise ShapeError(f"sylvester: cannot solve {types_text((a, b, c))} (C of other sizes)")
    return c.strong()


# --- reference --------------------------------------------------------------------------------


def _reference(
    a: np.ndarray,
    b: np.ndarray,
    ta: np.ndarray,
    za: np.ndarray,
    tb: np.ndarray,
    zb: np.ndarray,
    c: np.ndarray,
    *,
    transposed: bool,
    below: bool = False,
) -> np.ndarray:
    dtype = c.dtype
    c = np.where(_under_blocks(b), c, np.zeros((), dtype)) if below else c
    if transposed:
        za, zb = za.conj(), zb.conj()
        ta, tb = (np.swapaxes(t, -1, -2)[..., ::-1, ::-1] for t in (ta, tb))
    inside = np.conj(np.swapaxes(za, -1, -2)) @ c @ zb
    m, n = c.shape[-2:]
    if transposed:
        first = 1 if below else 1 - m
        inside = _by_diagonals(ta, tb, inside[..., ::-1, ::-1], first, n)[..., ::-1, ::-1]
    else:
        inside = _by_diagonals(ta, tb, inside, 1 - m, 0 if below else n)
    solution = za @ inside @ np.conj(np.swapaxes(zb, -1, -2))
    solution = (solution if np.iscomplexobj(c) else np.real(solution)).astype(dtype)
    return np.where(_under_blocks(b), solution, np.zeros((), dtype)) if below else solution


def _under_blocks(t: np.ndarray) -> np.ndarray:
    """The elements below the 1 × 1 and 2 × 2 blocks of quasi-triangular matrices."""
    return np.tril(np.ones(t.shape, bool), -1) & ~(np.tril(np.triu(t, -1), -1) != 0)


def _by_diagonals(a: np.ndarray, b: np.ndarray, c: np.ndarray, first: int, limit: int) -> np.ndarray:
    """The diagonals first to limit of the X of upper triangular A and B, zeros elsewhere."""
    m, n = c.shape[-2:]
    x = np.zeros_like(c)
    for d in range(first, limit):
        i = np.arange(max(0, -d), min(m, n - d))
        j = i + d
        from_a = np.sum(a[..., i, :] * np.swapaxes(x[..., :, j], -1, -2), -1)
        from_b = np.sum(x[..., i, :] * np.swapaxes(b[..., :, j], -1, -2), -1)
        x[..., i, j] = (c[..., i, j] - from_a - from_b) / (a[..., i, i] + b[..., j, j])
    return x


# --- expansion --------------------------------------------------------------------------------


def _expand(
    a: Value, b: Value, ta: Value, za: Value, tb: Value, zb: Value, c: Value, *, transposed: bool, below: bool = False
) -> Array:
    dtype = type_of(c).dtype
    c = keep(under_blocks(b), c) if below else c
    if transposed:
        za, zb = conjugate(za), conjugate(zb)
        ta, tb = _turned_round(swapped(ta)), _turned_round(swapped(tb))
    inside = matmul(matmul(adjoint(za), cast(c, type_of(za).dtype)), zb)
    m, n = type_of(c).shape[-2:]
    if transposed:
        inside = _diagonal_steps(ta, tb, _turned_round(inside), m if below else 0, m + n - 1)
        inside = _turned_round(inside)
    else:
        inside = _diagonal_steps(ta, tb, inside, 0, m - 1 if below else m + n - 1)
    solution = matmul(matmul(za, inside), adjoint(zb))
    solution = solution if dtype in dtypes.COMPLEX else real_part(solution)
    return keep(under_blocks(b), solution) if below else solution


def under_blocks(t: Value) -> Array:
    """Where quasi-triangular matrices are zero: below their 1 × 1 and 2 × 2 blocks."""
    shape = type_of(t).shape
    row, column = rows(shape), columns(shape)
    is_in_block = logical_and(eq(row, add(column, np.int32(1))), ne(t, number(0, t)))
    return logical_and(gt(row, column), logical_not(is_in_block))


def _turned_round(x: Value) -> Value:
    """Rows and columns in reverse order."""
    n = type_of(x).ndim
    return reverse(x, axes=(n - 2, n - 1))


def _diagonal_steps(a: Value, b: Value, c: Value, first: Size, limit: Size) -> Value:
    """X for upper triangular A and B. Diagonal d = step - (m - 1) has the elements (i, i + d).

    Only the steps from `first` to `limit`; zeros elsewhere.
    """
    shape = type_of(c).shape
    m, n = shape[-2:]
    if m == 0 or n == 0:
        return c
    b_by_columns, c_by_columns = _padded(swapped(b), m), _padded(swapped(c), m)
    diagonal_of_a = diagonal(a)
    # In row i of `others`: the row of each element, so that the diagonal of B is at i + d.
    others = _padded(from_diagonal(diagonal(b)), m)

    def step(k: Value, x: Value) -> list[Array]:
        t = add(k, size_of(first))
        columns_of_x = window(_padded(swapped(x), m), -2, t, m)
        from_a = _row_sums(mul(a, columns_of_x))
        from_b = _row_sums(mul(x, window(b_by_columns, -2, t, m)))
        right_side = sub(diagonal(window(c_by_columns, -2, t, m)), add(from_a, from_b))
        entries = div(right_side, add(diagonal_of_a, _row_sums(window(others, -2, t, m))))
        is_on_diagonal = eq(columns(shape), add(rows(shape), sub(t, size_of(m - 1))))
        return [select(is_on_diagonal, stretch(entries, shape), x)]

    (solution,) = steps(limit - first, step, zeros(c))
    return solution


def size_of(size: Size) -> Value:
    """A size as an i32 value."""
    return size_value(size, dtypes.i32)


def _padded(x: Value, m: Size) -> Array:
    """m - 1 rows of zeros above and below."""
    n = type_of(x).ndim
    edge = (*(0 for _ in range(n - 2)), m - 1, 0)
    return pad(x, number(0, x), low=edge, high=edge, interior=(0,) * n)


def _row_sums(x: Value) -> Array:
    return reduce_sum(x, axes=(type_of(x).ndim - 1,))


# --- derivative -------------------------------------------------------------------------------


def _wrt_a(da: Value, *args: Value, transposed: bool, **params: object) -> Value:
    *inputs, _, x = args
    change = matmul(swapped(da) if transposed else da, x)
    return sylvester(*inputs, neg(change), transposed=transposed, **params)


def _wrt_b(db: Value, *args: Value, transposed: bool, **params: object) -> Value:
    *inputs, _, x = args
    change = matmul(x, swapped(db) if transposed else db)
    return sylvester(*inputs, neg(change), transposed=transposed, **params)


def _transpose(
    ct: Value, linear: Batched, *inputs: Value | ArrayType, transposed: bool, **params: object
) -> list[Array | None]:
    return [*(None,) * 6, sylvester(*inputs[:-1], ct, transposed=not transposed, **params)]


sylvester: Primitive = Primitive(
    "sylvester",
    "linalg",
    _type,
    _reference,
    jvp=(_wrt_a, _wrt_b, ZERO, ZERO, ZERO, ZERO, lambda dc, *args, **params: sylvester(*args[:-2], dc, **params)),
    transpose=_transpose,
    linear_in=((6,),),
    solves=True,
    batch=batch_leading(lambda: sylvester),
    lower=Library(lanes_of_matrices),
    expand=_expand,
)


# --- square roots -----------------------------------------------------------------------------


def _root_type(t: ArrayType) -> ArrayType:
    require_matrices("triangular_sqrt", t)
    require_square("triangular_sqrt", t)
    return t.strong()


def _root_reference(t: np.ndarray) -> np.ndarray:
    n = t.shape[-1]
    r = np.zeros_like(t)
    on = np.arange(n)
    r[..., on, on] = np.sqrt(t[..., on, on])
    for d in range(1, n):
        i = np.arange(n - d)
        j = i + d
        right_side = t[..., i, j] - np.sum(r[..., i, :] * np.swapaxes(r[..., :, j], -1, -2), -1)
        both = r[..., i, i] + r[..., j, j]
        r[..., i, j] = np.where(both == 0, np.where(right_side == 0, 0, np.nan), right_side / both)
    return r


def _root_expand(t: Value) -> Value:
    shape = type_of(t).shape
    n = shape[-1]
    if n == 0:
        return t
    roots = sqrt(diagonal(t))
    columns_of_t = _padded(swapped(t), n)
    others = _padded(from_diagonal(roots), n)

    def step(k: Value, r: Value) -> list[Array]:
        d = add(k, np.int32(1))
        start = add(d, size_of(n - 1))
        columns_of_r = window(_padded(swapped(r), n), -2, start, n)
        right_side = sub(diagonal(window(columns_of_t, -2, start, n)), _row_sums(mul(r, columns_of_r)))
        both = add(roots, _row_sums(window(others, -2, start, n)))
        nothing = eq(both, number(0, both))
        entries = div(right_side, select(nothing, number(1, both), both))
        no_root = select(eq(right_side, number(0, right_side)), right_side, nan_like(right_side))
        entries = select(nothing, no_root, entries)
        is_on_diagonal = eq(columns(shape), add(rows(shape), d))
        return [select(is_on_diagonal, stretch(entries, shape), r)]

    (root,) = steps(n - 1, step, from_diagonal(roots))
    return root


def _root_jvp(dt: Value, t: Value, r: Value) -> Value:
    """R R' + R' R = T'."""
    unit = eye(type_of(r).shape, complex_dtype(type_of(r).dtype))
    factor = stop_gradient(cast(r, type_of(unit).dtype))
    factors = (factor, unit, factor, unit)
    return sylvester(r, r, *factors, upper_triangle(dt), transposed=False)


triangular_sqrt: Primitive = Primitive(
    "triangular_sqrt",
    "linalg",
    _root_type,
    _root_reference,
    jvp=(_root_jvp,),
    batch=batch_leading(lambda: triangular_sqrt),
    lower=Library(lanes_of_matrices),
    expand=_root_expand,
)
