"""Toeplitz and circulant systems, given by the numbers that define them.

A circulant system is a division of Fourier transforms; a Toeplitz system grows by a row and a
column in each step of Levinson's recursion, N² operations in all. Its leading minors must be
regular, and its solution has as many digits as their condition allows; a symmetric positive
definite one is safe. Banded systems are in banded.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.control import custom_linear_solve, fori_loop
from rune.core.interpreter import type_of
from rune.errors import ShapeError
from rune.numpy.linalg.arguments import computing
from rune.scipy.linalg.patterns import length
from rune.transforms.batching.vmap import vmap
from rune.typing import ArrayLike


def solve_toeplitz(c_or_cr: Any, b: ArrayLike, check_finite: bool = True) -> Array:
    """x with T x = b, T the Toeplitz matrix of a first column, or of a pair (column, row).

    Without a row it is the conjugated column. The row's first element is not read.
    Shapes: column and row [*B, N], b [N] or [*B, N, K].
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ShapeError if sizes do not match. A zero leading minor gives infinities or NaN.
    Source: Levinson's recursion, Golub & Van Loan 4e, §4.7.3; derivative: the implicit one, T x' =
            b' - T' x, by products through Fourier transforms.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_toeplitz(rnp.array([2.0, 0.0]), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    first, second, y, narrow = _arguments("solve_toeplitz", c_or_cr, b)
    if length(first) != length(second):
        raise ShapeError(f"solve_toeplitz: cannot solve {type_of(first)}, {type_of(second)} (sizes differ)")
    return narrow(_over_lanes(_solved, first, second, y))


def _solved(column: Array, row: Array, b: Array) -> Array:
    if 0 in type_of(b).shape:
        return b
    return custom_linear_solve(
        lambda x: _product(column, row, x),
        b,
        lambda _, y: _levinson(column, row, y),
        lambda _, y: _levinson(_with_head(row, column), column, y),
    )


def _with_head(row: Array, column: Array) -> Array:
    """The first row, with the element that it shares with the first column."""
    return rnp.concatenate([column[:1], row[1:]])


def _levinson(column: Array, row: Array, b: Array) -> Array:
    """x for growing leading systems, with the solutions f and g for the first and last unit vector.

    Shapes: [N], [N], [N, K] -> [N, K]. Elements beyond a leading system are zero.
    """
    n = length(column)
    # Row k of T up to its diagonal is a window of the column, reversed.
    backwards = rnp.concatenate([column[::-1], rnp.zeros_like(column)])
    above, place = rnp.concatenate([row[1:], rnp.zeros_like(row[:1])]), np.arange(n)

    def step(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        f, g, x = carry
        first = ops.sub(np.int32(n - 1), ops.cast(k, dtypes.i32))
        below = ops.dynamic_slice(backwards, first, sizes=(n,))
        late = rnp.concatenate([rnp.zeros_like(g[:1]), g[:-1]])
        of_f, of_g = rnp.sum(below * f), rnp.sum(above * g)
        scale = 1 / (1 - of_f * of_g)
        f, g = scale * (f - of_f * late), scale * (late - of_g * f)
        is_step_row = rnp.expand_dims(place == k, -1)
        missing = rnp.sum(rnp.where(is_step_row, b, 0), 0) - rnp.matmul(below, x)
        return f, g, x + rnp.expand_dims(g, -1) * missing

    unit = rnp.where(place == 0, 1 / column[0], 0)
    start = unit, unit, rnp.expand_dims(unit, -1) * b[0]
    return fori_loop(1, n, step, start)[2]


def matmul_toeplitz(c_or_cr: Any, x: ArrayLike, check_finite: bool = False) -> Array:
    """T x for a Toeplitz matrix, by Fourier transforms: O(N log N) for each column.

    Shapes: column [*B, M], row [*B, N], x [N] or [*B, N, K] -> [*B, M] or [*B, M, K].
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ShapeError if sizes do not match.
    Source: Golub & Van Loan 4e, §4.8.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.matmul_toeplitz(rnp.array([2.0, 0.0]), rnp.array([1.0, 2.0])).round(4)
    Array([2., 4.], f32[2], cpu:0)
    """
    first, second, y, narrow = _arguments("matmul_toeplitz", c_or_cr, x)
    return narrow(_over_lanes(_product, first, second, y))


def _arguments(name: str, c_or_cr: Array | tuple[Array, Array], b: ArrayLike) -> tuple[Any, Any, Any, Any]:
    """Column, row and right-hand sides in one dtype. Errors: ShapeError if sizes do not match."""
    pair = isinstance(c_or_cr, tuple)
    column, row = (rnp.atleast_1d(x) for x in (c_or_cr if pair else (c_or_cr, c_or_cr)))
    (first, second, y), narrow = computing(name, column, row if pair else rnp.conj(row), b)
    y_type = type_of(y)
    if y_type.ndim == 0 or y_type.shape[0 if y_type.ndim == 1 else -2] != length(second):
        raise ShapeError(
            f"{name}: cannot combine {y_type} with {type_of(first)} and {type_of(second)} "
            f"({length(second)} rows required)"
        )
    return first, second, y, narrow


def _over_lanes(function: Callable[..., Array], column: Array, row: Array, b: Array) -> Array:
    """`function` of one column, row and matrix of right-hand sides, over all leading axes."""
    columns = rnp.expand_dims(b, -1) if type_of(b).ndim == 1 else b
    shapes = [type_of(x).shape for x in (column, row, columns)]
    lead = rnp.broadcast_shapes(shapes[0][:-1], shapes[1][:-1], shapes[2][:-2])
    cores = shapes[0][-1:], shapes[1][-1:], shapes[2][-2:]
    lanes = [
        rnp.reshape(rnp.broadcast_to(x, (*lead, *core)), (math.prod(lead), *core))
        for x, core in zip((column, row, columns), cores, strict=True)
    ]
    solutions = vmap(function)(*lanes) if lead else function(*(x[0] for x in lanes))
    solutions = rnp.reshape(solutions, (*lead, *solutions.shape[-2:]))
    return solutions[..., 0] if type_of(b).ndim == 1 else solutions


def _product(column: Array, row: Array, x: Array) -> Array:
    """T x, as a part of the product with the circulant matrix in which T is embedded."""
    m, n = type_of(column).shape[0], type_of(row).shape[0]
    if m == 0 or n == 0:
        return rnp.zeros((m, type_of(x).shape[1]), type_of(x).dtype)
    size = m + n - 1
    around = rnp.concatenate([column, rnp.flip(row[1:], 0)])
    if type_of(x).dtype in dtypes.COMPLEX:
        spectrum = rnp.fft.fft(around)[:, None] * rnp.fft.fft(x, size, axis=0)
        return rnp.fft.ifft(spectrum, axis=0)[:m]
    spectrum = rnp.fft.rfft(around)[:, None] * rnp.fft.rfft(x, size, axis=0)
    return rnp.fft.irfft(spectrum, size, axis=0)[:m]


def solve_circulant(
    c: ArrayLike,
    b: ArrayLike,
    singular: str = "raise",
    tol: ArrayLike | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """x with C x = b, C the circulant matrix of the first column c, by Fourier transforms.

    caxis, baxis, outaxis:  the axes of the vectors in c, b and the result; other axes broadcast.
    singular:  "lstsq" leaves out frequencies whose magnitude is at most tol (for None, N eps times
               the largest); otherwise a singular C gives infinities or NaN.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match;
            AxisError for an axis out of range.
    Source: two Fourier transforms, Golub & Van Loan 4e, §4.8.2.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_circulant(rnp.array([2.0, 0.0]), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    (first, sides), narrow = computing("solve_circulant", c, b)
    if 0 in type_of(sides).shape:
        return narrow(sides)
    spectrum = rnp.fft.fft(rnp.moveaxis(first, caxis, -1), axis=-1)
    right_side = rnp.fft.fft(rnp.moveaxis(sides, baxis, -1), axis=-1)
    if type_of(spectrum).shape[-1] != type_of(right_side).shape[-1]:
        raise ShapeError(f"solve_circulant: cannot solve {type_of(first)} for {type_of(sides)}")
    quotient = _quotient(spectrum, right_side, tol) if singular == "lstsq" else right_side / spectrum
    solution = rnp.fft.ifft(quotient, axis=-1)
    solution = solution if type_of(first).dtype in dtypes.COMPLEX else rnp.real(solution)
    return narrow(rnp.moveaxis(solution, -1, outaxis))


def _quotient(spectrum: Array, right_side: Array, tol: ArrayLike | None) -> Array:
    size = rnp.abs(spectrum)
    if tol is None:
        eps = float(rnp.finfo(size.dtype).eps)
        tol = rnp.max(size, axis=-1, keepdims=True) * (size.shape[-1] * eps)
    is_regular = size > tol
    return rnp.where(is_regular, right_side / rnp.where(is_regular, spectrum, 1), 0)
