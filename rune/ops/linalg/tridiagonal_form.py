"""tridiagonal: Q with Qᴴ A Q real and tridiagonal, for Hermitian A, as reflections.

Results as LAPACK's hetrd: A with the vectors of the reflections in the triangle that is named, the
real diagonal [*B, N], the real subdiagonal [*B, N-1], and the taus [*B, N-1]. Only that triangle of
A is read. The upper form is the lower one of the matrix read backwards. There is no derivative.

Source: Golub & Van Loan 4e, §8.3.1 (algorithm 8.3.1); it is the Hessenberg form of a Hermitian
        matrix, and is computed as such.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.ops.complex_numbers import real_dtype
from rune.ops.linalg.hessenberg import expanded, reduced, reflections
from rune.ops.linalg.refusal import refused
from rune.ops.matrix_helpers import (
    batch_leading,
    diagonal,
    hermitian,
    part,
    real_part,
    require_matrices,
    require_square,
)
from rune.ops.movement import reverse


def _type(a: ArrayType, *, lower: bool) -> tuple[ArrayType, ...]:
    dtype = require_matrices("tridiagonal", a)
    n = require_square("tridiagonal", a)
    lead, real = a.shape[:-2], real_dtype(dtype)
    short = (*lead, reflections(n))
    return a.strong(), ArrayType((*lead, n), real), ArrayType(short, real), ArrayType(short, dtype)


def _reference(a: np.ndarray, *, lower: bool) -> tuple[np.ndarray, ...]:
    if not lower:
        packed, d, e, taus = _reference(a[..., ::-1, ::-1], lower=True)
        return packed[..., ::-1, ::-1], d[..., ::-1], e[..., ::-1], taus[..., ::-1]
    below = np.tril(a, -1)
    n = a.shape[-1]
    whole = below + np.conj(np.swapaxes(below, -1, -2)) + np.eye(n, dtype=a.dtype) * np.real(a)
    packed, taus = reduced(whole)
    d, e = (np.real(np.diagonal(packed, k, -2, -1)) for k in (0, -1))
    return packed, d, e, taus


def _expand(a: Any, *, lower: bool) -> list[Any]:
    shape = type_of(a).shape
    n, last = shape[-1], len(shape) - 1
    if not lower:
        packed, d, e, taus = _expand(reverse(a, axes=(last - 1, last)), lower=True)
        backwards = [reverse(x, axes=(last - 1,)) for x in (d, e, taus)]
        return [reverse(packed, axes=(last - 1, last)), *backwards]
    packed, taus = expanded(hermitian(a))
    count = reflections(n)
    below = part(part(packed, -2, n - count, n), -1, 0, count)
    return [packed, real_part(diagonal(packed)), real_part(diagonal(below)), taus]


tridiagonal: Primitive = Primitive(
    "tridiagonal", "linalg", _type, _reference,
    multiple_results=True,
    jvp_equation=refused("tridiagonal", "reflections are not determined by the matrix"),
    batch=batch_leading(lambda: tridiagonal),
    lower=Library(), expand=_expand,
)  # fmt: skip
