"""Calls of rune.numpy.linalg: eigenvalues, singular values and norms.

The call itself makes matrices whose eigenvalues (singular values) are well apart. Vectors are
judged by sums of weighted projectors, since their phases are free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.complex_cases import z
from tests.numpy.spelling import Case, Spec, case, f, i


def turned(xp: Any, x: Any) -> Any:
    """The conjugate transpose."""
    return xp.conj(xp.swapaxes(x, -1, -2))


def graded(xp: Any, x: Any) -> Any:
    """Square or not, with a diagonal that keeps spectra apart."""
    return x / 8 + 2 * xp.eye(*x.shape[-2:], dtype=x.dtype) * xp.arange(1, x.shape[-1] + 1)


def hermitian(xp: Any, x: Any) -> Any:
    """Hermitian, with eigenvalues well apart."""
    base = graded(xp, x)
    return (base + turned(xp, base)) / 2


def weighted(xp: Any, u: Any, v: Any) -> Any:
    """The sum of u_k v_kᴴ, weighted by k + 1."""
    return (u * xp.arange(1, u.shape[-1] + 1)) @ turned(xp, v)


def of(name: str, call: Any, *specs: Spec, **flags: Any) -> Case:
    kinds = " ".join(s.kind + str(s.shape) for s in specs)
    return case(f"linalg.{name} of {kinds}", call, *specs, slack=50, **flags)


def _eigh(xp: Any, x: Any) -> Any:
    w, v = xp.linalg.eigh(hermitian(xp, x))
    return w, weighted(xp, v, v)


def _eigh_upper(xp: Any, x: Any) -> Any:
    w, v = xp.linalg.eigh(hermitian(xp, x), "U")
    return w, weighted(xp, v, v), xp.linalg.eigvalsh(hermitian(xp, x), UPLO="U")


def _eig(xp: Any, x: Any) -> Any:
    """Functions of the matrix that do not depend on the order of eigenvalues."""
    w, v = (y + 0j for y in xp.linalg.eig(graded(xp, x)))  # NumPy's may be real
    square = (v * w[..., None, :] ** 2) @ xp.linalg.inv(v)
    return xp.sum(w), xp.sum(w * w), square, xp.sum(abs(v) ** 2, -2)


def _eigvals(xp: Any, x: Any) -> Any:
    w = xp.linalg.eigvals(graded(xp, x)) + 0j
    return xp.sum(w), xp.sum(w * w), xp.prod(w)


def _svd(full: bool) -> Any:
    def call(xp: Any, x: Any) -> Any:
        u, s, vh = xp.linalg.svd(graded(xp, x), full_matrices=full)
        k = s.shape[-1]
        thin_u, thin_v = u[..., :k], turned(xp, vh[..., :k, :])
        projectors = [q[..., k:] @ turned(xp, q[..., k:]) for q in (u, turned(xp, vh))]
        return s, weighted(xp, thin_u, thin_v), weighted(xp, thin_u, thin_u), *projectors

    return call


def _svd_hermitian(xp: Any, x: Any) -> Any:
    u, s, vh = xp.linalg.svd(hermitian(xp, x), hermitian=True)
    return s, (u * s[..., None, :]) @ vh, weighted(xp, u, u)


_VECTORS = [
    case(
        f"linalg.norm of order {p} of {s.kind}",
        lambda xp, x, p=p: xp.linalg.norm(x, p, axis=-1),
        s,
        slack=5,
        smooth=p != 0,
    )
    for p in (None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf)
    for s in (f(3, 4), z(3, 4))
]
_MATRICES = [
    case(
        f"linalg.norm of matrices of order {p} of {s.kind}",
        lambda xp, x, p=p: xp.linalg.norm(x, p, axis=(-2, 0), keepdims=True),
        s,
        slack=20,
    )
    for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    for s in (f(3, 2, 4), z(3, 2, 4))
]

SPECTRAL = [
    *(of("eigh", _eigh, s) for s in (f(3, 3), f(2, 5, 5), z(4, 4), f(1, 1))),
    of("eigh upper", _eigh_upper, z(3, 3)),
    of("eigh of one triangle", lambda xp, x: xp.linalg.eigh(hermitian(xp, x) + 0 * x)[0], f(3, 3)),
    *(of("eigvalsh", lambda xp, x: xp.linalg.eigvalsh(hermitian(xp, x)), s) for s in (f(3, 3), z(2, 4, 4))),
    *(of("eig", _eig, s) for s in (f(3, 3), z(2, 4, 4))),
    *(of("eigvals", _eigvals, s) for s in (f(3, 3), z(2, 4, 4))),
    *(of("svd", _svd(full), s) for s in (f(3, 3), f(2, 5, 3), z(3, 4)) for full in (True, False)),
    of("svd without vectors", lambda xp, x: xp.linalg.svd(graded(xp, x), compute_uv=False), f(4, 3)),
    *(of("svd of Hermitian matrices", _svd_hermitian, s) for s in (z(3, 3), f(2, 4, 4))),
    *(of("svdvals", lambda xp, x: xp.linalg.svdvals(graded(xp, x)), s) for s in (f(3, 3), z(2, 3, 5))),
    *_VECTORS,
    *_MATRICES,
    case("linalg.norm of all", lambda xp, x: xp.linalg.norm(x), f(2, 3, 4), slack=5),
    case("linalg.norm of a vector", lambda xp, x: xp.linalg.norm(x, 1), f(4), slack=5),
    case("linalg.norm of a matrix", lambda xp, x: xp.linalg.norm(x, 1), f(4, 3), slack=5),
    case("linalg.norm of integers", lambda xp, x: xp.linalg.norm(x, axis=0), i(4, 3), slack=5, smooth=False),
    case("linalg.vector_norm", lambda xp, x: xp.linalg.vector_norm(x, axis=(0, 2), ord=3), f(2, 3, 4), slack=5),
    case("linalg.vector_norm of all", lambda xp, x: xp.linalg.vector_norm(x, keepdims=True), z(2, 3), slack=5),
    case("linalg.matrix_norm", lambda xp, x: xp.linalg.matrix_norm(x, ord="nuc", keepdims=True), f(2, 3, 4), slack=20),
    case("linalg.matrix_norm of sums", lambda xp, x: xp.linalg.matrix_norm(x, ord=-1), f(2, 3, 4), slack=5),
]
