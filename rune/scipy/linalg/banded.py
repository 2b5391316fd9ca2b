"""Banded systems with SciPy's signatures: matrices given by their diagonals, solved within the
band.

Elimination proceeds down the matrix, over the rows or columns that its band reaches: N steps of
l (l + u) operations for l diagonals below the main one and u above, in a loop that compiles to one
kernel and has derivatives in both directions. No full matrix is formed.

Elements of `ab` outside the matrix are not read. Leading axes are those of a stack.
Source: Golub & Van Loan 4e, §4.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.control import scan
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import ShapeError
from rune.numpy.arguments import static_int
from rune.numpy.linalg.arguments import computing, pair
from rune.ops.family import size_value
from rune.ops.matrix_helpers import columns as column_numbers
from rune.ops.matrix_helpers import rows as row_numbers
from rune.ops.promote import broadcast_shape, broadcast_to
from rune.typing import ArrayLike, Shape

# --- general matrices -------------------------------------------------------------------------


def solve_banded(
    l_and_u: tuple[int, int],
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """x with a x = b, where a has l diagonals below the main one and u above it.

    Rows change places where that is needed. A singular `a` gives infinities or NaN.
    ab:     holds a[i, j] at ab[u + i - j, j].
    Shapes: ab [*B, l + u + 1, N], b [N] or [*B, N, K] -> [*B, N] or [*B, N, K].
    Types:  the common dtype of ab and b, complex included; bools and integers become f32.
    Errors: ShapeError where the number of rows is not l + u + 1, or sizes do not fit.
    Source: Golub & Van Loan 4e, §4.3.3.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_banded((0, 0), 2.0 * rnp.ones((1, 2)), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    below, above = (static_int("solve_banded", "a number of diagonals", n) for n in l_and_u)
    (bands, y), narrow = computing("solve_banded", ab, b)
    bands_type = _bands("solve_banded", bands)
    if below < 0 or above < 0 or bands_type.shape[-2] != below + above + 1:
        raise ShapeError(
            f"solve_banded: cannot take the bands {bands_type} ({below} below and {above} above "
            f"the diagonal: {below + above + 1} rows required)"
        )
    bands, columns = _same_batch("solve_banded", bands, y)
    return narrow(rnp.reshape(_solved(bands, columns, below), _result_shape(columns, y)))


def _solved(bands: Array, columns: Array, below: int) -> Array:
    if bands.shape[-2] == 3 and below == 1:
        lower, upper = rnp.roll(bands[..., 2, :], 1, -1), rnp.roll(bands[..., 0, :], -1, -1)
        return ops.linalg.tridiagonal_solve(lower, bands[..., 1, :], upper, columns)
    rows, sides = rnp.moveaxis(_rows(bands, below), -2, 0), rnp.moveaxis(columns, -2, 0)
    if below:
        rows, sides = _eliminated(rows, sides, below)
    return rnp.moveaxis(_substituted(rows, sides, False), 0, -2)


def _eliminated(rows: Array, sides: Array, below: int) -> tuple[Array, Array]:
    """U from its diagonal on, and the right-hand sides after elimination, row by row.

    Shapes: rows [N, *B, W] with a[i, i - below + c] = rows[i, c], sides [N, *B, K].
    """
    padding = [(0, below), *((0, 0),) * (rows.ndim - 1)]
    rows, sides = rnp.pad(rows, padding), rnp.pad(sides, padding)
    # Row i of the first window starts with column 0 at position below - i.
    first = rnp.moveaxis(rows[:below], 0, -2)[..., ::-1, 1:]
    first = _sheared(rnp.pad(first, [(0, 0)] * (first.ndim - 1) + [(0, 1)]))[..., ::-1, :]
    place = np.arange(below + 1)

    def step(waiting: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        window, side = (rnp.concatenate([w, rnp.expand_dims(r, -2)], -2) for w, r in zip(waiting, row, strict=True))
        is_pivot = rnp.argmax(rnp.abs(window[..., 0]), -1, keepdims=True) == place
        is_pivot = rnp.expand_dims(is_pivot, -1)
        pivot, pivot_side = (rnp.sum(rnp.where(is_pivot, x, 0), -2, keepdims=True) for x in (window, side))
        window, side = (rnp.where(is_pivot, x[..., :1, :], x)[..., 1:, :] for x in (window, side))
        factor = window[..., :1] / pivot[..., :1]
        window, side = window - factor * pivot, side - factor * pivot_side
        window = rnp.concatenate([window[..., 1:], rnp.zeros_like(window[..., :1])], -1)
        return (window, side), (pivot[..., 0, :], pivot_side[..., 0, :])

    start = first, rnp.moveaxis(sides[:below], 0, -2)
    return scan(step, start, (rows[below:], sides[below:]))[1]


def _substituted(rows: Array, sides: Array, forwards: bool) -> Array:
    """x with T x = sides, for T given by rows [N, *B, W] that begin with the diagonal, in either
    direction.

    Further elements multiply the unknowns computed before, the last one first.
    """
    width = rows.shape[-1] - 1
    if width == 0:
        return sides / rows

    def step(known: Array, equation: tuple[Array, Array]) -> tuple[Array, Array]:
        row, side = equation
        remainder = side - rnp.matmul(rnp.expand_dims(row[..., 1:], -2), known)[..., 0, :]
        x = remainder / row[..., :1]
        return rnp.concatenate([rnp.expand_dims(x, -2), known[..., :-1, :]], -2), x

    *lead, count = sides.shape[1:]
    known = rnp.zeros((*lead, width, count), sides.dtype)
    return scan(step, known, (rows, sides), reverse=not forwards)[1]


# --- Hermitian matrices -----------------------------------------------------------------------


def solveh_banded(
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """x with a x = b for a positive definite a, given by its upper or lower diagonals.

    ab:     holds a[i, j] at ab[u + i - j, j], i <= j; if lower at ab[i - j, j], i >= j.
    Shapes: ab [*B, u + 1, N], b [N] or [*B, N, K] -> [*B, N] or [*B, N, K].
    Types:  the common dtype of ab and b, complex included; bools and integers become f32.
    Errors: ShapeError if sizes do not match. NaN where `a` is not positive definite.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.3.5, band Cholesky.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solveh_banded(2.0 * rnp.ones((1, 2)), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    (bands, y), narrow = computing("solveh_banded", ab, b)
    factor = _factor(_lower_columns("solveh_banded", bands, lower))
    return narrow(_solved_by_factor("solveh_banded", factor, y))


def cholesky_banded(ab: ArrayLike, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factor of a banded matrix, in the same form (`solveh_banded`) and side.

    Shapes: [*B, u + 1, N] -> [*B, u + 1, N], with zeros outside the matrix.
    NaN from the first column on that shows `ab` not to be positive definite.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError for rank 0.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.3.5, band Cholesky.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.cholesky_banded(4.0 * rnp.ones((1, 2)))
    Array([[2., 2.]], f32[1,2], cpu:0)
    """
    (bands,), narrow = computing("cholesky_banded", ab)
    factor = _factor(_lower_columns("cholesky_banded", bands, lower))
    return narrow(factor if lower else _upper_bands(factor))


def cho_solve_banded(
    cb_and_lower: tuple[Any, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """x with a x = b from the factor that `cholesky_banded` gives, and its side.

    Shapes: cb [*B, u + 1, N], b [N] or [*B, N, K] -> [*B, N] or [*B, N, K].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match
            exactly.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.3.5, band Cholesky.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> factor = linalg.cholesky_banded(4.0 * rnp.ones((1, 2)))
    >>> linalg.cho_solve_banded((factor, False), rnp.array([4.0, 8.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    description = "(cb, lower), with cb as cholesky_banded gives it"
    bands, lower = pair("cho_solve_banded", cb_and_lower, description)
    (x, y), narrow = computing("cho_solve_banded", bands, b)
    columns = _lower_columns("cho_solve_banded", x, lower)
    return narrow(_solved_by_factor("cho_solve_banded", columns, y))


def _factor(bands: Array) -> Array:
    """L's diagonals, from those of L Lᴴ: every column takes its part off those that it reaches."""
    *lead, count, _ = bands.shape
    diagonal = rnp.real(bands[..., :1, :]).astype(bands.dtype)  # whatever they contain, as in LAPACK
    bands = rnp.concatenate([diagonal, bands[..., 1:, :]], -2)

    def step(products: Array, column: Array) -> tuple[Array, Array]:
        remainder = column - products[..., 0]
        factor = remainder / rnp.sqrt(rnp.real(remainder[..., :1])).astype(remainder.dtype)
        change = rnp.expand_dims(factor, -1) * rnp.conj(rnp.expand_dims(factor, -2))
        window = (products + change)[..., 1:, 1:]
        return rnp.pad(window, [(0, 0)] * len(lead) + [(0, 1)] * 2), factor

    start = rnp.zeros((*lead, count, count), bands.dtype)
    return rnp.moveaxis(scan(step, start, rnp.moveaxis(bands, -1, 0))[1], 0, -1)


def _solved_by_factor(name: str, bands: Array, b: Array) -> Array:
    """x with L Lᴴ x = b, L given by its diagonals."""
    bands, columns = _same_batch(name, bands, b)
    count = bands.shape[-2]
    rows = rnp.moveaxis(_rows(bands, count - 1)[..., ::-1], -2, 0)
    solution = _substituted(rows, rnp.moveaxis(columns, -2, 0), True)
    solution = _substituted(rnp.conj(rnp.moveaxis(bands, -1, 0)), solution, False)
    return rnp.reshape(rnp.moveaxis(solution, 0, -2), _result_shape(columns, b))


# --- storage ----------------------------------------------------------------------------------


def _bands(name: str, bands: Array) -> ArrayType:
    """The type of bands. Errors: ShapeError for a rank below 2."""
    bands_type = type_of(bands)
    if bands_type.ndim < 2:
        raise ShapeError(f"{name}: cannot take the bands {bands_type} (rows of diagonals required)")
    return bands_type


def _same_batch(name: str, bands: Array, b: Array) -> tuple[Array, Array]:
    """The bands, and right-hand sides as columns, with their leading axes broadcast together."""
    first, second = type_of(bands), type_of(b)
    columns = rnp.expand_dims(b, -1) if second.ndim == 1 else b
    if second.ndim == 0 or columns.shape[-2] != first.shape[-1]:
        raise ShapeError(f"{name}: cannot solve the bands {first} for {second} ({first.shape[-1]} rows required)")
    lead = broadcast_shape(name, first.shape[:-2], columns.shape[:-2])
    return (
        broadcast_to(name, bands, (*lead, *first.shape[-2:])),
        broadcast_to(name, columns, (*lead, *columns.shape[-2:])),
    )


def _result_shape(columns: Array, b: Array) -> Shape:
    return columns.shape[:-1] if type_of(b).ndim == 1 else columns.shape


def _sheared(a: Array) -> Array:
    """Row k moved k places to the left, with zeros after it. Shapes: [*B, W, N] -> [*B, W, N]."""
    *lead, count, size = a.shape
    no_padding = [(0, 0)] * len(lead)
    wide = rnp.pad(a, [*no_padding, (0, 0), (0, count)])
    flat = rnp.pad(rnp.reshape(wide, (*lead, count * (size + count))), [*no_padding, (0, count)])
    return rnp.reshape(flat, (*lead, count, size + count + 1))[..., :size]


def _rows(bands: Array, below: Size) -> Array:
    """The rows a[i, i - below + c] of a[i, j] = bands[above + i - j, j], zeros outside.

    Shapes: [*B, W, N] -> [*B, N, W].
    """
    size = bands.shape[-1]
    wide = rnp.pad(bands[..., ::-1, :], [(0, 0)] * (bands.ndim - 1) + [(below, 0)])
    return rnp.swapaxes(_sheared(wide)[..., :size], -1, -2)


def _lower_columns(name: str, bands: Array, lower: bool) -> Array:
    """The columns a[j + k, j] of Hermitian matrices as rows k, zeros outside."""
    shape = _bands(name, bands).shape
    if not lower:
        return rnp.conj(_sheared(bands[..., ::-1, :]))
    place = ops.add(row_numbers(shape), column_numbers(shape))
    return rnp.where(place < size_value(shape[-1], dtypes.i32), bands, 0)


def _upper_bands(columns: Array) -> Array:
    """The inverse of `_lower_columns`: SciPy's upper form."""
    return rnp.conj(_sheared(columns[..., ::-1])[..., ::-1, ::-1])
