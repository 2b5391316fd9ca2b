"""rune.scipy.sparse.linalg: iterates are SciPy's, derivatives are those of the solution."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as oracle

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, ShapeError
from rune.scipy.sparse.linalg import bicgstab, cg, gmres
from tests.support.close import near
from tests.support.sampling import each_value

incremental = partial(gmres, solve_method="incremental")
N = 13
RANDOM = np.random.default_rng(3)
NOISE = RANDOM.standard_normal((2, N, N))
GENERAL = (NOISE[0] + 8 * np.eye(N)).astype(np.float32)
POSITIVE = (NOISE[0] @ NOISE[0].T + N * np.eye(N)).astype(np.float32)
COMPLEX = (GENERAL + 1j * NOISE[1]).astype(np.complex64)
HERMITIAN = (POSITIVE + 0.5j * (NOISE[1] - NOISE[1].T)).astype(np.complex64)
B = RANDOM.standard_normal(N).astype(np.float32)
SYSTEMS: dict[str, tuple[Any, np.ndarray]] = {
    "cg": (cg, POSITIVE),
    "cg complex": (cg, HERMITIAN),
    "bicgstab": (bicgstab, GENERAL),
    "bicgstab complex": (bicgstab, COMPLEX),
    "gmres": (gmres, GENERAL),
    "gmres complex": (gmres, COMPLEX),
    "gmres restarted": (partial(gmres, restart=4), GENERAL),
    "incremental": (incremental, GENERAL),
    "incremental complex": (incremental, COMPLEX),
    "incremental restarted": (partial(incremental, restart=4), GENERAL),
}
REAL = [name for name in SYSTEMS if "complex" not in name]
WHY = "it stops at a relative residual of 1e-5"


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray]:
    return SYSTEMS[request.param]


def test_the_solution_solves_the_system(system: Any):
    solve, a = system

    x, _ = solve(a, B.astype(a.dtype))

    assert np.linalg.norm(a @ np.asarray(x) - B) <= 1.2e-5 * np.linalg.norm(B)
    assert x.dtype == a.dtype


def test_a_function_an_initial_solution_and_a_preconditioner_are_accepted(system: Any):
    solve, a = system
    b = B.astype(a.dtype)

    x, _ = rune.jit(lambda b: solve(lambda v: a @ v, b, x0=b, M=np.diag(1 / np.diag(a)), tol=1e-6))(b)

    near(np.linalg.solve(a, b), x, relative=1e-4, why="it stops at a residual of 1e-6")


@each_value()
@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize(("name", "a"), [("cg", POSITIVE), ("bicgstab", GENERAL)])
def test_iterates_are_those_of_scipy(name: str, a: np.ndarray, steps: int):
    expected, _ = getattr(oracle, name)(a.astype(np.float64), B, rtol=0, atol=1e-9, maxiter=steps)

    x, _ = getattr(rune.scipy.sparse.linalg, name)(a, B, tol=1e-9, maxiter=steps)

    near(expected.astype(np.float32), x, relative=2e-5, why="float32 against float64")


@each_value()
@pytest.mark.parametrize("solve", [gmres, incremental])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_krylov_space_has_scipys_smallest_residual(solve: Any, size: int):
    expected, _ = oracle.gmres(GENERAL.astype(np.float64), B, rtol=0, atol=1e-12, restart=size, maxiter=1)

    x, _ = solve(GENERAL, B, tol=1e-12, restart=size, maxiter=1)

    near(expected.astype(np.float32), x, relative=2e-5, why="float32 against float64")


@each_value()
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("argument", [0, 1])
def test_derivatives_are_those_of_the_solution(name: str, argument: int):
    solve, a = SYSTEMS[name]

    def loss(solver: Any, a: Any, b: Any) -> rune.Array:
        return rnp.sum(rnp.sin(solver(a, b)))

    gradient = rune.grad(partial(loss, lambda a, b: solve(a, b, tol=1e-6)[0]), argument)(rnp.asarray(a), B)

    expected = rune.grad(partial(loss, rnp.linalg.solve), argument)(rnp.asarray(a), B)
    near(expected, gradient, relative=2e-4, absolute=2e-6, why="two solves to 1e-6")


@pytest.mark.parametrize("name", REAL)
def test_a_solution_has_a_second_derivative(name: str):
    solve, a = SYSTEMS[name]

    def value(t: rune.Array) -> rune.Array:
        return rnp.sum(solve(t * a, rnp.asarray(B), tol=1e-6)[0])

    # The solution is x / t.
    expected = 2 * np.linalg.solve(a, B).sum() / 1.5**3
    near(np.float32(expected), rune.grad(rune.grad(value))(1.5), relative=1e-3, why="solves to 1e-6")


@pytest.mark.parametrize("name", REAL)
def test_each_lane_is_solved_separately(name: str):
    solve, a = SYSTEMS[name]
    many = np.stack([B, 100 * B[::-1], np.zeros(N, np.float32)])

    x = rune.vmap(lambda b: solve(a, b, tol=1e-6)[0])(many)

    near(np.linalg.solve(a, many.T).T.astype(np.float32), x, relative=1e-4, why="solves to 1e-6")


@pytest.mark.parametrize("name", REAL)
def test_a_tree_is_solved_as_one_vector(name: str):
    solve, a = SYSTEMS[name]

    def product(v: dict[str, Any]) -> dict[str, Any]:
        flat = a @ rnp.concatenate([v["a"].ravel(), v["b"]])
        return {"a": flat[:6].reshape(2, 3), "b": flat[6:]}

    x, _ = solve(product, {"a": B[:6].reshape(2, 3), "b": B[6:]}, tol=1e-6)

    flat = rnp.concatenate([x["a"].ravel(), x["b"]])
    near(np.linalg.solve(a, B), flat, relative=1e-4, why="it stops at a residual of 1e-6")


@pytest.mark.parametrize("name", REAL)
def test_an_empty_system_has_an_empty_solution(name: str):
    solve, a = SYSTEMS[name]

    assert not rnp.any(solve(a, rnp.zeros(N))[0])
    assert solve(lambda v: v, rnp.zeros(0))[0].shape == (0,)


def test_the_derivative_in_the_initial_solution_is_zero():
    assert not rnp.any(rune.grad(lambda x0: rnp.sum(cg(POSITIVE, B, x0)[0]))(rnp.ones(N)))


@pytest.mark.parametrize("solve", [gmres, incremental])
def test_a_singular_system_is_reported(solve: Any):
    assert int(solve(rnp.zeros((3, 3)), rnp.ones(3))[1]) == -1


REFUSALS: dict[str, tuple[type[Exception], Any]] = {
    "a matrix that is not square": (ShapeError, lambda f: f(rnp.ones((3, 2)), rnp.ones(2))),
    "another start": (ShapeError, lambda f: f(rnp.eye(3), rnp.ones(3), rnp.ones(2))),
    "a start of another tree": (ArgumentError, lambda f: f(rnp.eye(3), rnp.ones(3), [rnp.ones(3)])),
    "a text for a matrix": (ArgumentError, lambda f: f("A", rnp.ones(3))),
    "a function that changes shapes": (ShapeError, lambda f: f(lambda v: v[1:], rnp.ones(3))),
}


@pytest.mark.parametrize("case", REFUSALS)
@pytest.mark.parametrize("solve", [cg, bicgstab, gmres])
def test_an_argument_that_is_not_a_linear_system_is_refused(case: str, solve: Any):
    error, call = REFUSALS[case]

    with pytest.raises(error):
        call(solve)


def test_an_unknown_method_is_refused():
    with pytest.raises(ArgumentError, match="solve_method='magic'"):
        gmres(rnp.eye(3), rnp.ones(3), solve_method="magic")
