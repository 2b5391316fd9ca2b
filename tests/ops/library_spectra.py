"""Uses of the spectral decompositions: what they rebuild, orthogonality, and functions of spectra.

Vectors are seen through what does not depend on their phases: projectors weighted by numbers, which
are different for every vector, so that their derivatives are held against differences as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.ops import matrix_helpers as m
from rune.ops.linalg import eigh, svd
from tests.ops.samples import Operand
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
        (made,) = _graded(a)
        kept, other = (m.lower_triangle, m.upper_triangle) if lower else (
            m.upper_triangle, m.lower_triangle)  # fmt: skip
        return (kept(made) + other(a, 1 if lower else -1),)

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
        weighted = (v * np.asarray(WEIGHTS[: v.shape[-1]])) @ _adjoint(v)
        return w, weighted, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)

    return expected


def _eigh(operand: Operand, lower: bool, prepare: Any = _graded, **flags: Any) -> Use:
    params = {"lower": lower, "vectors": True}
    return Use(eigh, (operand,), _eigh_truth(lower), _seen_of_eigh, params, prepare, **flags)


def _eigenvalues(operand: Operand, lower: bool) -> Use:
    params = {"lower": lower, "vectors": False}
    return Use(eigh, (operand,), lambda a: _eigh_truth(lower)(a)[:1], params=params,
               prepare=_graded)  # fmt: skip


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
    thin_u, thin_v = m.part(u, -1, 0, k), m.adjoint(m.part(vh, -2, 0, k))
    unitary = rnp.matmul(m.adjoint(u), u), rnp.matmul(vh, m.adjoint(vh))
    rest = (_projector(m.part(x, -1, k, x.shape[-1])) for x in (u, m.adjoint(vh)))
    weighted = [_weighted(p, q) for p in (thin_u, thin_v) for q in (thin_u, thin_v)]
    return s, *weighted, *unitary, *rest


def _projector(x: Any) -> Any:
    return rnp.matmul(x, m.adjoint(x))


def _svd_truth(full_matrices: bool) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    def expected(a: np.ndarray) -> Sequence[np.ndarray]:
        u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
        k = s.shape[-1]
        thin = u[..., :k], _adjoint(vh)[..., :k]
        weights = np.asarray(WEIGHTS[:k])
        weighted = [(p * weights) @ _adjoint(q) for p in thin for q in thin]
        unitary = [_adjoint(u) @ u, vh @ _adjoint(vh)]
        rest = [x[..., k:] @ _adjoint(x[..., k:]) for x in (u, _adjoint(vh))]
        return s, *weighted, *(np.round(x) for x in unitary), *rest

    return expected


def _svd(operand: Operand, full_matrices: bool, prepare: Any = _spread, **flags: Any) -> Use:
    params = {"full_matrices": full_matrices, "vectors": True}
    truth = _svd_truth(full_matrices)
    return Use(svd, (operand,), truth, _seen_of_svd, params, prepare, **flags)


def _singular_values(operand: Operand) -> Use:
    params = {"full_matrices": False, "vectors": False}
    return Use(svd, (operand,), lambda a: [np.linalg.svd(a, compute_uv=False)], params=params,
               prepare=_spread)  # fmt: skip


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

USES = (*_EIGHS, *_SVDS)
