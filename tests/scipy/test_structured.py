"""Banded and Toeplitz systems: solved from their bands alone, in stacks, with exact derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import rune
import rune.numpy as rnp
from rune.errors import ShapeError
from rune.scipy import linalg
from tests.support.arrays import array
from tests.support.close import near

WHY = "sums of a few products"


def drawn(*shape: int) -> np.ndarray:
    """Uniform numbers, the same for every call of one shape."""
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


def heavy(count: int, n: int, at: int) -> np.ndarray:
    """Bands with a large main diagonal in row `at`."""
    return drawn(count, n) + 8 * (np.arange(count)[:, None] == at)


CALLS: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "solve_banded": (lambda ab, b: linalg.solve_banded((2, 1), ab, b), (heavy(4, 50, 1), drawn(50, 3))),
    "three diagonals": (lambda ab, b: linalg.solve_banded((1, 1), ab, b), (heavy(3, 50, 1), drawn(50, 3))),
    "solveh_banded": (linalg.solveh_banded, (heavy(3, 50, 2), drawn(50, 3))),
    "cholesky_banded": (linalg.cholesky_banded, (heavy(3, 50, 2),)),
    "cho_solve_banded": (lambda cb, b: linalg.cho_solve_banded((cb, False), b), (heavy(3, 50, 2), drawn(50, 3))),
    "solve_toeplitz": (linalg.solve_toeplitz, (heavy(50, 1, 0)[:, 0], drawn(50, 3))),
    "matmul_toeplitz": (linalg.matmul_toeplitz, (drawn(50), drawn(50, 3))),
}
each_call = pytest.mark.parametrize(("call", "data"), CALLS.values(), ids=CALLS)


@each_call
def test_no_full_matrix_is_formed(call: Any, data: tuple):
    program = str(rune.make_jaxpr(call)(*map(array, data)))

    assert "[50,50]" not in program


@each_call
def test_leading_axes_are_those_of_a_stack(call: Any, data: tuple):
    stacks = [np.stack([x, x[..., ::-1] if x.ndim > 1 else x, x]) for x in data]

    results = np.asarray(call(*map(array, stacks)))

    for lane in range(3):
        one = call(*(array(x[lane]) for x in stacks))
        near(np.asarray(one), results[lane], relative=1e-13, why=WHY)


@each_call
def test_a_missing_row_is_an_error_that_names_it(call: Any, data: tuple):
    if len(data) > 1:
        with pytest.raises(ShapeError, match=r"cannot .* f64\[49,3\].*50 rows required"):
            call(array(data[0]), array(data[1][1:]))


def test_a_singular_band_gives_infinities_or_nan():
    solution = linalg.solve_banded((1, 2), rnp.zeros((4, 3)), rnp.ones(3))

    assert not np.isfinite(np.asarray(solution)).any()


def test_a_band_that_is_not_positive_definite_gives_nan_from_that_row_on():
    factor = np.asarray(linalg.cholesky_banded(array(np.array([[4.0, -1.0, 1.0]])), lower=True))

    assert factor[0, 0] == 2
    assert np.isnan(factor[0, 1])


def test_elements_outside_the_matrix_are_not_read():
    bands = heavy(4, 6, 1)
    spoilt = bands.copy()
    spoilt[0, :1] = spoilt[2, -1:] = spoilt[3, -2:] = np.nan

    solutions = [linalg.solve_banded((2, 1), array(x), array(drawn(6))) for x in (bands, spoilt)]

    near(np.asarray(solutions[0]), np.asarray(solutions[1]), relative=0, why="the same numbers")


def test_the_solution_of_a_toeplitz_system_has_the_derivative_of_its_equation():
    column, row, b, weights = heavy(20, 1, 0)[:, 0], drawn(20), drawn(20, 2), drawn(20, 2)

    def dense(c: Any, r: Any, y: Any) -> Any:
        return rnp.sum(weights * rnp.linalg.solve(linalg.toeplitz(c, r), y))

    def within(c: Any, r: Any, y: Any) -> Any:
        return rnp.sum(weights * linalg.solve_toeplitz((c, r), y))

    arguments = [array(x) for x in (column, row, b)]
    slopes, expected = (rune.grad(f, argnums=(0, 1, 2))(*arguments) for f in (within, dense))

    near(
        [np.asarray(x) for x in expected],
        [np.asarray(x) for x in slopes],
        relative=1e-12,
        absolute=1e-14,
        why="products by Fourier transforms",
    )


def test_a_long_toeplitz_system_is_as_accurate_as_its_condition_allows():
    column = 0.5 ** np.arange(300)
    b = drawn(300)

    solution = np.asarray(linalg.solve_toeplitz(array(column), array(b)))

    product = scipy.linalg.toeplitz(column) @ solution
    near(b, product, relative=0, absolute=1e-13, why="a condition of 9")


def test_a_toeplitz_system_is_solved_with_64_bits_as_the_default():
    c, r, b = np.array([5.0, 1.0, 2.0]), np.array([5.0, 0.5, 0.3]), np.array([1.0, 2.0, 3.0])

    with rune.enable_x64():
        solution = linalg.solve_toeplitz((rnp.asarray(c), rnp.asarray(r)), rnp.asarray(b))

    near(scipy.linalg.solve_toeplitz((c, r), b), solution, relative=1e-12, why="f64")
