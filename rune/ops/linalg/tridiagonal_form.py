"""tridiagonal: Q with Qᴴ A Q real and tridiagonal, for Hermitian A, as reflections.

Results as LAPACK's hetrd: A with the vectors of the reflections in the selected triangle, the
real diagonal [*B, N], the real subdiagonal [*B, N-1], and the taus [*B, N-1]. Only that triangle of
A is read. The upper form is the lower form of the matrix with rows and columns reversed.

Derivative: that of the Hessenberg form (hessenberg.py): infinite or NaN where an element of the
subdiagonal is zero.
Source: Golub & Van Loan 4e, §8.3.1 (algorithm 8.3.1); it is computed as the Hessenberg form of a
Hermitian matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.ops.arithmetic import add
from rune.ops.complex_numbers import real_dtype
from rune.ops.linalg.hessenberg import expanded, form_jvp, reduced, reflections
from rune.ops.matrix_helpers import (
    batch_leading,
    diagonal,
    hermitian,
    lower_triangle,
    real_part,
    require_matrices,
    require_square,
    upper_triangle,
)
from rune.ops.movement import part, reverse


def _type(a: ArrayType, *, lower: bool) -> tuple[ArrayType, ...]:
    dtype = require_matrices("tridiagonal", a)
    n = require_square("tridiagonal", a)
    lead, real = a.shape[:-2], real_dtype(dtype)
    short = (*lead, reflections(n))
    return a.strong(), ArrayType((*lead, n), real), ArrayType(short, real), ArrayType(short, dtype)


def _reference(a: np.ndarray, *, lower: bool) -> tuple[np.ndarray, ...]:
    if not lower:
        reflectors, d, e, taus = _reference(a[..., ::-1, ::-1], lower=True)
        return reflectors[..., ::-1, ::-1], d[..., ::-1], e[..., ::-1], taus[..., ::-1]
    below = np.tril(a, -1)
    n = a.shape[-1]
    full = below + np.conj(np.swapaxes(below, -1, -2)) + np.eye(n, dtype=a.dtype) * np.real(a)
    reflectors, taus = reduced(full)
    d, e = (np.real(np.diagonal(reflectors, k, -2, -1)) for k in (0, -1))
    return reflectors, d, e, taus


def _expand(a: Value, *, lower: bool) -> list[Value]:
    if not lower:
        return _backwards(_expand(*_backwards([a]), lower=True))
    reflectors, taus = expanded(hermitian(a))
    return [reflectors, real_part(diagonal(reflectors)), real_part(_below_diagonal(reflectors)), taus]


def _backwards(xs: Sequence[Value]) -> list[Value]:
    """A matrix and its companions with rows and columns in reverse order."""
    last = type_of(xs[0]).ndim - 1
    return [reverse(xs[0], axes=(last - 1, last)), *(reverse(x, axes=(last - 1,)) for x in xs[1:])]


def _below_diagonal(a: Value) -> Value:
    n = type_of(a).shape[-1]
    count = reflections(n)
    return diagonal(part(part(a, -2, n - count, n), -1, 0, count))


# --- derivative -------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Value], list[Value]]:
    (a,), (da,) = primals, tangents
    outs = tridiagonal(a, **params)
    if params["lower"]:
        return outs, _lower_jvp(outs, da)
    return outs, _backwards(_lower_jvp(_backwards(outs), *_backwards([da])))


def _lower_jvp(outs: Sequence[Value], da: Value) -> list[Value]:
    reflectors, _, _, taus = outs
    form = hermitian(upper_triangle(reflectors, -1))
    dh, dv, dtaus = form_jvp(reflectors, taus, form, hermitian(da))
    on, off_diagonal = diagonal(dh), _below_diagonal(dh)
    band = upper_triangle(lower_triangle(dh, 1), -1)
    return [add(band, dv), real_part(on), real_part(off_diagonal), dtaus]


tridiagonal: Primitive = Primitive(
    "tridiagonal",
    "linalg",
    _type,
    _reference,
    multiple_results=True,
    jvp_equation=_jvp,
    batch=batch_leading(lambda: tridiagonal),
    lower=Library(lanes_of_matrices),
    expand=_expand,
)
