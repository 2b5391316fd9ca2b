"""NumPy's LAPACK in the dtype of the operand, with NaN for a matrix that has no answer.

`np.linalg` computes in f64 whatever the dtype, and refuses a whole batch if one matrix fails. The
generalised ufuncs beneath it have loops for f32 and c64, in half the time, and put NaN into the
results of the failing matrix alone. If a NumPy has no ufunc of the name, `np.linalg` is called for
one matrix at a time, with the same results.

Some routines never return when they meet an infinity, so a matrix that is not finite is answered
with NaN before it reaches them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError, _umath_linalg

from rune import dtypes
from rune.ops.complex_numbers import real_dtype
from rune.ops.linalg.small import over_matrices
from rune.ops.matrix_helpers import nan_like

Results = np.ndarray | tuple[np.ndarray, ...]


def routine(name: str, public: Callable[..., Any], *, complex64: bool = True) -> Callable[..., Any]:
    """A routine for one batch of matrices -> array or arrays, in the operand's precision.

    public:    the function of np.linalg with the same meaning
    complex64: whether the ufunc has a loop for it; if not, c128 is computed and rounded
    """
    ufunc = getattr(_umath_linalg, name, None)
    inner = functools.partial(_each, public) if ufunc is None else ufunc
    wide = ufunc is None or not complex64

    def run(x: np.ndarray) -> Any:
        is_widened = wide and x.dtype == np.complex64
        operand = x.astype(np.complex128) if is_widened else x
        # For small matrices this takes as long as the routine, so all are checked at once.
        is_finite = np.count_nonzero(np.isfinite(operand)) == operand.size  # a third of the time of `all`
        out = inner(operand) if is_finite else _of_finite_ones(inner, operand)
        if not is_widened:
            return out
        return _narrowed(out) if isinstance(out, np.ndarray) else tuple(map(_narrowed, out))

    return run


def _of_finite_ones(inner: Callable[[np.ndarray], Results], x: np.ndarray) -> Results:
    """The results, with NaN for matrices that are not finite."""
    finite = np.asarray(np.isfinite(x).all((-2, -1), keepdims=True))
    out = inner(np.where(finite, x, 0))
    return _spoilt(out, finite) if isinstance(out, np.ndarray) else tuple(_spoilt(o, finite) for o in out)


def _spoilt(out: np.ndarray, finite: np.ndarray) -> np.ndarray:
    flags = finite[..., 0] if out.ndim == finite.ndim - 1 else finite
    return np.where(flags, out, np.array(np.nan, out.dtype))


def _narrowed(out: np.ndarray) -> np.ndarray:
    return out.astype(np.complex64 if np.iscomplexobj(out) else np.float32)


def _each(public: Callable[..., Any], x: np.ndarray) -> Any:
    """`public` for one matrix at a time, NaN where it raises."""
    flat = x.reshape(-1, *x.shape[-2:])
    kinds = public(np.eye(*x.shape[-2:], dtype=x.dtype))
    several = not isinstance(kinds, np.ndarray)
    kinds = tuple(kinds) if several else (kinds,)
    outs = [np.full((len(flat), *k.shape), np.nan, k.dtype) for k in kinds]
    for lane, matrix in enumerate(flat):
        try:
            results = public(matrix)
        except LinAlgError:
            continue
        for out, value in zip(outs, results if several else (results,), strict=True):
            out[lane] = value
    outs = [o.reshape(*x.shape[:-2], *o.shape[1:]) for o in outs]
    return tuple(outs) if several else outs[0]


_CHOLESKY = getattr(_umath_linalg, "cholesky_lo", None)


def cholesky_in_lapack(a: np.ndarray) -> np.ndarray:
    """L with L Lᴴ = A, from A's lower triangle; NaN in L if A is not positive definite.

    Shapes: [*B, N, N] -> [*B, N, N].
    """
    if 0 in a.shape:
        return np.empty_like(a)
    if _CHOLESKY is None:
        return over_matrices(_factored_or_nan, a)
    with np.errstate(invalid="ignore"):
        return _nan_where_any(np.tril(_CHOLESKY(a)))


def _nan_where_any(factors: np.ndarray) -> np.ndarray:
    """NaN in all of a lower triangle that has any: rows before a NaN of the matrix would be
    finite.
    """
    is_nan = factors != factors
    if not np.count_nonzero(is_nan):
        return factors
    return np.where(is_nan.any((-2, -1), keepdims=True), np.tril(np.full(factors.shape, nan_like(factors))), factors)


def _factored_or_nan(a: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(a)
    except LinAlgError:
        return np.tril(np.full(a.shape, nan_like(a)))


_SOLVE = getattr(_umath_linalg, "solve", None)


def solve_in_lapack(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """X with A X = B; NaN where A is singular or contains NaN.

    Shapes: [*B, N, N], [*B, N, K] -> [*B, N, K].
    """
    if 0 in b.shape:
        return np.empty_like(b)
    out = over_matrices(_solved_or_nan, a, b) if _SOLVE is None else _SOLVE(a, b)
    is_nan = a != a
    if not np.count_nonzero(is_nan):
        return out
    # LAPACK skips zeros, OpenBLAS divisions by a NaN pivot: some unknowns might come out finite.
    return np.where(is_nan.any((-2, -1), keepdims=True), nan_like(a), out)


def _solved_or_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(a, b)
    except LinAlgError:
        return np.full_like(b, np.nan)


_DET, _SLOGDET = (getattr(_umath_linalg, name, None) for name in ("det", "slogdet"))


def determinants(a: np.ndarray) -> np.ndarray:
    """The determinant of each matrix, by LU in double precision. Shapes: [*B, N, N] -> [*B]."""
    if _DET is None:
        return np.asarray(np.linalg.det(a))
    kinds = "D->D" if a.dtype in dtypes.COMPLEX else "d->d"
    # The determinant of one matrix is a number, whose `astype` takes three times as long.
    return np.asarray(_DET(a, signature=kinds), a.dtype)


def signs_and_logarithms(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sign and log|det| of each matrix, by LU in double precision; NaN and NaN where a has NaN.

    Shapes: [*B, N, N] -> [*B], [*B].
    """
    if _SLOGDET is None:
        signs, logs = np.linalg.slogdet(a)
    else:
        signs, logs = _SLOGDET(a, signature="D->Dd" if a.dtype in dtypes.COMPLEX else "d->dd")
    signs, logs = np.asarray(signs, a.dtype), np.asarray(logs, real_dtype(a.dtype))
    is_nan = logs != logs
    return np.where(is_nan, np.array(np.nan, a.dtype), signs) if np.count_nonzero(is_nan) else signs, logs
