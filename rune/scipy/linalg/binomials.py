"""Matrices of binomial coefficients as floats, in NumPy: beyond 64-bit integers.

A column of coefficients is its neighbour times a column of quotients, in the widest available
float, so that it is correct to a rounding or two. Coefficients out of range are infinite, and most
are: of 1,030 columns and more, no more than 515 from either end are computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Matrix = np.ndarray


def _columns(tops: int) -> Iterator[np.ndarray]:
    """C(s, k) of all s below `tops` for k = 0, 1, ..., until all from s = 2k on are infinite."""
    s, column = np.arange(tops, dtype=np.longdouble), np.ones(tops, np.longdouble)
    for k in range(tops):
        floats = column.astype(np.float64)
        if not np.isfinite(floats[min(2 * k, tops - 1)]):
            break
        yield floats
        column = column * (s - k) / (k + 1)


def symmetric(n: int, dtype: np.dtype) -> Matrix:
    """C(i + j, i)."""
    out = np.full((n, n), np.inf, dtype)
    for k, column in zip(range(n), _columns(2 * n)):
        out[k, k:] = out[k:, k] = column[2 * k : k + n]
    return out


def lower(n: int, dtype: np.dtype) -> Matrix:
    """C(i, j)."""
    out = np.zeros((n, n), dtype)
    for i in range(n):
        out[i, : i + 1] = np.inf
    for k, column in zip(range((n + 1) // 2), _columns(n)):
        rows = np.arange(2 * k, n)
        out[rows, k] = out[rows, rows - k] = column[2 * k :]
    return out


def signed(n: int, dtype: np.dtype) -> Matrix:
    """(-1)^(i + j) C(i, j)."""
    out = lower(n, dtype)
    for i in range(n):
        out[i, (i + 1) % 2 : i : 2] *= -1
    return out


def _with_signs(out: Matrix) -> Matrix:
    """(-1)^(i + j) times the matrix, in place."""
    out[::2, 1::2] *= -1
    out[1::2, ::2] *= -1
    return out


def gram_of_signed(n: int, dtype: np.dtype) -> Matrix:
    """The sum over k of (-1)^(i + j) C(k, i) C(k, j).

    A column is largest in its last row, where no other is 0: if it is infinite there, all sums are.
    """
    last, columns = np.full(n, np.inf), list(_columns(n))
    for k, column in enumerate(columns):
        last[k] = last[n - 1 - k] = column[n - 1]
    finite = np.flatnonzero(np.isfinite(last))
    place = np.full(n, -1)
    place[finite] = np.arange(len(finite))
    factors = np.zeros((n, len(finite)))
    for k, column in enumerate(columns):
        if place[k] >= 0:
            factors[k:, place[k]] = column[k:]
        rows = finite[finite + k < n] + k
        factors[rows, place[rows - k]] = column[rows]
    out = np.full((n, n), np.inf, dtype)
    out[np.ix_(finite, finite)] = factors.T @ factors
    return _with_signs(out)


def inverse_of_hilbert(n: int, dtype: np.dtype) -> Matrix:
    """(-1)^(i + j) p(i) p(j) / (i + j + 1), where p(i) = (n + i)! / (i!² (n - i - 1)!).

    p(0) is the least, so that a row is infinite if its first number is.
    """
    finite: dict[int, int] = {}
    p = n
    for i in range(n):
        if _is_finite(p * n // (i + 1)):
            finite[i] = p
        p = p * (n + i + 1) * (n - i - 1) // (i + 1) ** 2
    scale = [max(0, p.bit_length() - 500) for p in finite.values()]
    parts = np.array([p / (1 << e) for p, e in zip(finite.values(), scale)])
    at = np.array(list(finite), np.intp)
    quotients = parts[:, None] / (at[:, None] + at + 1.0) * parts
    out = np.full((n, n), np.inf, dtype)
    out[np.ix_(at, at)] = np.ldexp(quotients, np.add.outer(scale, scale).astype(np.intc))
    return _with_signs(out)


def _is_finite(x: int) -> bool:
    return x.bit_length() <= 1024 and x <= int(np.finfo(np.float64).max)
