"""Uses of the equations between triangular and Hessenberg matrices, against one linear system.

A X + X B = C, whole and below the blocks of a Schur form; L H - H L = C; R R = T.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.ops import matrix_helpers as m
from rune.ops.complex_numbers import complex_dtype
from rune.ops.creation import stop_gradient
from rune.ops.linalg import hessenberg_commutator, sylvester, triangular_sqrt
from rune.ops.linalg.blocks import triangular_form
from rune.ops.linalg.schur import complex_schur
from tests.ops.calls import Operand
from tests.ops.use import Use

REAL, COMPLEX = dtypes.f64, dtypes.c128


def _matrix(*shape: int, dtype: np.dtype = REAL) -> Operand:
    return Operand(shape, dtype, -1.0, 1.0)


def _with_forms(a: Any, b: Any, c: Any) -> Sequence[Any]:
    """Operands with eigenvalues in the right half plane."""
    a, b = (x / 4 + 2 * m.eye(x.shape, x.dtype) for x in (a, b))
    return a, b, *complex_schur(a), *complex_schur(b), c


def _solved(transpose: bool) -> Callable[..., Sequence[np.ndarray]]:
    def expected(a: np.ndarray, b: np.ndarray, *others: np.ndarray) -> Sequence[np.ndarray]:
        c = others[-1]
        if transpose:
            a, b = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
        left_terms = np.einsum("...ij,kl->...ikjl", a, np.eye(b.shape[-1]))
        right_terms = np.einsum("ij,...lk->...ikjl", np.eye(a.shape[-1]), b)
        size = c.shape[-2] * c.shape[-1]
        both = (left_terms + right_terms).reshape(*c.shape[:-2], size, size)
        flat = np.linalg.solve(both, c.reshape(*c.shape[:-2], size, 1))
        return [flat.reshape(c.shape)]

    return expected


def _with_blocks(t: Any, c: Any) -> Sequence[Any]:
    """-T, T and their forms, of numbers well apart on the diagonal; a real T has a 2 × 2 block."""
    n = t.shape[-1]
    t = m.upper_triangle(t) + m.from_diagonal(3.0 * rnp.arange(n).astype(t.dtype))
    dtype = complex_dtype(t.dtype)
    wide = m.eye(t.shape, dtype)
    if t.dtype not in dtypes.COMPLEX:
        block = np.zeros((n, n))
        block[:2, :2] = [[1, 2], [-1, -2]]
        t = t + block
        form, wide = triangular_form(stop_gradient(t).astype(dtype), wide)
    else:
        form = stop_gradient(t)
    return -t, t, -form, wide, form, wide, c


def _below_blocks(transpose: bool) -> Callable[..., Sequence[np.ndarray]]:
    """The solution of the equations below the blocks, all of them in one system."""

    def expected(_: Any, t: np.ndarray, *others: np.ndarray) -> Sequence[np.ndarray]:
        c, n = others[-1], t.shape[-1]
        one = np.eye(n)
        system = np.kron(one, t.T) - np.kron(t, one)  # of X T - T X, row by row
        places = np.flatnonzero(np.tril(np.triu(t, -1) == 0, -1))
        system = system[np.ix_(places, places)]
        out = np.zeros(n * n, c.dtype)
        out[places] = np.linalg.solve(system.T if transpose else system, c.ravel()[places])
        return [out.reshape(n, n)]

    return expected


def _hessenbergs(a: Any, c: Any) -> Sequence[Any]:
    """Upper Hessenberg matrices with a subdiagonal away from zero; below it what is not read."""
    return a + 2.0 * rnp.eye(a.shape[-1], k=-1), c


def _commuted(transpose: bool) -> Callable[..., Sequence[np.ndarray]]:
    def expected(h: np.ndarray, c: np.ndarray) -> Sequence[np.ndarray]:
        n = h.shape[-1]
        one, row, column = np.eye(n), *np.indices((n, n))
        unknowns = np.flatnonzero((row > column) & (column > 0))
        equations = np.flatnonzero(row > column + 1)
        out = np.zeros((*c.shape[:-2], n * n), c.dtype)
        for lane in np.ndindex(*c.shape[:-2]):
            read = np.triu(h[lane], -1)
            system = np.kron(one, read.T) - np.kron(read, one)
            system, cotangents = system[np.ix_(equations, unknowns)], c[lane].ravel()
            if transpose:
                out[lane][equations] = np.linalg.solve(system.T, cotangents[unknowns])
            else:
                out[lane][unknowns] = np.linalg.solve(system, cotangents[equations])
        return [out.reshape(c.shape)]

    return expected


def _triangle(a: Any) -> Sequence[Any]:
    return (m.upper_triangle(a) / 4 + 2 * m.eye(a.shape, a.dtype),)


USES = (
    *(
        Use(
            sylvester,
            tuple(_matrix(*s, dtype=dtype) for s in shapes),
            _solved(transpose),
            params={"transposed": transpose},
            prepare=_with_forms,
        )
        for dtype, transpose, shapes in (
            (REAL, False, ((3, 3), (2, 2), (3, 2))),
            (COMPLEX, True, ((2, 2, 2), (2, 3, 3), (2, 2, 3))),
        )
    ),
    *(
        Use(
            sylvester,
            (_matrix(n, n, dtype=dtype),) * 2,
            _below_blocks(transpose),
            params={"transposed": transpose, "below": True},
            prepare=_with_blocks,
        )
        for n, dtype, transpose in ((4, REAL, False), (4, REAL, True), (3, COMPLEX, True))
    ),
    *(
        Use(
            hessenberg_commutator,
            (_matrix(*shape, dtype=dtype),) * 2,
            _commuted(transpose),
            params={"transposed": transpose},
            prepare=_hessenbergs,
        )
        for shape, dtype in (((5, 5), REAL), ((2, 4, 4), COMPLEX), ((2, 2), REAL))
        for transpose in (False, True)
    ),
    *(
        Use(
            triangular_sqrt,
            (operand,),
            lambda t: [t, t * 0],
            lambda outputs, t: [rnp.matmul(outputs[0], outputs[0]), m.lower_triangle(outputs[0], -1)],
            prepare=_triangle,
        )
        for operand in (_matrix(4, 4), _matrix(2, 3, 3, dtype=COMPLEX))
    ),
)
