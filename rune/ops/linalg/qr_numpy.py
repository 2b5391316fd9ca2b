"""Householder reflections in NumPy: whole factorisations by panels, and the product of reflections.

NumPy factorises in double precision, which is what f64 and c128 want. Of f32 and c64, from LARGE
columns on, panels are left to it, and all that is behind a panel is products of matrices in the
matrices' own precision. So it is of matrices that are not finite, where LAPACK would take blocks: a
reflection that is not finite takes no part in the products, where its zeros would spoil what comes
before it.
"""

from __future__ import annotations

import numpy as np

from rune.ops.linalg.small import over_matrices
from rune.ops.matrix_helpers import nan_like

PANEL = 64
LARGE = 256
UNBLOCKED = 128  # columns that LAPACK reflects one by one


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
        packed, taus = np.linalg.qr(a, mode="raw")
        return _narrowed(np.swapaxes(packed, -1, -2), a), _narrowed(taus, a)
    lead, count = a.shape[:-2], min(a.shape[-2:])
    packed, taus = np.array(a), np.zeros((*lead, count), a.dtype)
    for lane in np.ndindex(*lead):
        _factorise(packed[lane], taus[lane])
    return packed, taus


def _narrowed(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    return x.astype(a.dtype, copy=False)


def _factorise(a: np.ndarray, taus: np.ndarray) -> None:
    count = len(taus)
    for start in range(0, count, PANEL):
        end = min(start + PANEL, count)
        packed, panel_taus = np.linalg.qr(a[start:, start:end], mode="raw")
        a[start:, start:end], taus[start:end] = packed.T, panel_taus
        usual = start + _finite_count(panel_taus)
        v, t = _block(a[start:, start:usual], taus[start:usual])
        a[start:, end:] -= v @ (t.conj().T @ (v.conj().T @ a[start:, end:]))
        if usual < end:
            a[usual:, end:] = nan_like(a)


def _block(packed: np.ndarray, taus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V and T of H₁ H₂ … = I - V T Vᴴ."""
    v = np.tril(packed, -1)
    np.fill_diagonal(v, 1)
    # With tau = 0 a reflection is the identity, and so it is with v = 0 and any tau.
    v = np.where(taus == 0, np.zeros((), v.dtype), v)
    # In double precision: of nearly parallel vectors the inverse would lose half of the digits.
    wide = v.astype(np.complex128 if np.iscomplexobj(v) else np.float64)
    inverse = np.triu(wide.conj().T @ wide, 1)
    np.fill_diagonal(inverse, 1 / np.where(taus == 0, np.ones((), wide.dtype), taus))
    return v, np.linalg.inv(inverse).astype(v.dtype)


def householder_product(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """The first N columns of H₁ H₂ … H_K. Shapes: [*B, M, N], [*B, K] -> [*B, M, N]."""
    return reflections_product(a, taus, a.shape[-1])


def reflections_product(a: np.ndarray, taus: np.ndarray, width: int) -> np.ndarray:
    """As many columns of it. Shapes: [*B, M, K], [*B, K] -> [*B, M, width]."""
    return over_matrices(lambda p, t: _product(p, t[0], width), a, taus[..., None, :])


def _product(a: np.ndarray, taus: np.ndarray, width: int) -> np.ndarray:
    out, usual = np.eye(a.shape[0], width, dtype=a.dtype), _finite_count(taus)
    for start in reversed(range(0, usual, PANEL)):
        end = min(start + PANEL, usual)
        v, t = _block(a[start:, start:end], taus[start:end])
        out[start:, start:] -= v @ (t @ (v.conj().T @ out[start:, start:]))
    if usual < len(taus):
        out[:, usual:] = nan_like(a)
    return out


def qr(a: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, np.ndarray]:
    """Q and R; Q is square if full_matrices."""
    if _is_left_to_numpy(a):
        q, r = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
        return _narrowed(q, a), _narrowed(r, a)
    packed, taus = geqrf(a)
    rows, count = a.shape[-2], taus.shape[-1]
    width = rows if full_matrices else count
    vectors = packed[..., :, :count]
    q = reflections_product(vectors, taus, width)
    return q, np.triu(packed[..., :width, :])
