"""Optimistix: roots, minima, least squares and fixed points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optax
import optimistix as optx


def _rosenbrock(y, args):
    return (y[0] - 1.0) ** 2 + 100.0 * (y[1] - y[0] ** 2) ** 2


def _residuals(y, args):
    return jnp.stack([y[0] - 1.0, 10.0 * (y[1] - y[0] ** 2)])


def _exponential(y, args):
    t, values = args
    return y["a"] * jnp.exp(-y["k"] * t) - values


_T = jnp.linspace(0, 2, 9)
_DATA = (_T, 2.5 * jnp.exp(-1.3 * _T))
_Y0 = {"a": jnp.array(1.0), "k": jnp.array(0.5)}


def quick_start_an_implicit_euler_step():
    y0, dt = jnp.array([1.0, -0.5]), jnp.array(0.1)
    fn = lambda y, args: y0 + jnp.tanh(y) * dt - y  # noqa: E731
    return optx.root_find(fn, optx.Newton(rtol=1e-5, atol=1e-5), y0).value


def roots_by_each_solver():
    fn = lambda y, args: jnp.cos(y) - y * args  # noqa: E731
    solvers = {"newton": optx.Newton(1e-6, 1e-6), "chord": optx.Chord(1e-6, 1e-6), "dogleg": optx.Dogleg(1e-6, 1e-6)}
    return {name: optx.root_find(fn, solver, jnp.array([0.5, 0.7]), args=1.2).value for name, solver in solvers.items()}


def root_between_two_ends():
    solver = optx.Bisection(rtol=1e-5, atol=1e-5)
    return optx.root_find(lambda y, _: y**3 - 2, solver, jnp.array(0.5), options={"lower": 0.0, "upper": 2.0}).value


def roots_of_trees():
    fn = lambda y, args: {"a": y["a"] ** 2 - y["b"], "b": y["b"] - 4.0}  # noqa: E731
    return optx.root_find(fn, optx.Newton(1e-6, 1e-6), {"a": jnp.array(1.0), "b": jnp.array(1.0)}).value


def fixed_point_by_iteration():
    solver = optx.FixedPointIteration(rtol=1e-6, atol=1e-6)
    return optx.fixed_point(lambda y, _: jnp.cos(y), solver, jnp.array([0.1, 1.0])).value


def fixed_point_by_newton():
    return optx.fixed_point(lambda y, _: jnp.cos(y), optx.Newton(1e-6, 1e-6), jnp.array(0.1)).value


def minima_by_quasi_newton():
    solvers = {"bfgs": optx.BFGS(1e-5, 1e-6), "lbfgs": optx.LBFGS(1e-5, 1e-6), "dfp": optx.DFP(1e-5, 1e-6)}
    return {name: optx.minimise(_rosenbrock, s, jnp.array([0.5, 0.8])).value for name, s in solvers.items()}


def minimum_by_a_simplex():
    solver = optx.NelderMead(rtol=1e-5, atol=1e-6)
    return optx.minimise(lambda y, _: jnp.sum((y - jnp.array([1.0, -2.0])) ** 2), solver, jnp.zeros(2)).value


def minimum_by_conjugate_gradients():
    fn = lambda y, _: jnp.sum(jnp.array([1.0, 4.0, 2.0]) * (y - 1) ** 2)  # noqa: E731
    return optx.minimise(fn, optx.NonlinearCG(rtol=1e-5, atol=1e-6), jnp.zeros(3)).value


def minimum_by_gradient_descent():
    fn = lambda y, _: jnp.sum((y - 3.0) ** 2)  # noqa: E731
    return optx.minimise(fn, optx.GradientDescent(0.2, rtol=1e-5, atol=1e-6), jnp.zeros(2)).value


def minimum_on_an_interval():
    solver = optx.GoldenSearch(rtol=1e-5, atol=1e-5)
    options = {"lower": jnp.array(-1.0), "upper": jnp.array(3.0)}
    return optx.minimise(lambda y, _: (y - 1.2) ** 2, solver, jnp.array(0.0), options=options).value


def minimum_by_a_method_of_optax():
    solver = optx.OptaxMinimiser(optax.adam(1e-1), rtol=1e-4, atol=1e-4)
    return optx.minimise(lambda y, _: jnp.sum((y - 3.0) ** 2), solver, jnp.zeros(2), max_steps=1000).value


def least_squares_by_each_solver():
    solvers = {
        "gauss newton": optx.GaussNewton(1e-6, 1e-6),
        "levenberg marquardt": optx.LevenbergMarquardt(1e-6, 1e-6),
        "indirect": optx.IndirectLevenbergMarquardt(1e-6, 1e-6),
        "dogleg": optx.Dogleg(1e-6, 1e-6),
    }
    return {name: optx.least_squares(_residuals, s, jnp.array([0.5, 0.8])).value for name, s in solvers.items()}


def fit_of_an_exponential():
    solution = optx.least_squares(_exponential, optx.LevenbergMarquardt(1e-6, 1e-6), _Y0, args=_DATA)
    return {"y": solution.value, "success": solution.result == optx.RESULTS.successful}


def best_point_so_far():
    solver = optx.BestSoFarMinimiser(optx.BFGS(1e-5, 1e-6))
    return optx.minimise(_rosenbrock, solver, jnp.array([0.5, 0.8]), max_steps=8, throw=False).value


def auxiliary_results():
    fn = lambda y, _: (y**2 - 2.0, {"twice": 2 * y})  # noqa: E731
    solution = optx.root_find(fn, optx.Newton(1e-6, 1e-6), jnp.array(1.0), has_aux=True)
    return {"value": solution.value, "aux": solution.aux}


def derivatives_by_the_implicit_function():
    root = lambda a: optx.root_find(lambda y, a: y**2 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.0), args=a).value  # noqa: E731
    return {
        "reverse": jax.grad(root)(2.0),
        "forward": jax.jvp(root, (2.0,), (1.0,))[1],
        "second": jax.grad(jax.grad(root))(2.0),
    }


def derivatives_through_the_steps():
    def minimum(a):
        adjoint = optx.RecursiveCheckpointAdjoint()
        solver = optx.GradientDescent(0.2, rtol=1e-5, atol=1e-6)
        return optx.minimise(lambda y, a: (y - a) ** 2, solver, jnp.array(0.0), args=a, adjoint=adjoint).value

    return jax.grad(minimum)(3.0)


def derivative_of_a_fit():
    def rate(scale):
        t, values = _DATA
        return optx.least_squares(_exponential, optx.GaussNewton(1e-6, 1e-6), _Y0, args=(t, values + scale * t)).value[
            "k"
        ]

    return jax.grad(rate)(0.01)


def batches_of_problems():
    root = lambda a: optx.root_find(lambda y, a: y**3 - a, optx.Newton(1e-5, 1e-5), jnp.array(1.0), args=a).value  # noqa: E731
    return jax.jit(jax.vmap(root))(jnp.array([1.0, 8.0, 27.0, 0.5]))


def failure_by_too_few_steps():
    solution = optx.root_find(lambda y, _: y**3 - 2, optx.Newton(1e-6, 1e-6), jnp.array(50.0), max_steps=2, throw=False)
    return {"success": solution.result == optx.RESULTS.successful, "steps": solution.stats["num_steps"]}


def own_solver_out_of_parts():
    class Solver(optx.AbstractGaussNewton):
        rtol: float = 1e-6
        atol: float = 1e-6
        norm: object = optx.max_norm
        descent: optx.AbstractDescent = optx.SteepestDescent()
        search: optx.AbstractSearch = optx.BacktrackingArmijo()
        verbose: object = eqx.field(default=lambda *args, **kwargs: None)

    fn = lambda y, _: jnp.array([1.0, 1.5]) * (y - 1)  # noqa: E731
    return optx.least_squares(fn, Solver(), jnp.zeros(2)).value


def newton_with_a_linear_solver():
    solver = optx.Newton(1e-6, 1e-6, linear_solver=lx.QR())
    return optx.root_find(
        lambda y, _: jnp.stack([y[0] + y[1] - 3, y[0] * y[1] - 2]), solver, jnp.array([0.0, 1.5])
    ).value


TOLERANCES = {
    "best_point_so_far": (1e-2, "eight steps of a search whose choices rounding decides"),
    "minimum_by_a_simplex": (1e-3, "the ends of a simplex lie within its tolerance"),
    "minima_by_quasi_newton": (1e-3, "it ends where the next step is within its tolerance"),
}
