"""A right-hand side with one axis fewer than the matrices is one vector per matrix, as in JAX.

If there are as many matrices as unknowns, it could also be read as one matrix for all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.scipy import linalg
from tests.support.close import near

Solve = Callable[[rune.Array, rune.Array], rune.Array]
LOWER, UPPER = np.tril, np.triu

SOLVES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Solve]] = {
    "solve_triangular": (UPPER, linalg.solve_triangular),
    "solve_triangular, lower": (LOWER, lambda a, b: linalg.solve_triangular(a, b, lower=True)),
    "solve_triangular, transposed": (
        lambda a: UPPER(a).swapaxes(-1, -2),
        lambda a, b: linalg.solve_triangular(a, b, trans=1),
    ),
    "lu_solve": (lambda a: a, lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b)),
    "lu_solve, transposed": (
        lambda a: a.swapaxes(-1, -2),
        lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans=1),
    ),
    "cho_solve": (lambda a: a, lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b)),
    "solve, positive": (lambda a: a, lambda a, b: linalg.solve(a, b, assume_a="pos")),
    "solve, diagonal": (
        lambda a: a * np.eye(a.shape[-1], dtype=a.dtype),
        lambda a, b: linalg.solve(a, b, assume_a="diagonal"),
    ),
}


def _system(batch: tuple[int, ...], size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    half = rng.normal(size=(*batch, size, size))
    matrices = half @ half.swapaxes(-1, -2) + 2 * np.eye(size)
    return matrices.astype(np.float32), rng.normal(size=(*batch, size)).astype(np.float32)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize(("batch", "size"), [((3,), 5), ((5,), 5), ((1,), 4), ((2, 3), 3)])
@pytest.mark.parametrize("name", SOLVES)
def test_each_matrix_of_a_batch_has_its_own_vector(name: str, batch: tuple[int, ...], size: int, is_compiled: bool):
    dense, solve = SOLVES[name]
    a, b = _system(batch, size)
    expected = np.linalg.solve(dense(a.astype(np.float64)), b.astype(np.float64)[..., None])[..., 0]

    actual = (rune.jit(solve) if is_compiled else solve)(rnp.asarray(a), rnp.asarray(b))

    near(expected.astype(np.float32), actual, relative=1e-4, why="f32, systems of condition 30")


@pytest.mark.parametrize("name", SOLVES)
def test_one_vector_is_solved_for_all_matrices(name: str):
    dense, solve = SOLVES[name]
    a, b = _system((3,), 4)
    vectors = np.broadcast_to(b[0], (3, 4)).astype(np.float64)[..., None]
    expected = np.linalg.solve(dense(a.astype(np.float64)), vectors)[..., 0]

    actual = solve(rnp.asarray(a), rnp.asarray(b[0]))

    near(expected.astype(np.float32), actual, relative=1e-4, why="f32, systems of condition 30")
