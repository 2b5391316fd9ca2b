"""Similar matrices of simpler form: schur, rsf2csf, hessenberg, cdf2rdf.

Derivatives are those of the primitives (rune/ops/linalg/schur.py, hessenberg.py): of schur where
the eigenvalues are simple, with the phases of its vectors held constant; of hessenberg where
its subdiagonal has no zero. Elsewhere they are infinite or NaN.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.linalg.arguments import computing, square
from rune.ops.complex_numbers import complex_dtype, is_complex
from rune.ops.linalg.blocks import triangular_form
from rune.ops.matrix_helpers import columns as column_numbers
from rune.ops.matrix_helpers import rows as row_numbers
from rune.ops.matrix_helpers import upper_triangle
from rune.scipy.sequences import from_sequences
from rune.typing import ArrayLike, Nested


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """T and Z with a = Z T Zᴴ, Z unitary and T upper triangular, or quasi-triangular if real.

    output:  "real" or "complex", of a real matrix.

    Shapes: [*B, N, N] -> [*B, N, N], [*B, N, N].
    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square; ArgumentError for an unknown output.
    The host computes it for every device.
    Source: shifted QR steps, Golub & Van Loan 4e, §7.5.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> t, z = linalg.schur(rnp.array([[0.0, 2.0], [-2.0, 0.0]]))
    >>> abs(t)
    Array([[0., 2.],
           [2., 0.]], f32[2,2], cpu:0)
    """
    if output not in ("real", "r", "complex", "c"):
        raise ArgumentError(f"schur: cannot give output={output!r} ('real' or 'complex' required)")
    (x,), narrow = computing("schur", a)
    square("schur", x)
    if output in ("complex", "c"):
        x = ops.cast(x, complex_dtype(type_of(x).dtype))
    return narrow(tuple(ops.linalg.schur(x, vectors=True)))


def rsf2csf(T: Nested, Z: Nested, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form from the real one.

    Shapes: [*B, N, N] both -> [*B, N, N] both, complex.
    Types:  c64, or c128 for 64-bit dtypes.
    Errors: ShapeError for matrices that are not square.
    Every 2 × 2 block is turned by one rotation; they do not overlap, so all are turned at once.
    Source: Golub & Van Loan 4e, §7.4.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> t, z = linalg.rsf2csf(rnp.array([[0.0, 2.0], [-2.0, 0.0]]), rnp.eye(2))
    >>> rnp.round(rnp.sort(rnp.diag(t).imag), 5)
    Array([-2.,  2.], f32[2], cpu:0)
    """
    (t, z), narrow = computing("rsf2csf", *from_sequences(T, Z))
    square("rsf2csf", t)
    square("rsf2csf", z)
    dtype = complex_dtype(type_of(t).dtype)
    t, z = ops.cast(t, dtype), ops.cast(z, dtype)
    return narrow(triangular_form(t, z))


@overload
def hessenberg(
    a: ArrayLike, calc_q: Literal[False] = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def hessenberg(a: ArrayLike, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any: ...
def hessenberg(
    a: ArrayLike, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """H, zero below its first subdiagonal, with a = Q H Qᴴ; with calc_q the pair of H and Q.

    Shapes: [*B, N, N] -> [*B, N, N].
    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square.
    Source: Golub & Van Loan 4e, §7.4.2.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.hessenberg(rnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], f32[2,2], cpu:0)
    """
    (x,), narrow = computing("hessenberg", a)
    n = square("hessenberg", x).shape[-1]
    reflectors, taus = ops.linalg.hessenberg(x)
    h = upper_triangle(reflectors, -1)
    if not calc_q:
        return narrow(h)
    if n == 0:
        return narrow((h, reflectors))
    q = ops.linalg.householder_product(reflectors[..., 1:, :-1], taus)
    pad = [(0, 0)] * (reflectors.ndim - 2)
    corner = np.zeros((n, n), bool)
    corner[0, 0] = True
    one = np.ones((), type_of(x).dtype)
    return narrow((h, rnp.where(corner, one, rnp.pad(q, [*pad, (1, 0), (1, 0)]))))


def cdf2rdf(w: Nested, v: Nested) -> tuple[Array, Array]:
    """Real blocks and vectors from complex eigenvalues in conjugate pairs: v diag(w) = vr wr.

    A pair a ± b i that stands together becomes the block [[a, b], [-b, a]], and its vectors
    minus the imaginary part of the first, and its real part.

    Shapes: [*B, N], [*B, M, N] -> [*B, N, N], [*B, M, N], real.
    Types:  f32, or f64 for 64-bit dtypes.
    Errors: ShapeError for other shapes, ArgumentError for real eigenvectors with complex values.
    Eigenvalues without an adjacent conjugate count as real.
    Source: Golub & Van Loan 4e, §7.4.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.cdf2rdf(rnp.array([1j, -1j]), rnp.array([[1.0, 1.0], [1j, -1j]]))[0] + 0.0
    Array([[ 0.,  1.],
           [-1.,  0.]], f32[2,2], cpu:0)
    """
    w, v = rnp.asarray(w), rnp.asarray(v)
    if w.ndim < 1 or v.ndim != w.ndim + 1 or v.shape[-1] != w.shape[-1]:
        raise ShapeError(
            f"cdf2rdf: cannot use eigenvectors {v.shape} with eigenvalues {w.shape} ([*B, M, N] with [*B, N])"
        )
    if not is_complex(w):
        return rnp.eye(w.shape[-1], dtype=w.dtype) * rnp.expand_dims(w, -1), rnp.real(v)
    if not is_complex(v):
        raise ArgumentError("cdf2rdf: cannot use real eigenvectors with complex eigenvalues")
    first, second = _pairs(w)
    real = rnp.eye(w.shape[-1], dtype=w.real.dtype) * rnp.expand_dims(w.real, -1)
    shape = (*w.shape, w.shape[-1])
    rows, columns = row_numbers(shape), column_numbers(shape)
    part = rnp.expand_dims(w.imag, -1)
    is_off_diagonal = ((rows + 1 == columns) & rnp.expand_dims(first, -1)) | (
        (rows == columns + 1) & rnp.expand_dims(second, -1)
    )
    vectors = rnp.where(rnp.expand_dims(first, -2), -v.imag, v.real)
    return rnp.where(is_off_diagonal, part, real), vectors


def _pairs(w: Array) -> tuple[Array, Array]:
    """Which eigenvalues are the first and which the second of a conjugate pair."""
    nonreal = w.imag != 0
    # Of a run of values that are not real, every other one is first.
    count = rnp.cumsum(rnp.where(nonreal, 1, 0).astype(dtypes.i32), axis=-1)
    return nonreal & (count % 2 == 1), nonreal & (count % 2 == 0)
