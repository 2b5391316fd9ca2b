"""Calls of rune.scipy.linalg: solving, factorising, bands, patterns and named matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.fourier_cases import z
from tests.numpy.spelling import Case, Spec, f, i, pos

FIRST = np.array([12, 0, 0, 0], np.float32)  # makes the main diagonal large


def of(name: str, call: Any, *specs: Spec, **flags: Any) -> Case:
    """A case named after its function."""
    return Case(f"linalg.{name}", call, specs, module="scipy", **flags)


def regular(x: Any) -> Any:
    """The matrices with a diagonal that keeps them regular."""
    return x + 6 * np.eye(x.shape[-1], dtype=np.float32).astype(x.dtype)


def definite(x: Any) -> Any:
    """Hermitian positive definite matrices of the same size."""
    return x @ x.conj().swapaxes(-1, -2) + 3 * np.eye(x.shape[-1], dtype=np.float32)


def _plu(sp: Any, x: Any) -> Any:
    p, low, up = sp.linalg.lu(x)
    return p @ low @ up, p, low, up


def _lu_solved(trans: int) -> Any:
    def call(sp: Any, x: Any, b: Any) -> Any:
        factors, pivots = sp.linalg.lu_factor(regular(x))
        return sp.linalg.lu_solve((factors, pivots), b, trans=trans), factors

    return call


def _qr(mode: str) -> Any:
    def call(sp: Any, x: Any) -> Any:
        q, r = sp.linalg.qr(x, mode=mode)
        return q @ r, abs(r), q.conj().swapaxes(-1, -2) @ q

    return call


def _pivoted(mode: str) -> Any:
    """A[:, p] - Q R, the magnitude of R, the orthogonality of Q, and the order of columns."""

    def call(sp: Any, x: Any) -> Any:
        q, r, order = sp.linalg.qr(x, mode=mode, pivoting=True)
        (other, same) = sp.linalg.qr(x, mode="r", pivoting=True)
        gram = q.conj().swapaxes(-1, -2) @ q
        return q @ r, abs(r), gram, order, abs(other[: r.shape[0]]) - abs(r), same

    return call


def _multiplied(mode: str, conjugate: bool) -> Any:
    def call(sp: Any, x: Any, c: Any) -> Any:
        # Without full rank the last columns of Q would be of LAPACK's choice, by processor.
        tall = x + 6 * np.eye(*x.shape, dtype=np.float32).astype(x.dtype)
        product, r = sp.linalg.qr_multiply(tall, c, mode, conjugate=conjugate)
        return abs(product) ** 2, abs(r) ** 2

    return call


_FACTORS = [
    *(
        of(
            f"cholesky {lower} of {s.kind}",
            lambda sp, x, lower=lower: sp.linalg.cholesky(definite(x), lower),
            s,
            slack=20,
        )
        for lower in (False, True)
        for s in (f(4, 4), z(3, 3))
    ),
    *(
        of(
            f"cho_factor, cho_solve {lower} of {s.kind}",
            lambda sp, x, b, lower=lower: sp.linalg.cho_solve(sp.linalg.cho_factor(definite(x), lower), b),
            s,
            b,
            slack=20,
        )
        for lower in (False, True)
        for s, b in ((f(4, 4), f(4)), (z(3, 3), z(3, 2)))
    ),
    *(of(f"lu of {s.kind} {s.shape}", _plu, s, slack=50) for s in (f(3, 3), f(4, 2), z(2, 3))),
    of("lu permuted", lambda sp, x: sp.linalg.lu(x, permute_l=True), f(4, 3), slack=50),
    of("lu p_indices", lambda sp, x: sp.linalg.lu(x, p_indices=True), f(3, 3), slack=50, smooth=False),
    *(of(f"lu_factor, lu_solve {t}", _lu_solved(t), z(3, 3), z(3, 2), slack=50) for t in range(3)),
    of("lu_solve of a vector", _lu_solved(0), f(3, 3), f(3), slack=50),
    *(
        of(f"qr {mode} of {s.kind} {s.shape}", _qr(mode), s, slack=50)
        for mode in ("full", "economic")
        for s in (f(4, 3), z(3, 3))
    ),
    *(
        of(
            f"qr {mode} of {s.kind} {s.shape}, pivoting",
            _pivoted(mode),
            s,
            slack=50,
            smooth=False,
            plain=mode == "economic",
        )
        for mode in ("full", "economic")
        for s in (f(4, 3), f(3, 4), z(3, 3))
    ),
    of(
        "qr raw, pivoting",
        lambda sp, x: (*sp.linalg.qr(x, mode="raw", pivoting=True)[0], *sp.linalg.qr(x, mode="raw", pivoting=True)[1:]),
        f(4, 3),
        slack=50,
        smooth=False,
    ),
    of(
        "qr_multiply, pivoting",
        lambda sp, x, c: [abs(y) for y in sp.linalg.qr_multiply(x, c, pivoting=True)],
        f(4, 3),
        f(2, 4),
        slack=50,
        smooth=False,
        without={"2 to 0": "SciPy does not cut an empty c", "3 to 0": "LAPACK wants a column"},
    ),
    of("qr r", lambda sp, x: abs(sp.linalg.qr(x, mode="r")[0]), f(4, 3), slack=50),
    *(
        of(f"qr_multiply {mode} {conjugate}", _multiplied(mode, conjugate), z(4, 3), c, slack=100)
        for conjugate in (False, True)
        for mode, c in (("right", z(2, 4)), ("left", z(3, 2)))
    ),
]

_SOLVES = [
    of("inv", lambda sp, x: sp.linalg.inv(regular(x)), f(4, 4), slack=20),
    of("det", lambda sp, x: sp.linalg.det(regular(x)), f(4, 4), slack=20),
    of("solve", lambda sp, x, b: sp.linalg.solve(regular(x), b), f(4, 4), f(4), slack=20),
    of(
        "solve transposed", lambda sp, x, b: sp.linalg.solve(regular(x), b, transposed=True), f(4, 4), f(4, 2), slack=20
    ),
    *(
        of(
            f"solve assuming {structure} {lower}",
            lambda sp, x, b, structure=structure, lower=lower: sp.linalg.solve(
                definite(x), b, assume_a=structure, lower=lower
            ),
            f(4, 4),
            f(4, 2),
            slack=50,
        )
        for lower in (False, True)
        for structure in ("sym", "her", "pos", "gen", "upper triangular", "lower triangular")
    ),
    of(
        "solve assuming diagonal",
        lambda sp, x, b: sp.linalg.solve(regular(x) * np.eye(3, dtype=np.float32), b, assume_a="diagonal"),
        f(3, 3),
        f(3),
        slack=20,
    ),
    *(
        of(
            f"solve_triangular {trans} {lower} {unit}",
            lambda sp, x, b, t=trans, lower=lower, u=unit: sp.linalg.solve_triangular(regular(x), b, t, lower, u),
            z(3, 3),
            z(3, 2),
            slack=50,
        )
        for trans in (0, 1, 2, "N", "T", "C")
        for lower in (False, True)
        for unit in (False, True)
        if isinstance(trans, int) or not unit
    ),
    of(
        "solve_triangular of a vector",
        lambda sp, x, b: sp.linalg.solve_triangular(regular(x), b),
        f(7, 7),
        f(7),
        slack=20,
    ),
    of("lstsq", lambda sp, x, b: sp.linalg.lstsq(x, b)[0], f(6, 3), f(6, 2), slack=500),
    of(
        "lstsq of a vector, all of it",
        lambda sp, x, b: tuple(sp.linalg.lstsq(x, b, 1e-3)),
        f(6, 3),
        f(6),
        slack=500,
        plain=True,
    ),
    of(
        "lstsq, all of it",
        lambda sp, x, b: tuple(sp.linalg.lstsq(x, b, 1e-3)),
        f(6, 3),
        f(6, 2),
        slack=100,
        smooth=False,
    ),
    of("pinv", lambda sp, x: sp.linalg.pinv(x), f(5, 3), slack=500),
    of(
        "pinv with tolerances",
        lambda sp, x: sp.linalg.pinv(x, atol=0.5, rtol=0.1, return_rank=True),
        f(5, 3),
        slack=100,
        smooth=False,
    ),
]


def _in_pairs(low: int, up: int, n: int) -> Any:
    """The numbers of a band in which pivoting exchanges every two rows."""
    heavy = np.zeros((low + up + 1, n), np.float32)
    heavy[up - 1, 1::2] = heavy[up + 1, ::2] = 12
    return heavy


def _diagonals(count: int, n: int, at: int) -> Any:
    """The numbers of a band with a large main diagonal, which is row `at`."""
    heavy = np.zeros((count, n), np.float32)
    heavy[at] = 12
    return heavy


_STRUCTURES = [
    *(
        of(
            f"solve_banded {low}, {up}",
            lambda sp, ab, b, low=low, up=up: sp.linalg.solve_banded(
                (low, up), ab + _diagonals(low + up + 1, 5, up), b
            ),
            f(low + up + 1, 5),
            b,
            slack=20,
        )
        for low, up, b in ((1, 1, f(5)), (1, 1, f(5, 2)), (2, 1, f(5)), (0, 2, f(5, 2)), (0, 0, f(5)))
    ),
    *(
        of(
            f"solve_banded {low}, {up} by pivoting",
            lambda sp, ab, b, low=low, up=up: sp.linalg.solve_banded((low, up), ab + _in_pairs(low, up, 6), b),
            f(low + up + 1, 6),
            f(6, 2),
            slack=50,
        )
        for low, up in ((1, 1), (2, 1), (1, 3))
    ),
    of(
        "solve_banded of a wide band",
        lambda sp, ab, b: sp.linalg.solve_banded((4, 3), ab + _diagonals(8, 3, 3), b),
        z(8, 3),
        z(3),
        slack=50,
        plain=True,
    ),
    *(
        of(f"{name} {lower}", call, *specs, slack=50)
        for lower in (False, True)
        for name, specs, call in (
            (
                "solveh_banded",
                (f(3, 5), f(5)),
                lambda sp, ab, b, lower=lower: sp.linalg.solveh_banded(
                    ab + _diagonals(3, 5, 0 if lower else 2), b, lower=lower
                ),
            ),
            (
                "cholesky_banded",
                (f(3, 5),),
                lambda sp, ab, lower=lower: _inside(
                    sp.linalg.cholesky_banded(ab + _diagonals(3, 5, 0 if lower else 2), lower=lower), lower
                ),
            ),
            (
                "cho_solve_banded",
                (pos(2, 5), f(5, 2)),
                lambda sp, ab, b, lower=lower: sp.linalg.cho_solve_banded(
                    (ab + _diagonals(2, 5, 0 if lower else 1), lower), b
                ),
            ),
        )
    ),
    of("solve_toeplitz", lambda sp, c, b: sp.linalg.solve_toeplitz(c + FIRST, b), f(4), f(4), slack=20),
    of(
        "solve_toeplitz of a pair",
        lambda sp, c, r, b: sp.linalg.solve_toeplitz((c + FIRST, r + FIRST), b),
        f(4),
        f(4),
        f(4, 2),
        slack=20,
        smooth=False,
    ),
    of(
        "matmul_toeplitz",
        lambda sp, c, r, x: sp.linalg.matmul_toeplitz((c, r), x),
        f(3),
        f(4),
        f(4, 2),
        slack=20,
        smooth=False,
    ),
    of("matmul_toeplitz of a vector", lambda sp, c, x: sp.linalg.matmul_toeplitz(c, x), f(4), f(4), slack=20),
    of("solve_circulant", lambda sp, c, b: sp.linalg.solve_circulant(c + FIRST, b), f(4), f(4), slack=20),
    of("solve_circulant of columns", lambda sp, c, b: sp.linalg.solve_circulant(c + FIRST, b), z(4), z(4, 2), slack=20),
    of(
        "solve_circulant of vectors along axes",
        lambda sp, c, b: [
            sp.linalg.solve_circulant(c + FIRST, b, baxis=1),
            sp.linalg.solve_circulant(c + FIRST, b.T, outaxis=-1),
        ],
        f(2, 1, 4),
        f(3, 4),
        slack=20,
        plain=True,
    ),
    of(
        "solve_circulant, least squares",
        lambda sp, c, b: sp.linalg.solve_circulant(c, b, singular="lstsq", tol=1e-3),
        f(4),
        f(4),
        slack=200,
    ),
]


def _inside(bands: Any, lower: bool) -> Any:
    """The bands without the corner outside the matrix."""
    count, n = bands.shape[-2:]
    k, column = np.indices((count, n))
    row = column + k if lower else column + k - count + 1
    return bands * ((row >= 0) & (row < n)).astype(np.float32)


_PATTERNS = [
    of("toeplitz", lambda sp, c: sp.linalg.toeplitz(c), z(4)),
    of("toeplitz of a pair", lambda sp, c, r: sp.linalg.toeplitz(c, r), f(4), f(3)),
    of("hankel", lambda sp, c: sp.linalg.hankel(c), f(4)),
    of("hankel of a pair", lambda sp, c, r: sp.linalg.hankel(c, r), f(4), f(3)),
    of("circulant", lambda sp, c: sp.linalg.circulant(c), f(4)),
    of("companion", lambda sp, a: sp.linalg.companion(a), pos(5), slack=5),
    *(
        of(f"fiedler_companion of {n}", lambda sp, a: sp.linalg.fiedler_companion(a), pos(n), slack=5)
        for n in (2, 3, 4, 7, 8)
    ),
    of("fiedler", lambda sp, a: sp.linalg.fiedler(a), f(4)),
    of("leslie", lambda sp, a, s: sp.linalg.leslie(a, s), f(4), f(3)),
    *(
        of(
            f"convolution_matrix {mode} {n}",
            lambda sp, a, mode=mode, n=n: sp.linalg.convolution_matrix(a, n, mode),
            f(4),
        )
        for mode in ("full", "valid", "same")
        for n in (1, 3, 4, 7)
    ),
    of("block_diag", lambda sp, a, b, c: sp.linalg.block_diag(a, b, c), f(2, 3), f(1, 1), f(3)),
    of("khatri_rao", lambda sp, a, b: sp.linalg.khatri_rao(a, b), f(2, 3), f(4, 3)),
    of("khatri_rao of integers", lambda sp, a, b: sp.linalg.khatri_rao(a, b), i(2, 3), i(4, 3), smooth=False),
    *(of(f"hadamard {n}", lambda sp, n=n: sp.linalg.hadamard(n)) for n in (1, 2, 8)),
    *(
        of(f"{name} {n}", lambda sp, name=name, n=n: getattr(sp.linalg, name)(n))
        for name in ("hilbert", "invhilbert", "pascal", "invpascal", "dft")
        for n in (1, 2, 5)
    ),
    *(
        of(f"helmert {n} {full}", lambda sp, n=n, full=full: sp.linalg.helmert(n, full))
        for n in (2, 5)
        for full in (False, True)
    ),
    *(
        of(
            f"{name} {kind}",
            lambda sp, name=name, kind=kind: (
                getattr(sp.linalg, name)(5, kind),
                getattr(sp.linalg, name)(4, kind, exact=False),
            ),
        )
        for name in ("pascal", "invpascal")
        for kind in ("lower", "upper")
    ),
    *(of(f"dft {scale}", lambda sp, scale=scale: sp.linalg.dft(5, scale)) for scale in ("sqrtn", "n")),
]

SOLVED: list[Case] = [*_FACTORS, *_SOLVES, *_STRUCTURES, *_PATTERNS]
