"""A function of matrices does not depend on the order of their elements in memory.

Moved axes are views, so that the lanes of a batch with two axes may lie interleaved: an answer
written through a reshaped copy would be lost. Nothing has derivatives, too: no matrices, no rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.scipy import linalg
from tests.support.close import near

BATCH, SIZE = (2, 3), 4
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cholesky": lambda a, b: rnp.linalg.cholesky(a @ a.mT + rnp.eye(SIZE)),
    "det": lambda a, b: rnp.linalg.det(a),
    "eig": lambda a, b: lax.linalg.eig(a),
    "eigh": lambda a, b: rnp.abs(rnp.linalg.eigh(a)[1]),
    "eigvals": lambda a, b: rnp.linalg.eigvals(a),
    "expm": lambda a, b: linalg.expm(a),
    "hessenberg": lambda a, b: linalg.hessenberg(a, calc_q=True),
    "householder_product": lambda a, b: lax.linalg.householder_product(a, b[..., 0, :]),
    "inv": lambda a, b: rnp.linalg.inv(a),
    "lu": lambda a, b: lax.linalg.lu(a),
    "qr": lambda a, b: rnp.linalg.qr(a),
    "qr of wide matrices": lambda a, b: rnp.linalg.qr(a[..., 1:, :]),
    "qr with pivots": lambda a, b: lax.linalg.qr(a, pivoting=True),
    "schur": lambda a, b: lax.linalg.schur(a),
    "slogdet": lambda a, b: rnp.linalg.slogdet(a),
    "solve": lambda a, b: rnp.linalg.solve(a, b),
    "sqrtm": lambda a, b: linalg.sqrtm(a @ a.mT),
    "svd": lambda a, b: rnp.abs(rnp.linalg.svd(a)[2]),
    "triangular_solve": lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True),
    "tridiagonal_solve": lambda a, b: lax.linalg.tridiagonal_solve(a[..., 0], 4 + a[..., 1], a[..., 2], b),
}
ORDERS = [p for p in itertools.permutations(range(4)) if p != (0, 1, 2, 3)]


def in_order(x: np.ndarray, order: tuple[int, ...]) -> Any:
    """An array with the axes in this order in memory, the last one next to each other."""
    return rnp.transpose(rnp.asarray(np.ascontiguousarray(x.transpose(order)), "f8"), np.argsort(order).tolist())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_answer_does_not_depend_on_the_order_in_memory(name: str):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, *BATCH, SIZE, SIZE))
    expected = rune.tree.leaves(FUNCTIONS[name](rnp.asarray(a, "f8"), rnp.asarray(b, "f8")))

    for order in ORDERS:
        actual = rune.tree.leaves(FUNCTIONS[name](in_order(a, order), in_order(b, order)))
        for x, y in zip(expected, actual, strict=True):
            near(x, y, relative=1e-9, why=f"rounding in another order, {order}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_matrices_have_tangents_of_no_matrices(name: str):
    none = rnp.zeros((2, 0, SIZE, SIZE))

    values, tangents = rune.jvp(lambda a: rune.tree.leaves(FUNCTIONS[name](a, a)), (none,), (none,))

    assert [x.shape for x in tangents] == [x.shape for x in values]


@pytest.mark.parametrize(
    "name", [n for n in FUNCTIONS if n not in ("cholesky", "householder_product", "tridiagonal_solve")]
)
def test_matrices_without_rows_have_tangents(name: str):
    none = rnp.zeros((2, 0, 0))

    values, tangents = rune.jvp(lambda a: rune.tree.leaves(FUNCTIONS[name](a, a)), (none,), (none,))

    assert [x.shape for x in tangents] == [x.shape for x in values]
