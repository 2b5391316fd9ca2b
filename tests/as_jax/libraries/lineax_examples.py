"""Lineax: linear operators, solvers for square, rectangular and structured systems, derivatives."""

import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx

_A = jnp.array([[4.0, 1.0, 0.5], [0.3, 3.0, -1.0], [-0.2, 0.7, 5.0]])
_S = _A @ _A.T
_B = jnp.array([1.0, -2.0, 0.5])
_TALL = jnp.sin(jnp.arange(15.0)).reshape(5, 3)


def _solve(matrix, vector, solver=None, tags=(), **options):
    solver = lx.AutoLinearSolver(well_posed=True) if solver is None else solver
    return lx.linear_solve(lx.MatrixLinearOperator(matrix, tags), vector, solver, **options).value


def quick_start_solve_of_a_matrix():
    matrix = jr.normal(jr.PRNGKey(0), (10, 10))
    vector = jr.normal(jr.PRNGKey(1), (10,))
    return lx.linear_solve(lx.MatrixLinearOperator(matrix), vector).value


def quick_start_without_a_matrix():
    matrix = {"x": {"x": 3.0, "y": 1.0}, "y": {"x": 1.0, "y": 2.0}}
    operator = lx.FunctionLinearOperator(
        lambda v: {k: sum(matrix[k][j] * v[j] for j in v) for k in v},
        {"x": jax.ShapeDtypeStruct((2,), jnp.float32), "y": jax.ShapeDtypeStruct((2,), jnp.float32)},
        lx.positive_semidefinite_tag,
    )
    vector = {"x": jnp.array([1.0, 2.0]), "y": jnp.array([0.5, -1.0])}
    return lx.linear_solve(operator, vector, lx.CG(rtol=1e-6, atol=1e-6)).value


def solvers_of_square_systems():
    return {"lu": _solve(_A, _B, lx.LU()), "qr": _solve(_A, _B, lx.QR()), "svd": _solve(_A, _B, lx.SVD())}


def solvers_of_symmetric_systems():
    return {
        "cholesky": _solve(_S, _B, lx.Cholesky(), lx.positive_semidefinite_tag),
        "negative": _solve(-_S, _B, lx.Cholesky(), lx.negative_semidefinite_tag),
        "automatic": _solve(_S, _B, None, lx.positive_semidefinite_tag),
    }


def solvers_of_structured_systems():
    diagonal, off = jnp.array([4.0, 5.0, 6.0, 7.0]), jnp.array([1.0, -1.0, 0.5])
    operators = {
        "diagonal": (lx.DiagonalLinearOperator(diagonal), lx.Diagonal()),
        "tridiagonal": (lx.TridiagonalLinearOperator(diagonal, off, -off), lx.Tridiagonal()),
        "triangular": (
            lx.MatrixLinearOperator(jnp.diag(diagonal) + jnp.diag(off, -1), lx.lower_triangular_tag),
            lx.Triangular(),
        ),
    }
    vector = jnp.arange(1.0, 5.0)
    return {name: lx.linear_solve(operator, vector, solver).value for name, (operator, solver) in operators.items()}


def iterative_solvers():
    matrix = 3 * jnp.eye(20) + jr.normal(jr.key(0), (20, 20)) / 5
    vector = jnp.cos(jnp.arange(20.0))
    solvers = {
        "gmres": lx.GMRES(1e-4, 1e-4, restart=20),
        "bicgstab": lx.BiCGStab(1e-3, 1e-3),
        "normal cg": lx.Normal(lx.CG(1e-5, 1e-5)),
    }
    return {name: _solve(matrix, vector, solver) for name, solver in solvers.items()}


def least_squares_of_a_tall_matrix():
    vector = jnp.cos(jnp.arange(5.0))
    solvers = {"qr": lx.QR(), "svd": lx.SVD(), "lsmr": lx.LSMR(1e-6, 1e-6)}
    return {name: _solve(_TALL[:, :2], vector, solver) for name, solver in solvers.items()}


def least_norm_of_a_wide_matrix():
    return {
        "qr": _solve(_TALL[:, :2].T, _B[:2], lx.QR()),
        "auto": _solve(_TALL[:, :2].T, _B[:2], lx.AutoLinearSolver(None)),
    }


def singular_systems_by_pseudo_inverse():
    singular = jnp.array([[1.0, 2.0], [2.0, 4.0]])
    return _solve(singular, jnp.array([1.0, 2.0]), lx.AutoLinearSolver(well_posed=False))


def failure_is_reported():
    solution = lx.linear_solve(lx.MatrixLinearOperator(jnp.zeros((2, 2))), jnp.ones(2), throw=False)
    return solution.result == lx.RESULTS.successful


def derivatives_of_a_solve():
    loss = lambda a, b: jnp.sum(_solve(a, b) ** 2)  # noqa: E731
    by_matrix, by_vector = jax.grad(loss, (0, 1))(_A, _B)
    return {
        "matrix": by_matrix,
        "vector": by_vector,
        "forward": jax.jvp(lambda a: _solve(a, _B), (_A,), (jnp.ones((3, 3)),))[1],
        "second": jax.hessian(lambda b: loss(_A, b))(_B),
    }


def derivatives_of_least_squares():
    loss = lambda a: jnp.sum(_solve(a, jnp.cos(jnp.arange(5.0)), lx.QR()) ** 2)  # noqa: E731
    return jax.grad(loss)(_TALL[:, :2])


def derivatives_of_an_iterative_solve():
    loss = lambda a: jnp.sum(_solve(a @ a.T, _B, lx.CG(1e-6, 1e-6), lx.positive_semidefinite_tag))  # noqa: E731
    return jax.jit(jax.grad(loss))(_A)


def batches_of_solves():
    many = jnp.stack([_A, _A.T, _S])
    return {
        "matrices": jax.vmap(_solve, (0, None))(many, _B),
        "vectors": jax.jit(jax.vmap(_solve, (None, 0)))(_A, jnp.eye(3)),
        "gradients": jax.vmap(jax.grad(lambda a: _solve(a, _B).sum()))(many),
    }


def one_factorisation_for_several_solves():
    operator, solver = lx.MatrixLinearOperator(_A), lx.LU()
    state = solver.init(operator, options={})
    return [lx.linear_solve(operator, v, solver, state=state).value for v in jnp.eye(3)]


def preconditioner_and_first_guess():
    operator = lx.MatrixLinearOperator(_S, lx.positive_semidefinite_tag)
    diagonal = lx.DiagonalLinearOperator(1 / jnp.diag(_S))
    preconditioner = lx.TaggedLinearOperator(diagonal, lx.positive_semidefinite_tag)
    options = {"preconditioner": preconditioner, "y0": jnp.ones(3)}
    solution = lx.linear_solve(operator, _B, lx.CG(1e-6, 1e-6), options=options)
    return solution.value


def arithmetic_of_operators():
    a, d = lx.MatrixLinearOperator(_A), lx.DiagonalLinearOperator(_B)
    return {
        "sum": (a + d).as_matrix(),
        "product": (a @ d).as_matrix(),
        "scaled": (2 * a / 3).as_matrix(),
        "applied": (a - d).mv(_B),
        "transposed": a.T.mv(_B),
    }


def jacobians_as_operators():
    function = lambda x, args: jnp.sin(x) * x.sum() + args  # noqa: E731
    operator = lx.JacobianLinearOperator(function, _B, 1.0)
    return {
        "matrix": operator.as_matrix(),
        "product": lx.linearise(operator).mv(jnp.ones(3)),
        "transposed": operator.T.mv(jnp.ones(3)),
        "solve": lx.linear_solve(lx.materialise(operator), _B).value,
    }


def trees_as_operators():
    tree = {"a": {"a": jnp.eye(2) * 2, "b": jnp.ones((2, 1))}, "b": {"a": jnp.ones((1, 2)), "b": jnp.array([[5.0]])}}
    structure = {"a": jax.ShapeDtypeStruct((2,), jnp.float32), "b": jax.ShapeDtypeStruct((1,), jnp.float32)}
    operator = lx.PyTreeLinearOperator(tree, structure)
    vector = {"a": jnp.ones(2), "b": jnp.array([2.0])}
    return {
        "product": operator.mv(vector),
        "solve": lx.linear_solve(operator, vector).value,
        "matrix": operator.as_matrix(),
    }


def properties_of_operators():
    diagonal, symmetric = lx.DiagonalLinearOperator(_B), lx.MatrixLinearOperator(_S, lx.symmetric_tag)
    tests = (lx.is_diagonal, lx.is_symmetric, lx.is_lower_triangular, lx.is_tridiagonal, lx.has_unit_diagonal)
    return {
        "diagonal": [t(diagonal) for t in tests],
        "symmetric": [t(symmetric) for t in tests],
        "trace": lx.diagonal(symmetric),
    }


def complex_systems():
    matrix = _A + 1j * _A.T
    solution = _solve(matrix, _B + 0j)
    return {"solution": solution, "residual": jnp.abs(matrix @ solution - _B).max() < 1e-5}


def identity_and_adjoint():
    identity = lx.IdentityLinearOperator(jax.ShapeDtypeStruct((3,), jnp.float32))
    return {
        "identity": lx.linear_solve(identity, _B).value,
        "conjugate": lx.conj(lx.MatrixLinearOperator(_A * 1j)).as_matrix(),
    }


TOLERANCES = {"iterative_solvers": (2e-3, "they end where the residual is below 1e-3")}
