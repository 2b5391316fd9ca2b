"""Calls of rune.numpy.linalg: solving, factorising, determinants and products.

Matrices are drawn, and the call itself makes them regular, definite or triangular. A factorisation
is judged by the matrix that its factors multiply to; its signs are free.
"""

from __future__ import annotations

from typing import Any

from tests.numpy.fourier_cases import z
from tests.numpy.spelling import case, f, i, named


def regular(xp: Any, x: Any) -> Any:
    """The matrices with a diagonal that keeps them regular."""
    return x + 6 * xp.eye(x.shape[-1], dtype=x.dtype)


def definite(xp: Any, x: Any) -> Any:
    """Hermitian positive definite matrices of the same size."""
    x = 1.0 * x  # bools are numbers here
    return x @ xp.conj(xp.swapaxes(x, -1, -2)) + 3 * xp.eye(x.shape[-1], dtype=x.dtype)


def regularly(name: str, *specs: Any, **flags: Any) -> Any:
    """A function of regular square matrices and other arguments."""

    def call(xp: Any, x: Any, *others: Any) -> Any:
        return getattr(xp.linalg, name)(regular(xp, x), *others)

    shapes = " ".join(str(s.shape) for s in specs)
    return case(f"linalg.{name} of {specs[0].kind} {shapes}", call, *specs, slack=20, **flags)


def rebuilt(xp: Any, x: Any, mode: str) -> Any:
    q, r = xp.linalg.qr(x, mode)
    return q @ r, xp.conj(xp.swapaxes(q, -1, -2)) @ q, xp.abs(r)


def plain_tuple(x: Any) -> tuple:
    return tuple(x)


SOLVED = [
    *(regularly("inv", s) for s in (f(3, 3), f(2, 4, 4), f(2, 7, 7), z(3, 3), f(1, 1))),
    *(regularly("det", s) for s in (f(3, 3), f(2, 4, 4), z(3, 3), f(6, 6), f(1, 1))),
    *(regularly("slogdet", s) for s in (f(3, 3), f(2, 4, 4), z(3, 3), f(6, 6))),
    *(
        regularly("solve", a, b)
        for a, b in (
            (f(3, 3), f(3)),
            (f(3, 3), f(3, 2)),
            (f(2, 4, 4), f(2, 4, 1)),
            (f(7, 7), f(7, 3)),
            (f(2, 3, 3), f(3, 2)),
            (z(3, 3), z(3, 2)),
        )
    ),
    case("linalg.det of a singular matrix", lambda xp, x: xp.linalg.det(x[:, :1] * x[:1]), f(3, 3), slack=300),
    *(
        case(f"linalg.cholesky of {s.kind} {s.shape}", lambda xp, x: xp.linalg.cholesky(definite(xp, x)), s, slack=20)
        for s in (f(3, 3), f(2, 4, 4), f(7, 7), z(3, 3))
    ),
    case("linalg.cholesky upper", lambda xp, x: xp.linalg.cholesky(definite(xp, x), upper=True), z(4, 4), slack=20),
    *(
        case(f"linalg.qr {mode} of {s.kind} {s.shape}", lambda xp, x, mode=mode: rebuilt(xp, x, mode), s, slack=50)
        for s in (f(3, 3), f(2, 5, 3), f(3, 4), z(4, 2))
        for mode in ("reduced", "complete")
    ),
    case("linalg.qr r", lambda xp, x: xp.abs(xp.linalg.qr(x, "r")), f(4, 3), slack=50),
    case("linalg.qr raw", lambda xp, x: xp.linalg.qr(x, "raw"), f(4, 3), slack=50, smooth=False),
    *(
        case(
            f"linalg.matrix_power {n}",
            lambda xp, x, n=n: xp.linalg.matrix_power(regular(xp, x) / 6, n),
            f(2, 3, 3),
            slack=50,
        )
        for n in (0, 1, 2, 5, -1, -3)
    ),
    case("linalg.matrix_power of integers", lambda xp, x: xp.linalg.matrix_power(x, 3), i(3, 3), smooth=False),
    *(
        case(f"linalg.pinv of {s.kind} {s.shape}", lambda xp, x: xp.linalg.pinv(x), s, slack=500)
        for s in (f(2, 5, 3), f(3, 5), z(4, 2))
    ),
    case(
        "linalg.pinv of rank 1",
        lambda xp, x: xp.linalg.pinv(x[:, :1] * x[:1], rtol=1e-3),
        f(3, 4),
        smooth=False,
        slack=50,
    ),
    case("linalg.lstsq", lambda xp, x, b: plain_tuple(xp.linalg.lstsq(x, b))[0], f(6, 3), f(6, 2), slack=500),
    case(
        "linalg.lstsq of a vector",
        lambda xp, x, b: plain_tuple(xp.linalg.lstsq(x, b)),
        f(6, 3),
        f(6),
        smooth=False,
        slack=100,
    ),
    case("linalg.lstsq of wide", lambda xp, x, b: xp.linalg.lstsq(x, b)[0], f(3, 5), f(3), slack=500),
    *(
        case(f"linalg.cond {p}", lambda xp, x, p=p: xp.linalg.cond(regular(xp, x), p), f(2, 3, 3), slack=100)
        for p in (None, 2, -2, 1, -1, "fro")
    ),
    case("linalg.cond inf", lambda xp, x: xp.linalg.cond(regular(xp, x), xp.inf), f(3, 3), slack=100),
    case(
        "linalg.matrix_rank",
        lambda xp, x: (
            xp.linalg.matrix_rank(x),
            xp.linalg.matrix_rank(x[..., :1] * x[..., :1, :]),
            xp.linalg.matrix_rank(x[0, 0]),
            xp.linalg.matrix_rank(x, tol=100.0),
        ),
        f(2, 3, 3),
        smooth=False,
    ),
    case("linalg.multi_dot", lambda xp, a, b, c, d: xp.linalg.multi_dot([a, b, c, d]), f(2, 5), f(5, 3), f(3, 4), f(4)),
    case("linalg.multi_dot of two", lambda xp, a, b: xp.linalg.multi_dot([a, b]), f(2), f(2)),
    case("linalg.tensorinv", lambda xp, x: xp.linalg.tensorinv(regular(xp, x).reshape(2, 3, 6)), f(6, 6), slack=50),
    case(
        "linalg.tensorsolve",
        lambda xp, x, b: xp.linalg.tensorsolve(regular(xp, x).reshape(2, 3, 6), b),
        f(6, 6),
        f(2, 3),
        slack=50,
    ),
    case(
        "linalg.tensorsolve of axes",
        lambda xp, x, b: xp.linalg.tensorsolve(xp.moveaxis(regular(xp, x).reshape(2, 3, 6), 2, 0), b, axes=(0,)),
        f(6, 6),
        f(2, 3),
        slack=50,
    ),
    *named("linalg.matrix_transpose linalg.diagonal linalg.trace", f(2, 3, 4)),
    case(
        "linalg.diagonal offset",
        lambda xp, x: (xp.linalg.diagonal(x, offset=1), xp.linalg.trace(x, offset=-1)),
        f(2, 3, 4),
    ),
    *named("linalg.outer", f(3), f(2)),
    *named("linalg.cross", f(2, 3), f(3)),
    *named("linalg.vecdot", f(2, 3), f(3)),
    *named("linalg.matmul", f(2, 3, 4), f(4, 2)),
    *named("linalg.tensordot", f(2, 3, 4), f(3, 4, 2)),
]
