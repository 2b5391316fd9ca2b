"""Uses of Cholesky, LU, QR, and of solvers with triangles, factors and three diagonals.

Factorisations are judged by their product, by orthogonality and by their triangles, so that
signs are free. Sizes go through every way of computing: written out, column by column, by blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg

import rune.numpy as rnp
from rune import dtypes
from rune.ops import matrix_helpers as m
from rune.ops.linalg import (
    cholesky,
    geqp3,
    geqrf,
    householder_product,
    linear_solve,
    lu,
    matrix_det,
    matrix_solve,
    qr,
    slogdet,
    triangular_solve,
    tridiagonal_solve,
)
from rune.ops.movement import part
from tests.ops.calls import Operand
from tests.ops.use import Use

REAL, COMPLEX = dtypes.f64, dtypes.c128


def _matrix(*shape: int, dtype: np.dtype = REAL) -> Operand:
    return Operand(shape, dtype, -1.0, 1.0)


def _strong(a: Any) -> Any:
    """The matrix with a diagonal that keeps it regular."""
    return a + 3.0 * m.eye(a.shape, a.dtype)


# --- cholesky ---------------------------------------------------------------------------------


def _definite(a: Any) -> Sequence[Any]:
    return (rnp.matmul(a, m.adjoint(a)) + m.eye(a.shape, a.dtype),)


def _lower_only(a: Any) -> Sequence[Any]:
    """The same numbers, and above the diagonal others, which are not read."""
    (definite,) = _definite(a)
    return (m.lower_triangle(definite) + m.upper_triangle(a, 1),)


def _root(a: np.ndarray) -> list[np.ndarray]:
    return [np.linalg.cholesky(a)]


_CHOLESKYS = [
    *(
        Use(cholesky, (_matrix(*shape, dtype=dtype),), _root, prepare=_definite)
        for shape, dtype in (((4, 4), REAL), ((3, 3), COMPLEX), ((2, 7, 7), COMPLEX))
    ),
    Use(cholesky, (_matrix(3, 0, 0),), _root, prepare=_definite, smooth=False),
    Use(cholesky, (_matrix(3, 3),), _root, prepare=_lower_only),
    Use(cholesky, (_matrix(40, 40),), _root, prepare=_definite, smooth=False, limit=2000),
]


# --- lu ---------------------------------------------------------------------------------------


def _rebuilt(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    """P A - L U, with the permutation that the exchanges make; and where L U comes from."""
    factors, pivots, order = outputs
    rows, columns = a.shape[-2:]
    k = min(rows, columns)
    lower = m.with_unit_diagonal(m.lower_triangle(part(factors, -1, 0, k), -1))
    product = rnp.matmul(lower, m.upper_triangle(part(factors, -2, 0, k)))
    multipliers = rnp.max(rnp.abs(m.lower_triangle(factors, -1)) <= 1.5) if k else True
    zeros = rnp.sum(pivots * 0, -1)
    return product - m.permuted_rows(a, order), factors, multipliers, zeros


def _scipy_lu(a: np.ndarray) -> Sequence[Any]:
    factors = np.stack([scipy.linalg.lu_factor(x)[0] for x in a.reshape(-1, *a.shape[-2:])]).reshape(a.shape)
    return [np.zeros_like(a), factors, np.True_, np.zeros(a.shape[:-2], np.int32)]


_LUS = [
    *(
        Use(lu, (_matrix(*shape, dtype=dtype),), _scipy_lu, _rebuilt, limit=5000)
        for shape, dtype in (((4, 4), REAL), ((5, 3), REAL), ((2, 2, 3), COMPLEX), ((2, 7, 6), REAL), ((6, 8), COMPLEX))
    ),
    Use(lu, (_matrix(40, 36),), _scipy_lu, _rebuilt, smooth=False, limit=20000),
]


# --- qr ---------------------------------------------------------------------------------------


def _gram(x: Any) -> Any:
    return rnp.matmul(m.adjoint(x), x)


def _seen_of_qr(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    """Q R, Qᴴ Q, what is below R's diagonal, and Rᴴ R and the projector, free of signs."""
    q, r = outputs
    k = min(a.shape[-2:])
    lead = part(q, -1, 0, k)
    projector = rnp.matmul(lead, m.adjoint(lead))
    return rnp.matmul(q, r), _gram(q), m.lower_triangle(r, -1), rnp.abs(r), projector


def _qr_truth(full_matrices: bool) -> Callable[..., Sequence[np.ndarray]]:
    def expected(a: np.ndarray) -> Sequence[np.ndarray]:
        q, r = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
        lead = q[..., :, : min(a.shape[-2:])]
        unit = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2))
        return a, unit, np.zeros_like(r), abs(r), lead @ np.swapaxes(lead.conj(), -1, -2)

    return expected


_QRS = [
    *(
        Use(
            qr,
            (_matrix(*shape, dtype=dtype),),
            _qr_truth(full),
            _seen_of_qr,
            params={"full_matrices": full},
            limit=2000,
        )
        for shape, dtype, full in (
            ((3, 3), REAL, False),
            ((2, 5, 3), REAL, True),
            ((4, 2), COMPLEX, False),
            ((3, 2), COMPLEX, True),
            ((3, 5), REAL, False),
        )
    ),
    Use(
        qr, (_matrix(40, 20),), _qr_truth(False), _seen_of_qr, params={"full_matrices": False}, smooth=False, limit=5000
    ),
]


def _of_reflections(outputs: Sequence[Any], a: Any) -> Sequence[Any]:
    reflectors, taus = outputs
    return reflectors, taus


def _geqrf_truth(a: np.ndarray) -> Sequence[np.ndarray]:
    reflectors, taus = np.linalg.qr(a, mode="raw")
    return np.swapaxes(reflectors, -1, -2), taus


def _geqp3_truth(a: np.ndarray) -> Sequence[np.ndarray]:
    (geqp3_of,) = scipy.linalg.get_lapack_funcs(("geqp3",), (a,))
    lanes = [geqp3_of(x)[:3] for x in a.reshape(-1, *a.shape[-2:])]
    reflectors, order, taus = (np.stack([lane[k] for lane in lanes]) for k in range(3))
    shape = a.shape[:-2]
    order = order.astype(np.int32).reshape(*shape, -1) - np.int32(1)
    return reflectors.reshape(a.shape), taus.reshape(*shape, -1), order


def _reflected(a: np.ndarray, taus: np.ndarray) -> Sequence[np.ndarray]:
    out = np.broadcast_to(np.eye(*a.shape[-2:]), a.shape)
    row = np.arange(a.shape[-2])
    for k in reversed(range(taus.shape[-1])):
        v = np.where(row > k, a[..., :, k], row == k)[..., None]
        out = out - taus[..., k, None, None] * v @ (np.swapaxes(v.conj(), -1, -2) @ out)
    return [out]


_REFLECTIONS = [
    *(
        Use(geqrf, (_matrix(*shape, dtype=dtype),), _geqrf_truth, _of_reflections)
        for shape, dtype in (((2, 5, 3), COMPLEX), ((3, 5), REAL), ((20, 18), REAL))
    ),
    *(
        Use(geqp3, (_matrix(*shape, dtype=dtype),), _geqp3_truth)
        for shape, dtype in (((2, 4, 3), COMPLEX), ((3, 5), REAL), ((4, 4), REAL), ((20, 18), REAL), ((1, 1), REAL))
    ),
    Use(geqp3, (_matrix(2, 0, 3),), lambda a: [a, a[..., 0], np.array([[0, 1, 2]] * 2, np.int32)], smooth=False),
    *(
        Use(householder_product, (_matrix(*shape, dtype=dtype), Operand((*shape[:-2], k), dtype, 0.1, 0.4)), _reflected)
        for shape, k, dtype in (((2, 5, 3), 2, COMPLEX), ((20, 18), 18, REAL))
    ),
]


# --- solving ----------------------------------------------------------------------------------


def _triangle_of(lower: bool, unit: bool) -> Callable[..., Sequence[np.ndarray]]:
    def expected(a: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
        read = np.tril(a) if lower else np.triu(a)
        if unit:
            read = np.where(np.eye(a.shape[-1], dtype=bool), 1, read)
        return [np.linalg.solve(read, b)]

    return expected


def _triangular(lower: bool, unit: bool, *shape: int, dtype: np.dtype, **more: Any) -> Use:
    return Use(
        triangular_solve,
        (_matrix(*shape, dtype=dtype), _matrix(*shape[:-1], 2, dtype=dtype)),
        _triangle_of(lower, unit),
        params={"lower": lower, "unit_diagonal": unit},
        prepare=lambda a, b: (_strong(a), b),
        **more,
    )


_TRIANGULARS = [
    *(
        _triangular(lower, unit, *shape, dtype=dtype)
        for lower in (True, False)
        for unit in (True, False)
        for shape, dtype in (((2, 3, 3), REAL), ((6, 6), REAL))
    ),
    _triangular(True, False, 3, 3, dtype=COMPLEX),
    _triangular(False, True, 6, 6, dtype=COMPLEX),
    _triangular(False, False, 0, 0, dtype=REAL, smooth=False),
    _triangular(True, False, 70, 70, dtype=REAL, smooth=False, limit=5000),
]


def _with_factors(a: Any, b: Any) -> Sequence[Any]:
    factors, _, order = lu(m.number(1, a) * _strong(a))
    return _strong(a), factors, order, b


def _solved(transpose: bool) -> Callable[..., Sequence[np.ndarray]]:
    def expected(a: np.ndarray, factors: Any, order: Any, b: np.ndarray) -> Sequence[np.ndarray]:
        return [np.linalg.solve(np.swapaxes(a, -1, -2) if transpose else a, b)]

    return expected


_SOLVES = [
    Use(
        linear_solve,
        (_matrix(*shape, dtype=dtype), _matrix(*shape[:-1], 2, dtype=dtype)),
        _solved(transpose),
        params={"transposed": transpose},
        prepare=_with_factors,
    )
    for shape, dtype in (((3, 3), REAL), ((2, 7, 7), COMPLEX))
    for transpose in (False, True)
]


def _regular(a: Any, *sides: Any) -> Sequence[Any]:
    return (_strong(a), *sides)


_DIRECT = [
    *(
        Use(
            matrix_solve,
            (_matrix(*shape, dtype=dtype), _matrix(*shape[:-1], 2, dtype=dtype)),
            lambda a, b: [np.linalg.solve(a, b)],
            prepare=_regular,
        )
        for shape, dtype in (((3, 3), REAL), ((2, 7, 7), COMPLEX), ((26, 26), REAL))
    ),
    *(
        Use(primitive, (_matrix(*shape, dtype=dtype),), expected, prepare=_regular, limit=2000)
        for primitive, expected in ((matrix_det, lambda a: [np.linalg.det(a)]), (slogdet, np.linalg.slogdet))
        for shape, dtype in (((3, 3), REAL), ((2, 7, 7), COMPLEX))
    ),
    Use(slogdet, (_matrix(26, 26),), np.linalg.slogdet, prepare=_regular, limit=2000, smooth=False),
]


def _band(lower: np.ndarray, main: np.ndarray, upper: np.ndarray, b: np.ndarray) -> list:
    n, places = main.shape[-1], np.arange(main.shape[-1])
    a = np.zeros((*main.shape, n), main.dtype)
    a[..., places, places] = main
    a[..., places[1:], places[:-1]] = lower[..., 1:]
    a[..., places[:-1], places[1:]] = upper[..., :-1]
    return [np.linalg.solve(a, b)]


def _away_from_zero(shift: float) -> Callable[..., Sequence[Any]]:
    return lambda lower, main, upper, b: (lower, main + shift, upper, b)


_TRIDIAGONALS = [
    Use(
        tridiagonal_solve,
        (*(_matrix(*shape, dtype=dtype) for _ in range(3)), _matrix(*shape, 2, dtype=dtype)),
        _band,
        prepare=_away_from_zero(shift),
        limit=5000,
    )
    for shape, dtype, shift in (((2, 5), COMPLEX, 3.0), ((1,), REAL, 3.0), ((9,), REAL, 0.0))
]

USES = (*_CHOLESKYS, *_LUS, *_QRS, *_REFLECTIONS, *_TRIANGULARS, *_SOLVES, *_DIRECT, *_TRIDIAGONALS)
