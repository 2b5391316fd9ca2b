"""Systems with structure: banded, Toeplitz and circulant matrices, given by the numbers they have.

Three diagonals are eliminated row by row and a circulant matrix is divided out by Fourier
transforms. Other bands, and Toeplitz matrices, are written out and solved as whole matrices: that
costs N² numbers and N³ operations, but runs at the speed of matrix products on every device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.core.interpreter import type_of
from rune.errors import ShapeError
from rune.numpy.arguments import static_int
from rune.numpy.linalg.arguments import computing, pair
from rune.ops.matrix_helpers import adjoint
from rune.scipy.linalg.patterns import length, toeplitz
from rune.scipy.linalg.solves import cho_solve


def _dense(name: str, bands: Any, below: int, above: int) -> Any:
    """The matrix of bands[above + i - j, j]; zeros elsewhere. [*B, L + U + 1, N] -> [*B, N, N]."""
    found = type_of(bands)
    count = found.shape[-2] if found.ndim >= 2 else 0
    if below < 0 or above < 0 or count != below + above + 1:
        raise ShapeError(
            f"{name}: cannot take the bands {found} ({below} below and {above} above the "
            f"diagonal: {below + above + 1} rows required)"
        )
    size = length(bands)
    row, column = np.indices((size, size))
    band = above + row - column
    inside = (band >= 0) & (band < count)
    chosen = bands[..., np.where(inside, band, 0), column]
    return rnp.where(inside, chosen, rnp.zeros((), found.dtype))


def _bands(a: Any, count: int, lower: bool) -> Any:
    """The first bands of a triangular matrix. [*B, N, N] -> [*B, count, N]."""
    size = length(a)
    k, column = np.indices((count, size))
    row = column + k if lower else column + k - (count - 1)
    inside = (row >= 0) & (row < size)
    found = a[..., np.clip(row, 0, size - 1), column]
    return rnp.where(inside, found, rnp.zeros((), type_of(a).dtype))


def solve_banded(
    l_and_u: tuple[int, int], ab: Any, b: Any, overwrite_ab: bool = False,
    overwrite_b: bool = False, check_finite: bool = True,
) -> Any:  # fmt: skip
    """x with a x = b, where a has l diagonals below the main one and u above it.

    ab:     [l + u + 1, N] with a[i, j] = ab[u + i - j, j]. b [N] or [N, K].
    Errors: ShapeError where the number of rows is not l + u + 1, or sizes do not fit.
    Source: Golub & Van Loan 4e, §4.3.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_banded((0, 0), 2.0 * rnp.ones((1, 2)), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    below, above = (static_int("solve_banded", "a number of diagonals", n) for n in l_and_u)
    (bands, y), narrowed = computing("solve_banded", ab, b)
    whole = _dense("solve_banded", bands, below, above)
    if (below, above) != (1, 1) or type_of(bands).ndim > 2 or type_of(y).ndim > 2:
        return narrowed(rnp.linalg.solve(whole, y))
    columns = y if type_of(y).ndim == 2 else rnp.expand_dims(y, -1)
    found = ops.linalg.tridiagonal_solve(
        rnp.roll(bands[2], 1), bands[1], rnp.roll(bands[0], -1), columns
    )
    return narrowed(rnp.reshape(found, type_of(y).shape))


def solveh_banded(
    ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """x with a x = b for a positive definite a, of which one half of the diagonals is given.

    ab:     [u + 1, N] with a[i, j] = ab[u + i - j, j], i <= j; if lower ab[i - j, j], i >= j.
    Errors: ShapeError where sizes do not fit. NaN where `a` is not positive definite.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solveh_banded(2.0 * rnp.ones((1, 2)), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    return cho_solve_banded((cholesky_banded(ab, lower=lower), lower), b)


def cholesky_banded(
    ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Any:
    """The Cholesky factor of a banded matrix, in the same form (`solveh_banded`) and side.

    Shapes: [u + 1, N] -> [u + 1, N].

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.cholesky_banded(4.0 * rnp.ones((1, 2)))
    Array([[2., 2.]], f32[1,2], cpu:0)
    """
    (bands,), narrowed = computing("cholesky_banded", ab)
    whole = _half("cholesky_banded", bands, lower)
    factor = ops.linalg.cholesky(whole if lower else adjoint(whole))
    return narrowed(_bands(factor if lower else adjoint(factor), _rows(bands), lower))


def _rows(bands: Any) -> int:
    shape = type_of(bands).shape
    return static_int("linalg", "a number of bands", shape[-2]) if len(shape) > 1 else 0


def _half(name: str, bands: Any, lower: bool) -> Any:
    count = _rows(bands) - 1
    return _dense(name, bands, count if lower else 0, 0 if lower else count)


def cho_solve_banded(
    cb_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """x with a x = b from the factor that `cholesky_banded` gives, and its side.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> factor = linalg.cholesky_banded(4.0 * rnp.ones((1, 2)))
    >>> linalg.cho_solve_banded((factor, False), rnp.array([4.0, 8.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    what = "(cb, lower), with cb as cholesky_banded gives it"
    bands, lower = pair("cho_solve_banded", cb_and_lower, what)
    (x, y), narrowed = computing("cho_solve_banded", bands, b)
    return narrowed(cho_solve((_half("cho_solve_banded", x, lower), lower), y))


# --- Toeplitz and circulant -------------------------------------------------------------------


def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """x with T x = b, T the Toeplitz matrix of a first column, or of a pair (column, row).

    Shapes: column and row [N], b [N] or [N, K].

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_toeplitz(rnp.array([2.0, 0.0]), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    whole = toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)
    return rnp.linalg.solve(whole, b)


def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False) -> Any:
    """T x for a Toeplitz matrix, by Fourier transforms: O(N log N) for each column.

    Shapes: column [M], row [N], x [N] or [N, K] -> [M] or [M, K].
    Source: Golub & Van Loan 4e, §4.8.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.matmul_toeplitz(rnp.array([2.0, 0.0]), rnp.array([1.0, 2.0])).round(4)
    Array([2., 4.], f32[2], cpu:0)
    """
    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, rnp.conj(c_or_cr))
    (first, second, y), narrowed = computing("matmul_toeplitz", column, row, x)
    columns = y if type_of(y).ndim > 1 else rnp.expand_dims(y, -1)
    m, n = length(first), length(second)
    if m == 0 or n == 0:
        return narrowed(rnp.zeros((m, *type_of(y).shape[1:]), type_of(y).dtype))
    around = rnp.concatenate([first, rnp.flip(second[1:], 0)])
    spectrum = rnp.fft.fft(around)[:, None] * rnp.fft.fft(columns, m + n - 1, axis=0)
    found = rnp.fft.ifft(spectrum, axis=0)[:m]
    found = found if type_of(y).dtype in dtypes.COMPLEX else rnp.real(found)
    return narrowed(found if type_of(y).ndim > 1 else found[:, 0])


def solve_circulant(
    c: Any, b: Any, singular: str = "raise", tol: Any = None, caxis: int = -1, baxis: int = 0,
    outaxis: int = 0,
) -> Any:  # fmt: skip
    """x with C x = b, C the circulant matrix of the first column c, by Fourier transforms.

    caxis, baxis, outaxis:  where the vectors lie in c, b and the result; other axes broadcast.
    singular:  "lstsq" leaves out the frequencies whose size is up to tol (N eps times the greatest
               one for None); otherwise a singular C gives infinities or NaN.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_circulant(rnp.array([2.0, 0.0]), rnp.array([2.0, 4.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    (first, sides), narrowed = computing("solve_circulant", c, b)
    if 0 in type_of(sides).shape:
        return narrowed(sides)
    spectrum = rnp.fft.fft(rnp.moveaxis(first, caxis, -1), axis=-1)
    wanted = rnp.fft.fft(rnp.moveaxis(sides, baxis, -1), axis=-1)
    if type_of(spectrum).shape[-1] != type_of(wanted).shape[-1]:
        raise ShapeError(f"solve_circulant: cannot solve {type_of(first)} for {type_of(sides)}")
    if type_of(spectrum).ndim > 1 and type_of(wanted).ndim > 1:
        spectrum = rnp.expand_dims(spectrum, -2)
    quotient = _quotient(spectrum, wanted, tol) if singular == "lstsq" else wanted / spectrum
    found = rnp.fft.ifft(quotient, axis=-1)
    found = found if type_of(first).dtype in dtypes.COMPLEX else rnp.real(found)
    return narrowed(rnp.moveaxis(found, -1, outaxis))


def _quotient(spectrum: Any, wanted: Any, tol: Any) -> Any:
    size = rnp.abs(spectrum)
    if tol is None:
        eps = float(rnp.finfo(size.dtype).eps)
        tol = rnp.max(size, axis=-1, keepdims=True) * (size.shape[-1] * eps)
    kept = size > tol
    return rnp.where(kept, wanted / rnp.where(kept, spectrum, 1), 0)
