"""Householder reflections in NumPy: whole factorisations by panels, and the product of reflections.

NumPy factorises in double precision, as f64 and c128 need. For f32 and c64, from LARGE columns on,
NumPy factorises panels only, and the columns after a panel are updated by matrix products in the
matrices' own precision.
"""

from __future__ import annotations

import numpy as np

from rune.ops.linalg.small import over_matrices

PANEL = 64
LARGE = 256


def _is_left_to_numpy(a: np.ndarray) -> bool:
    return min(a.shape[-2:]) < LARGE or a.dtype in (np.float64, np.complex128)


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
        if end < a.shape[1]:
            v, t = _block(a[start:, start:end], taus[start:end])
            a[start:, end:] -= v @ (t.conj().T @ (v.conj().T @ a[start:, end:]))


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
    out = np.eye(a.shape[0], width, dtype=a.dtype)
    for start in reversed(range(0, len(taus), PANEL)):
        end = min(start + PANEL, len(taus))
        v, t = _block(a[start:, start:end], taus[start:end])
        out[start:, start:] -= v @ (t @ (v.conj().T @ out[start:, start:]))
    return out


def qr(a: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, np.ndarray]:
    """Q and R; Q is square if full_matrices."""
    if _is_left_to_numpy(a):
        q, r = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
        return _narrowed(q, a), _narrowed(r, a)
    reflectors, taus = geqrf(a)
    rows, count = a.shape[-2], taus.shape[-1]
    width = rows if full_matrices else count
    vectors = reflectors[..., :, :count]
    q = reflections_product(vectors, taus, width)
    return q, np.triu(reflectors[..., :width, :])
