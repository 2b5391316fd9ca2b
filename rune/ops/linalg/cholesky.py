"""cholesky: the lower triangular L with L Lᴴ = A. Only the lower triangle of A is read.

If a lane's matrix is not positive definite, the lower triangle of its result is NaN, and so is the
derivative; other lanes are not affected. The derivative is that of the lower triangle that is read,
so the result does not depend on the elements above the diagonal.

Reference:  LAPACK's potrf through NumPy; from 256 rows on by blocks of columns, so that nearly
            all of the work is done by matrix products (measured: four times as fast at 1024).
Expansion:  left-looking by blocks of columns: a block minus L times its own rows of L, then column
            after column within the block. Tiny matrices are written out, vectorised over lanes.
Source:     Golub & Van Loan 4e, §4.2; derivative: Murray 2016, arXiv:1602.07527, eq. 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.ops.arithmetic import add, div, eq, ge, gt, mul, ne, select, sub
from rune.ops.family import stretch
from rune.ops.linalg.dense import dense, is_dense
from rune.ops.linalg.lapack import cholesky_in_lapack
from rune.ops.linalg.small import is_small, over_matrices
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    batch_leading,
    conjugate,
    corner,
    elements,
    eye,
    from_elements,
    full,
    grown_by_identity,
    hermitian,
    is_static,
    keep,
    lower_triangle,
    matmul,
    nan_like,
    next_multiple,
    number,
    put,
    real_part,
    require_matrices,
    require_square,
    rows,
    steps,
    window,
    zeros,
)
from rune.ops.memory import in_memory
from rune.ops.transcendental import sqrt

if TYPE_CHECKING:
    from rune.array import Array

BLOCK = 32  # columns of a block in the expansion
PANEL = 64  # columns of a block in the reference, for matrices of LARGE rows or more
LARGE = 256
COMPILED = 16  # columns up to which the compiled expansion is faster on the CPU (measured)


def _type(a: ArrayType) -> ArrayType:
    require_matrices("cholesky", a)
    require_square("cholesky", a)
    return a.strong()


def _is_routine(a: ArrayType) -> bool:
    return is_dense("cholesky", a)


# --- reference --------------------------------------------------------------------------------


def factored(a: np.ndarray) -> np.ndarray:
    """The meaning in NumPy."""
    return cholesky_in_lapack(a) if a.shape[-1] < LARGE else over_matrices(_by_panels, a)


def _by_panels(a: np.ndarray) -> np.ndarray:
    n = a.shape[0]
    out = np.zeros_like(a)
    for start in range(0, n, PANEL):
        end = min(start + PANEL, n)
        panel = a[start:, start:end] - out[start:, :start] @ out[start:end, :start].conj().T
        top = cholesky_in_lapack(panel[: end - start])
        if np.isnan(top[0, 0]):
            return np.tril(np.full(a.shape, nan_like(a)))
        out[start:end, start:end] = top
        out[end:, start:end] = panel[end - start :] @ np.linalg.inv(top).conj().T
    return out


# --- expansion --------------------------------------------------------------------------------


def _expand(a: Value) -> Array:
    if is_small(type_of(a)):
        return in_memory(_written_out(a))
    return dense_cholesky(a, parts=1)


def _by_loops(a: Value) -> Array:
    shape = type_of(a).shape
    factor = _blocked(a) if is_static(shape) and shape[-1] > BLOCK else _columns(a, a, np.int32(0))
    return or_all_nan(factor)


def _blocked(a: Value) -> Array:
    n = type_of(a).shape[-1]
    size = next_multiple(n, BLOCK)
    matrix = grown_by_identity(a, size)

    def step(k: Value, out: Value) -> list[Value]:
        start = mul(k, np.int32(BLOCK))
        block_rows = window(out, -2, start, BLOCK)
        panel = sub(window(matrix, -1, start, BLOCK), matmul(out, adjoint(block_rows)))
        return [put(out, -1, start, _columns(matrix, panel, start))]

    (out,) = steps(size // BLOCK, step, zeros(matrix))
    return corner(out, n, n)


def _columns(a: Value, panel: Value, start: Value) -> Array:
    """Columns of L, from those of A minus the share of earlier columns. `start` is the first's
    index.

    Shapes: a [*B, N, N], panel [*B, N, K] -> [*B, N, K].
    """
    shape = type_of(a).shape
    row = rows((*shape[:-1], 1))

    def step(j: Value, out: Value) -> list[Array]:
        diagonal_row = add(start, j)
        pivot_row = window(out, -2, diagonal_row, 1)
        column = sub(window(panel, -1, j, 1), matmul(out, adjoint(pivot_row)))
        pivot = real_part(window(column, -2, diagonal_row, 1))
        root = as_dtype_of(sqrt(_positive(pivot)), column)
        root = stretch(root, type_of(column).shape)
        below = select(eq(row, diagonal_row), root, div(column, root))
        return [put(out, -1, j, keep(ge(row, diagonal_row), below))]

    (out,) = steps(type_of(panel).shape[-1], step, zeros(panel))
    return out


def _positive(pivot: Value) -> Array:
    """The pivot, or NaN where it is not positive."""
    return select(gt(pivot, number(0, pivot)), pivot, nan_like(pivot))


def or_all_nan(factor: Value) -> Any:
    """The factor, all NaN in lanes that failed: a NaN propagates to the last diagonal element."""
    shape = type_of(factor).shape
    n = shape[-1]
    if n == 0:
        return factor
    last = real_part(window(window(factor, -1, np.int32(_last(n)), 1), -2, np.int32(_last(n)), 1))
    is_nan = stretch(ne(last, last), shape)
    return select(is_nan, lower_triangle(full(nan_like(factor), shape)), factor)


def _last(n: Size) -> int:
    # A window is clamped to the matrix, so any large number selects the last of a symbolic size.
    return n - 1 if isinstance(n, int) else np.iinfo(np.int32).max


def _written_out(a: Value) -> Any:
    """Every element of L as one expression over the lanes."""
    entries, lead = elements(a), type_of(a).shape[:-2]
    n = len(entries)
    factor: list[list[Any]] = [[number(0, a)] * n for _ in range(n)]
    for j in range(n):
        pivot = real_part(_less_products(entries[j][j], factor[j][:j], factor[j][:j]))
        root = as_dtype_of(sqrt(_positive(pivot)), a)
        factor[j][j] = root
        for i in range(j + 1, n):
            factor[i][j] = div(_less_products(entries[i][j], factor[i][:j], factor[j][:j]), root)
    if n == 0:
        return a
    is_nan = ne(real_part(factor[-1][-1]), real_part(factor[-1][-1]))
    nan_or_entries = [
        [select(is_nan, nan_like(a), factor[i][j]) if j <= i else factor[i][j] for j in range(n)] for i in range(n)
    ]
    return from_elements(nan_or_entries, lead)


def _less_products(x: Value, first: list[Array], second: list[Array]) -> Value:
    for p, q in zip(first, second, strict=True):
        x = sub(x, mul(p, conjugate(q)))
    return x


# --- derivative -------------------------------------------------------------------------------


def _jvp(da: Value, a: Value, factor: Value) -> Array:
    """L Φ(L⁻¹ Ȧ L⁻ᴴ), Φ the lower triangle with a halved diagonal."""
    inside = adjoint(triangular_solve(factor, hermitian(da), lower=True, unit_diagonal=False))
    inside = adjoint(triangular_solve(factor, inside, lower=True, unit_diagonal=False))
    return lower_triangle(matmul(factor, half_lower(inside)))  # NaN too, but 0 above


def half_lower(x: Value) -> Array:
    """The lower triangle, with its diagonal halved."""
    shape = type_of(x).shape
    halves = sub(full(number(1, x), shape), mul(eye(shape, type_of(x).dtype), number(0.5, x)))
    return mul(lower_triangle(x), halves)


def _pays(a: ArrayType) -> bool:
    n = a.shape[-1]
    return not _is_routine(a) and (not isinstance(n, int) or n > COMPILED)


dense_cholesky = dense("dense_cholesky", "cholesky", _type, _by_loops)

cholesky: Primitive = Primitive(
    "cholesky",
    "linalg",
    _type,
    factored,
    jvp=(_jvp,),
    batch=batch_leading(lambda: cholesky),
    lower=Library(lanes_of_matrices, _pays),
    expand=_expand,
)
