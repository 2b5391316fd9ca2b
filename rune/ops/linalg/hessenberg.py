"""hessenberg: Q with Qᴴ A Q zero below the first subdiagonal, as reflections.

Results as LAPACK's gehrd: the Hessenberg matrix, with the vectors of the reflections below its
subdiagonal, and their taus [*B, N-1]. `householder_product(packed[1:, :-1], taus)` is Q without its
first row and column, which are those of the identity. There is no derivative: Q and H are not
determined by A alone, and what is (spectra) has rules of its own.

Expansion:  the same reflections, one after the other, applied to the whole matrix.
Source:     Golub & Van Loan 4e, §7.4.2 (algorithm 7.4.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.dims import Size
from rune.ops.arithmetic import add, gt, mul, select, sub
from rune.ops.family import reshape
from rune.ops.linalg.householder import reflection
from rune.ops.linalg.refusal import refused
from rune.ops.matrix_helpers import (
    adjoint,
    batch_leading,
    columns,
    conjugate,
    full,
    matmul,
    number,
    put,
    require_matrices,
    require_square,
    spread,
    steps,
    window,
)


def reflections(n: Size) -> Size:
    """How many reflections a matrix of n rows takes."""
    return n - 1 if n != 0 else 0


def _type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    dtype = require_matrices("hessenberg", a)
    n = require_square("hessenberg", a)
    return a.strong(), ArrayType((*a.shape[:-2], reflections(n)), dtype)


# --- reference --------------------------------------------------------------------------------


def reduced(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All lanes at once, column after column. [*B, N, N] -> [*B, N, N], [*B, N-1]."""
    packed = np.array(a)
    n = a.shape[-1]
    taus = np.zeros((*a.shape[:-2], reflections(n)), a.dtype)
    for k in range(reflections(n)):
        v, tau, head = reflector(packed[..., k + 1 :, k])
        below = packed[..., k + 1 :, k + 1 :]
        below -= v[..., None] * (tau.conj()[..., None] * _row_times(v.conj(), below))[..., None, :]
        right = packed[..., :, k + 1 :]
        right -= (tau[..., None] * _times_column(right, v))[..., None] * v.conj()[..., None, :]
        packed[..., k + 1, k], packed[..., k + 2 :, k], taus[..., k] = head, v[..., 1:], tau
    return packed, taus


def reflector(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v with v₀ = 1, tau and the real head with (1 - tau v vᴴ)ᴴ x = (head, 0, …). [*B, M]."""
    head = x[..., 0]
    rest = np.sum(np.abs(x[..., 1:]) ** 2, -1)
    done = (rest == 0) & (np.imag(head) == 0)
    norm = np.sqrt(np.abs(head) ** 2 + rest)
    beta = np.where(np.real(head) < 0, norm, -norm)
    beta = np.where(done, np.real(head), beta)
    divisor = np.where(done, 1, head - beta)
    v = np.where(done[..., None], 0, x / divisor[..., None])
    v[..., 0] = 1
    tau = np.where(done, 0, (beta - head) / np.where(beta == 0, 1, beta)).astype(x.dtype)
    return v.astype(x.dtype), tau, beta.astype(x.dtype)


def _row_times(row: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.matmul(row[..., None, :], a)[..., 0, :]


def _times_column(a: np.ndarray, column: np.ndarray) -> np.ndarray:
    return np.matmul(a, column[..., None])[..., 0]


# --- expansion --------------------------------------------------------------------------------


def expanded(a: Any) -> list[Any]:
    """Reflection k is turned from column k below row k + 1, and applied from both sides."""
    *lead, n, _ = type_of(a).shape
    count = reflections(n)

    def step(k: Any, work: Any, taus: Any) -> list[Any]:
        v, tau, packed = reflection(window(work, -1, k, 1), add(k, np.int32(1)))
        shape = type_of(work).shape
        inner = matmul(adjoint(v), work)
        left = _outer(v, mul(spread(conjugate(tau), type_of(inner).shape), inner), shape)
        work = select(gt(columns(shape), k), sub(work, left), work)
        across = matmul(work, v)
        across = mul(spread(tau, type_of(across).shape), across)
        work = sub(work, _outer(across, adjoint(v), shape))
        return [put(work, -1, k, packed), put(taus, -2, k, tau)]

    packed, taus = steps(count, step, a, full(number(0, a), (*lead, count, 1)))
    return [packed, reshape(taus, shape=(*lead, count))]


def _outer(column: Any, row: Any, shape: Any) -> Any:
    return mul(spread(column, shape), spread(row, shape))


hessenberg: Primitive = Primitive(
    "hessenberg", "linalg", _type, reduced,
    multiple_results=True,
    jvp_equation=refused("hessenberg", "reflections are not determined by the matrix"),
    batch=batch_leading(lambda: hessenberg),
    lower=Library(), expand=expanded,
)  # fmt: skip
