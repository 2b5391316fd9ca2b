"""The Schur form of one matrix in NumPy: from LAPACK's eigenvectors, or by shifted QR steps.

Orthonormalised from the left, eigenvectors are Schur vectors; a conjugate pair contributes its real
and its imaginary part. Rounding leaves elements below the diagonal of about eps times the condition
of the eigenvectors. They are checked: where they are larger than rounding errors, the matrix is
reduced to Hessenberg form, and bulges are chased along its subdiagonal until every element of it is
zero. All of this is in double precision; the last step rounds.

Source: Golub & Van Loan 4e, §7.4 to 7.6 (algorithm 7.5.1); Francis 1961, Computer J. 4.
"""

from __future__ import annotations

import numpy as np

from rune.ops.linalg.hessenberg import reduced, reflector
from rune.ops.linalg.qr_numpy import householder_product

EPS = float(np.finfo(np.float64).eps)
STEPS = 30  # for each eigenvalue; two or three are usual
EXCEPTIONAL = 10  # steps without progress before an exceptional shift

Pair = tuple[np.ndarray, np.ndarray]


def schur_form(a: np.ndarray) -> Pair:
    """T and Z with A = Z T Zᴴ: upper triangular, or for real matrices with standard 2 × 2 blocks.

    Types: f64 or c128. NaN if there is no such form: not finite, or no convergence.
    """
    if not np.isfinite(a).all():
        return _nothing(a)
    return _from_eigenvectors(a) or _by_steps(a)


def _nothing(a: np.ndarray) -> Pair:
    nan = np.full(a.shape, np.nan, a.dtype)
    return nan, nan


# --- from eigenvectors ------------------------------------------------------------------------


def _from_eigenvectors(a: np.ndarray) -> Pair | None:
    """None where the eigenvectors are too nearly dependent."""
    try:
        w, v = np.linalg.eig(a)
    except np.linalg.LinAlgError:
        return None
    is_pair = np.zeros(len(a), bool)
    if not np.iscomplexobj(a):
        is_pair = np.imag(w) > 0
        v = np.where(np.roll(is_pair, 1), -np.imag(v), np.real(v))
    z = np.linalg.qr(v)[0].astype(a.dtype, copy=False)
    t = z.conj().T @ a @ z
    below = np.tril(t, -1)
    starts = np.flatnonzero(is_pair)
    below[starts + 1, starts] = 0
    rounding = 10 * len(a) * EPS * np.linalg.norm(a)
    if not np.linalg.norm(below) <= rounding:
        return None
    return standardised(t - below, z)


# --- by QR steps ------------------------------------------------------------------------------


def _by_steps(a: np.ndarray) -> Pair:
    reflectors, taus = reduced(a)
    t, z = np.triu(reflectors, -1), np.eye(len(a), dtype=a.dtype)
    z[1:, 1:] = householder_product(reflectors[1:, :-1], taus)
    high, count = len(a) - 1, 0
    while high > 0:
        low = _active(t, high)
        if low >= high - (0 if np.iscomplexobj(a) else 1):
            high, count = low - 1, 0
            continue
        count += 1
        if count > STEPS:
            return _nothing(a)
        _chase(t, z, low, high, _first_column(t, low, high, count % EXCEPTIONAL == 0))
    return standardised(t, z)


def _active(t: np.ndarray, high: int) -> int:
    """The first row of the block that ends in row `high`; the element that separates it is set to
    zero.
    """
    for k in range(high, 0, -1):
        size = abs(t[k - 1, k - 1]) + abs(t[k, k]) or np.linalg.norm(t)
        if abs(t[k, k - 1]) <= EPS * size:
            t[k, k - 1] = 0
            return k
    return 0


def _first_column(t: np.ndarray, low: int, high: int, exceptional: bool) -> np.ndarray:
    """The head of the first column of T - σ, or of (T - σ)(T - σ*) for real T."""
    last = t[high - 1 : high + 1, high - 1 : high + 1]
    trace, det = last[0, 0] + last[1, 1], last[0, 0] * last[1, 1] - last[0, 1] * last[1, 0]
    if exceptional:
        size = abs(t[high, high - 1]) + abs(t[high - 1, max(high - 2, 0)])
        trace, det = 1.5 * size, size**2
    if not np.iscomplexobj(t):
        head = t[low : low + 3, low : low + 2]
        x = head[0, 0] * (head[0, 0] - trace) + det + head[0, 1] * head[1, 0]
        y = head[1, 0] * (head[0, 0] + head[1, 1] - trace)
        return np.array([x, y, head[1, 0] * head[2, 1]])
    root = np.sqrt(complex(trace**2 / 4 - det))
    shift = min(trace / 2 + root, trace / 2 - root, key=lambda s: abs(s - last[1, 1]))
    return np.array([t[low, low] - shift, t[low + 1, low]])


def _chase(t: np.ndarray, z: np.ndarray, low: int, high: int, first: np.ndarray) -> None:
    """One step on rows low to high, in place: the bulge of a reflection, driven out downwards."""
    column = first
    for k in range(low, high):
        end = min(k + len(first), high + 1)
        if k > low:
            column = t[k:end, k - 1]
        v, tau, head = reflector(column)
        turn = np.eye(end - k) - tau * np.outer(v, v.conj())
        t[k:end, k:] = turn.conj().T @ t[k:end, k:]
        if k > low:
            t[k:end, k - 1] = 0
            t[k, k - 1] = head
        reach = min(end + 1, high + 1)
        t[:reach, k:end] = t[:reach, k:end] @ turn
        z[:, k:end] = z[:, k:end] @ turn


# --- 2 × 2 blocks -----------------------------------------------------------------------------


def standardised(t: np.ndarray, z: np.ndarray) -> Pair:
    """Real blocks of real eigenvalues made triangular, all others with equal diagonals."""
    for k in np.flatnonzero(np.diagonal(t, -1)):
        pair = slice(k, k + 2)
        turn, is_split = _rotation(*map(float, t[pair, pair].ravel()))
        t[pair, k:] = turn.T @ t[pair, k:]
        t[: k + 2, pair] = t[: k + 2, pair] @ turn
        z[:, pair] = z[:, pair] @ turn
        if is_split:
            t[k + 1, k] = 0
        else:
            t[k, k] = t[k + 1, k + 1] = (t[k, k] + t[k + 1, k + 1]) / 2
    return t, z


def _rotation(a: float, b: float, c: float, d: float) -> tuple[np.ndarray, bool]:
    """The rotation that brings [[a, b], [c, d]] to standard form, and whether that is
    triangular.
    """
    half = (a - d) / 2
    inside = half * half + b * c
    if inside >= 0:  # the eigenvalue d + x has the eigenvector (x, c)
        x, y, is_split = half + np.copysign(np.sqrt(inside), half), c, True
    else:
        angle = np.arctan2(d - a, b + c) / 2
        x, y, is_split = np.cos(angle), np.sin(angle), False
    length = np.hypot(x, y)
    cos, sin = x / length, y / length
    return np.array([[cos, -sin], [sin, cos]]), is_split


def complexified(t: np.ndarray, z: np.ndarray) -> Pair:
    """The triangular form of real quasi-triangular matrices; 1 × 1 blocks stay exactly real.

    Shapes: [*B, N, N] both. All blocks are rotated at once, since they do not overlap.
    """
    below = np.diagonal(t, -1, -2, -1)
    on = np.diagonal(t, axis1=-2, axis2=-1)
    half = (on[..., :-1] - on[..., 1:]) / 2
    inside = half * half + below * np.diagonal(t, 1, -2, -1)
    x = np.where(below == 0, 1, half + np.sqrt(inside.astype(np.complex128)))
    length = np.sqrt(np.abs(x) ** 2 + below**2)
    cos, sin = x / length, below / length
    g = np.zeros(t.shape, np.complex128)
    k = np.arange(t.shape[-1] - 1)
    g[..., k, k], g[..., k + 1, k] = cos, sin
    if t.shape[-1]:
        g[..., -1, -1] = 1
    second = below != 0
    g[..., k, k + 1] = -sin
    g[..., k + 1, k + 1] = np.where(second, np.conj(cos), g[..., k + 1, k + 1])
    return np.triu(np.conj(np.swapaxes(g, -1, -2)) @ t @ g), z @ g
