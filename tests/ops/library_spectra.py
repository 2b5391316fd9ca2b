"""Uses of the spectral decompositions: what they rebuild, orthogonality, and functions of spectra.

Vectors are compared by weighted sums of projectors, which do not depend on phases. Each vector has
a different weight, so that derivatives can be compared with differences, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg

import rune.numpy as rnp
from rune import dtypes
from rune.ops import matrix_helpers as m
from rune.ops.linalg import eig, eigh, hessenberg, householder_product, schur, svd, tridiagonal
from rune.ops.movement import part
from tests.ops.calls import Operand
from tests.ops.use import Use

REAL, COMPLEX = dtypes.f64, dtypes.c128
WEIGHTS = (1.0, -2.0, 0.5, 3.0, 0.25, 1.5, -1.0)  # of the vectors, in their order


def _matrix(*shape: int, dtype: np.dtype = REAL) -> Operand:
    return Operand(shape, dtype, -1.0, 1.0)


def _adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def _weighted(u: Any, v: Any) -> Any:
    """The sum of u_k v_kᴴ by weights. Shapes: [*B, M, K], [*B, N, K] -> [*B, M, N]."""
    weights = np.asarray(WEIGHTS[: u.shape[-1]])
    return rnp.matmul(u * weights, m.adjoint(v))


# --- eigh -------------------------------------------------------------------------------------


def _graded(a: Any) -> Sequence[Any]:
    """Hermitian, with eigenvalues well apart."""
    n = a.shape[-1]
    return ((a + m.adjoint(a)) / 4 + rnp.diag(rnp.arange(n).astype(a.dtype)),)


def _other_triangle(lower: bool) -> Callable[[Any], Sequence[Any]]:
    """The same numbers in one triangle; the other one and the phase of the diagonal differ."""

    def prepare(a: Any) -> Sequence[Any]:
        (definite,) = _graded(a)
        triangle, other = (m.lower_triangle, m.upper_triangle) if lower else (m.upper_triangle, m.lower_triangle)
        return (triangle(definite) + other(a, 1 if lower else -1),)

    return prepare


def _hermitian(a: np.ndarray, lower: bool) -> np.ndarray:
    triangle = np.tril(a, -1) if lower else np.triu(a, 1)
    return triangle + _adjoint(triangle) + np.eye(a.shape[-1]) * np.real(a)


def _seen_of_eigh(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    w, v = outputs
    return w, _weighted(v, v), rnp.matmul(m.adjoint(v), v)


def _eigh_truth(lower: bool) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    def expected(a: np.ndarray) -> Sequence[np.ndarray]:
        w, v = np.linalg.eigh(_hermitian(a, lower))
        weighted_products = (v * np.asarray(WEIGHTS[: v.shape[-1]])) @ _adjoint(v)
        return w, weighted_products, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)

    return expected


def _eigh(operand: Operand, lower: bool, prepare: Any = _graded, **flags: Any) -> Use:
    params = {"lower": lower, "vectors": True}
    return Use(eigh, (operand,), _eigh_truth(lower), _seen_of_eigh, params, prepare, **flags)


def _eigenvalues(operand: Operand, lower: bool) -> Use:
    params = {"lower": lower, "vectors": False}
    return Use(eigh, (operand,), lambda a: _eigh_truth(lower)(a)[:1], params=params, prepare=_graded)


_EIGHS = [
    _eigh(_matrix(4, 4), True),
    _eigh(_matrix(2, 5, 5, dtype=COMPLEX), False),
    _eigh(_matrix(1, 1, dtype=COMPLEX), True),
    _eigh(_matrix(3, 3, dtype=COMPLEX), True, _other_triangle(True)),
    _eigh(_matrix(4, 4), False, _other_triangle(False)),
    _eigh(_matrix(2, 0, 0), True, smooth=False),
    _eigenvalues(_matrix(2, 3, 3), True),
    _eigenvalues(_matrix(4, 4, dtype=COMPLEX), False),
]


# --- svd --------------------------------------------------------------------------------------


def _spread(a: Any) -> Sequence[Any]:
    """With singular values well apart."""
    rows, columns = a.shape[-2:]
    k = min(rows, columns)
    values = rnp.diag(1.0 + rnp.arange(k).astype(a.dtype))
    return (a / 4 + rnp.pad(values, ((0, rows - k), (0, columns - k))),)


def _seen_of_svd(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    u, s, vh = outputs
    k = s.shape[-1]
    thin_u, thin_v = part(u, -1, 0, k), m.adjoint(part(vh, -2, 0, k))
    unitary = rnp.matmul(m.adjoint(u), u), rnp.matmul(vh, m.adjoint(vh))
    projectors = (_projector(part(x, -1, k, x.shape[-1])) for x in (u, m.adjoint(vh)))
    weighted_products = [_weighted(p, q) for p in (thin_u, thin_v) for q in (thin_u, thin_v)]
    return s, *weighted_products, *unitary, *projectors


def _projector(x: Any) -> Any:
    return rnp.matmul(x, m.adjoint(x))


def _svd_truth(full_matrices: bool) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    def expected(a: np.ndarray) -> Sequence[np.ndarray]:
        u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
        k = s.shape[-1]
        thin = u[..., :k], _adjoint(vh)[..., :k]
        weights = np.asarray(WEIGHTS[:k])
        weighted_products = [(p * weights) @ _adjoint(q) for p in thin for q in thin]
        unitary = [_adjoint(u) @ u, vh @ _adjoint(vh)]
        projectors = [x[..., k:] @ _adjoint(x[..., k:]) for x in (u, _adjoint(vh))]
        return s, *weighted_products, *(np.round(x) for x in unitary), *projectors

    return expected


def _svd(operand: Operand, full_matrices: bool, prepare: Any = _spread, **flags: Any) -> Use:
    params = {"full_matrices": full_matrices, "vectors": True}
    truth = _svd_truth(full_matrices)
    return Use(svd, (operand,), truth, _seen_of_svd, params, prepare, **flags)


def _singular_values(operand: Operand) -> Use:
    params = {"full_matrices": False, "vectors": False}
    return Use(svd, (operand,), lambda a: [np.linalg.svd(a, compute_uv=False)], params=params, prepare=_spread)


_SVDS = [
    _svd(_matrix(3, 3), True),
    _svd(_matrix(5, 3), False),
    _svd(_matrix(2, 3, 4, dtype=COMPLEX), True),
    _svd(_matrix(4, 2, dtype=COMPLEX), True),
    _svd(_matrix(0, 3), True, lambda a: (a,), smooth=False),
    _svd(_matrix(2, 4, 0), False, lambda a: (a,), smooth=False),
    _singular_values(_matrix(2, 3, 5)),
    _singular_values(_matrix(4, 4, dtype=COMPLEX)),
]

# --- eig --------------------------------------------------------------------------------------


def _apart(a: Any) -> Sequence[Any]:
    """With eigenvalues well apart, some of them in conjugate pairs."""
    n = a.shape[-1]
    return (a / 4 + rnp.diag(rnp.arange(n).astype(a.dtype)) + (rnp.eye(n, k=1) - rnp.eye(n, k=-1)),)


def _seen_of_eig(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    """Traces of powers, residuals, lengths, and that the largest component is real."""
    w, u, v = outputs
    powers = [rnp.sum(w**k, -1) for k in (1, 2)]
    of_right = rnp.matmul(a.astype(v.dtype), v) - v * w[..., None, :]
    of_left = rnp.matmul(m.adjoint(u), a.astype(v.dtype)) - w[..., :, None] * m.adjoint(u)
    largest = [rnp.take_along_axis(x, rnp.argmax(abs(x), -2, keepdims=True), -2) for x in (u, v)]
    lengths = [rnp.sum(abs(x) ** 2, -2) for x in (u, v)]
    inner = rnp.sum(rnp.conj(u) * v, -2)
    rebuilt = rnp.matmul(v * (w / inner)[..., None, :], m.adjoint(u))
    return *powers, of_right, of_left, *(x.imag for x in largest), *lengths, rebuilt


def _eig_truth(a: np.ndarray) -> Sequence[np.ndarray]:
    wide = a.astype(np.complex128)
    powers = [np.trace(x, axis1=-2, axis2=-1) for x in (wide, wide @ wide)]
    row = np.zeros((*a.shape[:-2], 1, a.shape[-1]))
    ones = np.ones(a.shape[:-1])
    return *powers, wide * 0, wide * 0, row, row, ones, ones, wide


_EIGS = [
    Use(eig, (operand,), _eig_truth, _seen_of_eig, {"left": True, "right": True}, _apart)
    for operand in (_matrix(4, 4), _matrix(2, 3, 3, dtype=COMPLEX))
] + [
    Use(
        eig,
        (_matrix(4, 4),),
        lambda a: _eig_truth(a)[:2],
        lambda outputs, a: [rnp.sum(outputs[0] ** k, -1) for k in (1, 2)],
        {"left": False, "right": right},
        _apart,
    )
    for right in (True, False)
]


# --- forms ------------------------------------------------------------------------------------


def _seen_of_schur(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    """The product, Zᴴ Z, the part below T, and A Z = Z T, by columns up to their phases."""
    t, z = outputs
    below = m.lower_triangle(t, -1 if a.dtype in dtypes.COMPLEX else -2)
    residual = rnp.matmul(a, z) - rnp.matmul(z, t)
    projection = rnp.abs(rnp.matmul(m.adjoint(z), rnp.matmul(a, z))) - rnp.abs(t)
    rebuilt = rnp.matmul(rnp.matmul(z, t), m.adjoint(z))
    return rebuilt, rnp.matmul(m.adjoint(z), z), below, residual, projection


def _schur_truth(a: np.ndarray) -> Sequence[np.ndarray]:
    unit = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    return a, unit, a * 0, a * 0, np.abs(a) * 0


def _unitary(reflectors: Any, taus: Any) -> Any:
    """The product of reflections, behind the first row and column of the identity."""
    inner = householder_product(reflectors[..., 1:, :-1], taus)
    pad = [*((0, 0) for _ in reflectors.shape[:-2]), (1, 0), (1, 0)]
    corner = np.zeros(reflectors.shape[-2:], bool)
    corner[0, 0] = True
    return rnp.where(corner, np.ones((), reflectors.dtype), rnp.pad(inner, pad))


def _seen_of_hessenberg(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    reflectors, taus = outputs
    q, h = _unitary(reflectors, taus), m.upper_triangle(reflectors, -1)
    rebuilt = rnp.matmul(rnp.matmul(q, h), m.adjoint(q))
    return rebuilt, rnp.matmul(m.adjoint(q), q), reflectors, taus


def _hessenberg_truth(a: np.ndarray) -> Sequence[np.ndarray]:
    (gehrd,) = scipy.linalg.get_lapack_funcs(("gehrd",), (a,))
    n = a.shape[-1]
    reductions = [gehrd(x) for x in a.reshape(-1, n, n)]
    reflectors, taus = (np.stack(x) for x in ([f[0] for f in reductions], [f[1] for f in reductions]))
    return *_schur_truth(a)[:2], reflectors.reshape(a.shape), taus.reshape(*a.shape[:-2], n - 1)


def _seen_of_tridiagonal(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    reflectors, d, e, taus = outputs
    q, off_diagonal = _unitary(reflectors, taus), rnp.pad(e, [*((0, 0) for _ in e.shape[:-1]), (1, 0)])
    above = rnp.eye(d.shape[-1], k=1, dtype=d.dtype) * off_diagonal[..., None, :]
    t = m.from_diagonal(d) + above + rnp.swapaxes(above, -1, -2)
    t = t.astype(q.dtype)
    columns = [m.upper_triangle(m.lower_triangle(x, -1), -1) for x in (reflectors, t)]
    rebuilt = rnp.matmul(rnp.matmul(q, t), m.adjoint(q))
    return rebuilt, rnp.matmul(m.adjoint(q), q), columns[0] - columns[1]


def _upside_down(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    """The upper form is the lower one of the matrix read backwards."""
    backwards = [rnp.flip(x, -1) for x in outputs[1:]]
    reflectors = rnp.flip(outputs[0], (-2, -1))
    return [rnp.flip(x, (-2, -1)) for x in _seen_of_tridiagonal((reflectors, *backwards), a)]


_FORMS = [
    *(
        Use(schur, (operand,), _schur_truth, _seen_of_schur, {"vectors": True}, _apart)
        for operand in (_matrix(5, 5), _matrix(2, 3, 3, dtype=COMPLEX))
    ),
    Use(
        schur,
        (_matrix(4, 4, dtype=COMPLEX),),
        lambda a: [np.trace(a), 0 * a],
        lambda outputs, a: [rnp.trace(outputs[0]), m.lower_triangle(outputs[0], -1)],
        {"vectors": False},
        _apart,
    ),
    *(
        Use(hessenberg, (operand,), _hessenberg_truth, _seen_of_hessenberg)
        for operand in (_matrix(5, 5), _matrix(2, 3, 3, dtype=COMPLEX), _matrix(1, 1))
    ),
    Use(
        tridiagonal,
        (_matrix(2, 4, 4, dtype=COMPLEX),),
        lambda a: _schur_truth(a)[:3],
        _seen_of_tridiagonal,
        {"lower": True},
        _graded,
    ),
    Use(tridiagonal, (_matrix(4, 4),), lambda a: _schur_truth(a)[:3], _upside_down, {"lower": False}, _graded),
]


USES = (*_EIGHS, *_SVDS, *_EIGS, *_FORMS)
