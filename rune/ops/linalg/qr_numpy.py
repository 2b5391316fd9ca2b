"""Householder reflections in NumPy: whole factorisations by panels, and the product of reflections.

NumPy factorises in double precision, as f64 and c128 need. For f32 and c64, from LARGE columns on,
NumPy factorises panels only, and the columns after a panel are updated by matrix products in the
matrices' own precision. Matrices that are not finite go by panels as well, where LAPACK would go by
blocks: a reflection that is not finite is left out of the products, where 0 times NaN would reach
the rows above it.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.linalg import _umath_linalg

from rune import dtypes
from rune.ops.linalg.small import over_matrices
from rune.ops.matrix_helpers import nan_like

PANEL = 64
LARGE = 256
FEW = 1 << 10  # numbers of a matrix up to which it is known which are above the diagonal
UNBLOCKED = 128  # columns up to which LAPACK reflects one by one


def _is_left_to_numpy(a: np.ndarray) -> bool:
    count = min(a.shape[-2:])
    if count >= LARGE and a.dtype not in (np.float64, np.complex128):
        return False
    return count <= UNBLOCKED or bool(np.isfinite(a).all())


def _finite_count(taus: np.ndarray) -> int:
    """How many reflections come before the first one that is not finite."""
    return int(np.isfinite(taus).cumprod().sum())


def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with the vectors below it, and taus. Shapes: [*B, M, N] -> [*B, M, N], [*B, K]."""
    if _is_left_to_numpy(a):
        reflectors, taus = np.linalg.qr(a, mode="raw")
        return _narrowed(np.swapaxes(reflectors, -1, -2), a), _narrowed(taus, a)
    lead, count = a.shape[:-2], min(a.shape[-2:])
    reflectors, taus = np.array(a), np.zeros((*lead, count), a.dtype)
    for lane in np.ndindex(*lead):
        _factorise(reflectors[lane], taus[lane])
    return reflectors, taus


def _narrowed(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    return x.astype(a.dtype, copy=False)


def _factorise(a: np.ndarray, taus: np.ndarray) -> None:
    count = len(taus)
    for start in range(0, count, PANEL):
        end = min(start + PANEL, count)
        reflectors, panel_taus = np.linalg.qr(a[start:, start:end], mode="raw")
        a[start:, start:end], taus[start:end] = reflectors.T, panel_taus
        finite_end = start + _finite_count(panel_taus)
        v, t = _block(a[start:, start:finite_end], taus[start:finite_end])
        a[start:, end:] -= v @ (t.conj().T @ (v.conj().T @ a[start:, end:]))
        if finite_end < end:
            a[finite_end:, end:] = nan_like(a)


def _block(reflectors: np.ndarray, taus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V and T of H₁ H₂ … = I - V T Vᴴ."""
    v = np.tril(reflectors, -1)
    np.fill_diagonal(v, 1)
    # With tau = 0 a reflection is the identity, and so it is with v = 0 and any tau.
    v = np.where(taus == 0, np.zeros((), v.dtype), v)
    # In double precision: for nearly parallel vectors the inverse would lose half of the digits.
    wide = v.astype(np.complex128 if np.iscomplexobj(v) else np.float64)
    inverse = np.triu(wide.conj().T @ wide, 1)
    np.fill_diagonal(inverse, 1 / np.where(taus == 0, np.ones((), wide.dtype), taus))
    return v, np.linalg.inv(inverse).astype(v.dtype)


def householder_product(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """The first N columns of H₁ H₂ … H_K. Shapes: [*B, M, N], [*B, K] -> [*B, M, N]."""
    return reflections_product(a, taus, a.shape[-1])


def reflections_product(a: np.ndarray, taus: np.ndarray, width: int) -> np.ndarray:
    """Its first `width` columns. Shapes: [*B, M, K], [*B, K] -> [*B, M, width]."""
    return over_matrices(lambda p, t: _product(p, t[0], width), a, taus[..., None, :])


def _product(a: np.ndarray, taus: np.ndarray, width: int) -> np.ndarray:
    out, finite_count = np.eye(a.shape[0], width, dtype=a.dtype), _finite_count(taus)
    for start in reversed(range(0, finite_count, PANEL)):
        end = min(start + PANEL, finite_count)
        v, t = _block(a[start:, start:end], taus[start:end])
        out[start:, start:] -= v @ (t @ (v.conj().T @ out[start:, start:]))
    if finite_count < len(taus):
        out[:, finite_count:] = nan_like(a)
    return out


def qr(a: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, np.ndarray]:
    """Q and R; Q is square if full_matrices."""
    if _is_left_to_numpy(a):
        return _qr_in_lapack(a, full_matrices)
    reflectors, taus = geqrf(a)
    rows, count = a.shape[-2], taus.shape[-1]
    width = rows if full_matrices else count
    vectors = reflectors[..., :, :count]
    q = reflections_product(vectors, taus, width)
    return q, np.triu(reflectors[..., :width, :])


# What np.linalg.qr calls, which takes three times as long for a few numbers.
_RAW, _REDUCED, _COMPLETE = (getattr(_umath_linalg, f"qr_{name}", None) for name in ("r_raw", "reduced", "complete"))


def _qr_in_lapack(a: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, np.ndarray]:
    """Q and R by NumPy's LAPACK, in double precision."""
    if _RAW is None or _REDUCED is None or _COMPLETE is None:
        q, r = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
        return _narrowed(q, a), _narrowed(r, a)
    rows, columns = a.shape[-2:]
    packed = a.astype(np.complex128 if a.dtype in dtypes.COMPLEX else np.float64)  # a copy, which becomes R
    taus = _RAW(packed)
    is_square = full_matrices and rows > columns
    q = (_COMPLETE if is_square else _REDUCED)(packed, taus)
    height = rows if is_square else min(rows, columns)
    return _narrowed(q, a), _upper(packed[..., :height, :] if height < rows else packed, a.dtype)


def _upper(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The upper triangles, with zeros below, in this dtype."""
    rows, columns = x.shape[-2:]
    if rows * columns > FEW:
        return np.triu(x).astype(dtype, copy=False)
    result = x.astype(dtype)
    np.copyto(result, _ZERO, where=_lower_mask(rows, columns), casting="unsafe")
    return result


_ZERO = np.zeros((), np.int8)


@functools.lru_cache(maxsize=64)
def _lower_mask(rows: int, columns: int) -> np.ndarray:
    return np.tri(rows, columns, -1, bool)
