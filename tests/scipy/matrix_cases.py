"""Calls of rune.scipy.linalg: spectra, forms, functions of matrices, subspaces and equations.

Where the result is not unique (order of eigenvalues, phases of vectors, bases), products of results
are compared instead. SciPy returns real roots and logarithms if they exist; rune's are complex, so
real and imaginary parts are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.complex_cases import z
from tests.numpy.spelling import Case, Spec, f


def of(name: str, call: Any, *specs: Spec, **flags: Any) -> Case:
    """A case named after its function."""
    kinds = " ".join(s.kind + str(s.shape) for s in specs)
    settings = {"slack": 50, **flags}
    return Case(f"linalg.{name} of {kinds}", call, specs, module="scipy", **settings)


def eye(x: Any, scale: float = 1.0) -> np.ndarray:
    return scale * np.eye(*x.shape[-2:]).astype(np.float32)


def turned(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def positive(x: Any) -> Any:
    """Eigenvalues near 3, off the negative axis."""
    return x / 4 + eye(x, 3.0)


def graded(x: Any) -> Any:
    """Eigenvalues well apart."""
    return x / 8 + eye(x) * np.arange(1, 2 * x.shape[-1] + 1, 2, dtype=np.float32)


def hermitian(x: Any) -> Any:
    return (graded(x) + turned(graded(x))) / 2


def definite(x: Any) -> Any:
    return x @ turned(x) / 4 + eye(x)


def parts(x: Any) -> Any:
    """Real and imaginary part of a result that may be real in only one of the libraries."""
    return x.real, x.imag + 0 * x.real


# --- spectra ----------------------------------------------------------------------------------


def _weighted(v: Any) -> Any:
    return (v * np.arange(1, v.shape[-1] + 1, dtype=np.float32)) @ turned(v)


def _eigh(**kind: Any) -> Any:
    def call(sp: Any, x: Any) -> Any:
        w, v = sp.linalg.eigh(hermitian(x), **kind)
        return w, _weighted(v)

    return call


def _eigh_of_pairs(type: int) -> Any:
    def call(sp: Any, x: Any, y: Any) -> Any:
        a, b = hermitian(x), definite(y)
        w, v = sp.linalg.eigh(a, b, type=type)
        return w, _weighted(v), sp.linalg.eigvalsh(a, b, type=type)

    return call


def _eig(sp: Any, x: Any) -> Any:
    w, left_vectors, right_vectors = sp.linalg.eig(graded(x), left=True)
    inner = (left_vectors.conj() * right_vectors).sum(-2)
    return w.sum(), (w * w).sum(), ((right_vectors * (w * w / inner)) @ turned(left_vectors))


def _eig_of_pairs(sp: Any, x: Any, y: Any) -> Any:
    a, b = graded(x), definite(y)
    w, left_vectors, right_vectors = sp.linalg.eig(a, b, left=True)
    of_left = turned(left_vectors) @ a - w[:, None] * (turned(left_vectors) @ b)
    return w.sum(), (w * w).sum(), abs(a @ right_vectors - b @ right_vectors * w), abs(of_left)


def _eigvals(sp: Any, x: Any) -> Any:
    w = sp.linalg.eigvals(graded(x))
    return w.sum(), (w * w).sum(), w.prod()


def _svd(sp: Any, x: Any) -> Any:
    u, s, vh = sp.linalg.svd(graded(x), full_matrices=False)
    return s, (u * s) @ vh, turned(u) @ u


def _tridiagonal(**kind: Any) -> Any:
    def call(sp: Any, d: Any, e: Any) -> Any:
        d = d + 3 * np.arange(d.shape[-1], dtype=np.float32)
        w, v = sp.linalg.eigh_tridiagonal(d, e / 4, **kind)
        return w, _weighted(v), sp.linalg.eigvalsh_tridiagonal(d, e / 4, **kind)

    return call


def _banded(lower: bool) -> Any:
    def call(sp: Any, x: Any) -> Any:
        on = np.zeros(x.shape, np.float32)
        on[0 if lower else -1] = 5 * np.arange(x.shape[1])
        w, v = sp.linalg.eig_banded(x / 4 + on, lower=lower)
        return w, _weighted(v)

    return call


_SPECTRA = [
    *(of("eigh", _eigh(), s) for s in (f(3, 3), z(4, 4))),
    of("eigh upper", _eigh(lower=False), z(3, 3)),
    of("eigh subset", _eigh(subset_by_index=(1, 2)), f(4, 4), plain=True),
    *(of(f"eigh type {k}", _eigh_of_pairs(k), s, s) for k in (1, 2, 3) for s in (f(3, 3), z(3, 3))),
    of("eigvalsh", lambda sp, x: sp.linalg.eigvalsh(hermitian(x)), f(4, 4)),
    *(of("eig", _eig, s) for s in (f(3, 3), z(4, 4))),
    of("eig of pairs", _eig_of_pairs, f(3, 3), f(3, 3), smooth=False, plain=True),
    *(of("eigvals", _eigvals, s) for s in (f(3, 3), z(4, 4))),
    *(of("svd", _svd, s) for s in (f(3, 3), z(4, 3))),
    of("svdvals", lambda sp, x: sp.linalg.svdvals(graded(x)), f(3, 4)),
    of("diagsvd", lambda sp, x: (sp.linalg.diagsvd(x, 3, 4), sp.linalg.diagsvd(x, 3, 3)), f(3), plain=True),
    of("eigh_tridiagonal", _tridiagonal(), f(4), f(3), plain=True),
    of("eigh_tridiagonal by number", _tridiagonal(select="i", select_range=(1, 2)), f(4), f(3), plain=True),
    of(
        "eigh_tridiagonal by value", _tridiagonal(select="v", select_range=(-9, 5)), f(4), f(3), plain=True, static=True
    ),
    *(of(f"eig_banded {low}", _banded(low), s, plain=True) for low in (True, False) for s in (f(2, 5), f(3, 4))),
]


# --- forms ------------------------------------------------------------------------------------


def _schur(output: str) -> Any:
    def call(sp: Any, x: Any) -> Any:
        t, v = sp.linalg.schur(x, output=output)
        return v @ t @ turned(v), turned(v) @ v, abs(np.tril(np.ones(x.shape), -2) * t)

    return call


def _csf(sp: Any, x: Any) -> Any:
    t, v = sp.linalg.rsf2csf(*sp.linalg.schur(x))
    return v @ t @ turned(v), turned(v) @ v, abs(np.tril(np.ones(x.shape), -1) * t)


def _hessenberg(sp: Any, x: Any) -> Any:
    h, q = sp.linalg.hessenberg(x, calc_q=True)
    return h, q, sp.linalg.hessenberg(x)


_FORMS = [
    *(of(f"schur {out}", _schur(out), s, slack=100) for out in ("real", "complex") for s in (f(4, 4), z(3, 3))),
    *(of("rsf2csf", _csf, f(n, n), slack=100) for n in (4, 5)),
    of("hessenberg", _hessenberg, f(4, 4), slack=100),
    of("hessenberg", _hessenberg, z(3, 3), slack=100, plain=True),  # SciPy's Q of 1 × 1 is real
    of("cdf2rdf", lambda sp, w, v: sp.linalg.cdf2rdf(*_paired(w, v)), z(2), z(4, 2), plain=True),
]


def _paired(w: Any, v: Any) -> Any:
    """Eigenvalues and vectors in conjugate pairs."""
    order = np.array([0, 2, 1, 3])
    both = w[np.array([0, 1, 0, 1])]
    sign = np.array([-1, -1, 1, 1], np.float32)  # the positive part first
    columns = v[:, np.array([0, 1, 0, 1])]
    pairs = both.real + 1j * both.imag * sign
    vectors = columns.real + 1j * columns.imag * sign
    return pairs[order], vectors[:, order]


# --- functions --------------------------------------------------------------------------------


def _frechet(sp: Any, x: Any, e: Any) -> Any:
    return sp.linalg.expm_frechet(x, e), sp.linalg.expm_frechet(x, e, compute_expm=False)


def _complex_function(name: str) -> Any:
    return lambda sp, x: parts(getattr(sp.linalg, name)(positive(x)))


_FUNCTIONS = [
    *(of("expm", lambda sp, x: sp.linalg.expm(x / 2), s, slack=200) for s in (f(3, 3), f(2, 4, 4), z(3, 3))),
    of("expm of small ones", lambda sp, x: sp.linalg.expm(x / 1000), f(3, 3)),
    of("expm_frechet", _frechet, f(3, 3), f(3, 3), slack=500),
    *(
        of(name, lambda sp, x, name=name: getattr(sp.linalg, name)(x / 2), s, slack=500)
        for name in ("cosm", "sinm", "coshm", "sinhm")
        for s in (f(3, 3), z(3, 3))
    ),
    *(
        of(name, lambda sp, x, name=name: getattr(sp.linalg, name)(x / 20), s, slack=200)
        for name in ("tanm", "tanhm")
        for s in (f(3, 3), z(3, 3))
    ),
    *(of("sqrtm", _complex_function("sqrtm"), s) for s in (f(3, 3), z(4, 4))),
    # SciPy has no logarithm and no sign of matrices without elements.
    *(of("logm", _complex_function("logm"), s, plain=True) for s in (f(3, 3), z(4, 4))),
    *(
        of(
            f"fractional_matrix_power {p}",
            lambda sp, x, p=p: parts(sp.linalg.fractional_matrix_power(positive(x), p)),
            s,
            slack=200,
        )
        for p in (0.5, 2.3, -1.25, 2, -1)
        for s in (f(3, 3), z(3, 3))
    ),
    *(
        of("signm", lambda sp, x: sp.linalg.signm(graded(x) - eye(x, 2.0)), s, slack=200, plain=True)
        for s in (f(3, 3), z(3, 3))
    ),
    *(
        of("funm", lambda sp, x: parts(sp.linalg.funm(graded(x), lambda w: w * w + 1 / w)), s, slack=500)
        for s in (f(3, 3), z(3, 3))
    ),
]


# --- subspaces and equations ------------------------------------------------------------------


def _polar(side: str) -> Any:
    return lambda sp, x: sp.linalg.polar(x, side)


def _flat(x: Any) -> Any:
    """The matrix with its rank reduced by one."""
    return x[:, :2] @ x[:2, :] / 2


def _projector(x: Any) -> Any:
    return x @ turned(x)


def _angles(sp: Any, x: Any, y: Any) -> Any:
    return sp.linalg.subspace_angles(x, y)


_OTHERS = [
    *(
        of(f"polar {side}", _polar(side), s, slack=500)
        for side in ("left", "right")
        for s in (f(3, 3), f(4, 2), f(2, 3), z(3, 2))
    ),
    of(
        "null_space",
        lambda sp, x: _projector(sp.linalg.null_space(_flat(x), 1e-4)),
        f(3, 3),
        static=True,
        plain=True,
        smooth=False,
    ),
    of(
        "orth", lambda sp, x: _projector(sp.linalg.orth(_flat(x), 1e-4)), f(3, 3), static=True, plain=True, smooth=False
    ),
    # The columns have to be independent, and for the rotation the product to be regular.
    *(of("subspace_angles", _angles, s, t, slack=500, plain=True) for s, t in ((f(5, 2), f(5, 3)), (z(4, 2), z(4, 1)))),
    of(
        "orthogonal_procrustes",
        lambda sp, x, y: sp.linalg.orthogonal_procrustes(x, y),
        f(4, 2),
        f(4, 2),
        slack=500,
        plain=True,
    ),
    *(
        of("solve_sylvester", lambda sp, x, y, c: sp.linalg.solve_sylvester(positive(x), positive(y), c), a, b, c)
        for a, b, c in ((f(3, 3), f(2, 2), f(3, 2)), (z(2, 2), z(3, 3), z(2, 3)))
    ),
    *(
        of("solve_continuous_lyapunov", lambda sp, x, c: sp.linalg.solve_continuous_lyapunov(positive(x), c), s, s)
        for s in (f(3, 3), z(3, 3))
    ),
    *(
        of("solve_discrete_lyapunov", lambda sp, x, c: sp.linalg.solve_discrete_lyapunov(x / 16, c), s, s)
        for s in (f(3, 3), z(3, 3))
    ),
    *(of("norm", lambda sp, x, p=p: sp.linalg.norm(x, p), f(3, 4)) for p in (None, 1, 2, "nuc")),
    of("bandwidth", lambda sp, x: list(sp.linalg.bandwidth(np.tri(3, 4, 1) * x)), f(3, 4), smooth=False, plain=True),
    of("issymmetric", lambda sp, x: (sp.linalg.issymmetric(x + x.T), sp.linalg.issymmetric(x)), f(3, 3), smooth=False),
    of(
        "ishermitian",
        lambda sp, x: (sp.linalg.ishermitian(x + turned(x), atol=1e-5), sp.linalg.ishermitian(x, rtol=1e-5)),
        z(3, 3),
        smooth=False,
    ),
]

MATRICES = [*_SPECTRA, *_FORMS, *_FUNCTIONS, *_OTHERS]
