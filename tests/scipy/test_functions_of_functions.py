"""rune.scipy's functions of functions: minima, roots, integrals and differential equations.

Their arguments are functions, so they do not fit the table of cases. The oracle is SciPy or a
formula; the functions to minimise are Rosenbrock's and a quadratic one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, ShapeError
from rune.scipy import integrate, optimize
from tests.support import arrays
from tests.support.close import near


def array(data: Any) -> Any:
    """The numbers as an f64 array."""
    return arrays.array(np.asarray(data, np.float64))


METHODS = ("BFGS", "L-BFGS", "Newton-CG", "Nelder-Mead")
SMOOTH_METHODS = METHODS[:3]


def rosenbrock(x: Any) -> Any:
    return rnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


# --- minima -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_minimum_is_found_in_a_curved_valley(method: str):
    minimum = optimize.minimize(rosenbrock, array([-1.2, 1.0]), method=method, options={"maxiter": 500})

    assert minimum.success
    near(np.ones(2), minimum.x, relative=1e-3, why="the gradient is 1e-5, the valley flat")


@pytest.mark.parametrize("method", METHODS)
def test_a_minimisation_is_one_equation_under_jit_and_works_lane_by_lane(method: str):
    def least(start: Any, target: Any) -> Any:
        bowl = lambda x, t: rnp.sum((x - t) ** 2 * rnp.array([1.0, 10.0]))  # noqa: E731
        return optimize.minimize(bowl, start, (target,), method=method).x

    starts, targets = array(np.zeros((3, 2))), array([[1.0, 2.0], [-1.0, 0.5], [0.0, 0.0]])

    minima = rune.jit(rune.vmap(least))(starts, targets)

    near(targets, minima, relative=1e-3, why="Nelder-Mead's simplex is 1e-4 wide")


@pytest.mark.parametrize("method", SMOOTH_METHODS)
def test_the_gradient_at_a_minimum_is_below_the_tolerance(method: str):
    minimum = optimize.minimize(rosenbrock, array([-1.2, 1.0, 0.5]), method=method, tol=1e-8)

    assert float(rnp.max(rnp.abs(minimum.jac))) <= 1e-8
    near(rune.grad(rosenbrock)(minimum.x), minimum.jac, relative=1e-12, why="the same function")


def test_bfgs_learns_the_inverse_hessian():
    matrix = array([[3.0, 1.0], [1.0, 2.0]])

    minimum = optimize.minimize(lambda x: 0.5 * x @ matrix @ x + x[0], array([2.0, -1.0]), tol=1e-9)

    near(np.linalg.inv(matrix), minimum.hess_inv, relative=1e-2, why="a quasi-Newton estimate")


def test_a_minimisation_reports_too_few_steps():
    minimum = optimize.minimize(rosenbrock, array([-1.2, 1.0]), options={"maxiter": 2})

    assert not minimum.success
    assert int(minimum.status) == 1
    assert int(minimum.nit) == 2


def test_a_least_squares_fit_agrees_with_scipys():
    t = np.linspace(0.0, 2.0, 12)
    data = 2.0 * np.exp(-1.3 * t) + 0.05 * np.sin(9.0 * t)
    expected = scipy.optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) - data, [1.0, 1.0])

    points = array(t)
    fit = rune.jit(lambda p: optimize.least_squares(lambda q: q[0] * rnp.exp(-q[1] * points) - array(data), p).x)(
        array([1.0, 1.0])
    )

    near(expected.x, fit, relative=1e-6, why="both end at a relative change of 1e-8")


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"method": "Simplex"}, ArgumentError),
        ({"options": {"steps": 3}}, ArgumentError),
        ({"x0": np.zeros((2, 2))}, ShapeError),
    ],
)
def test_a_minimisation_that_makes_no_sense_is_refused(kwargs: dict, error: type[Exception]):
    start = kwargs.pop("x0", np.zeros(2))

    with pytest.raises(error, match="minimize: cannot"):
        optimize.minimize(rosenbrock, start, **kwargs)


# --- roots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["brentq", "bisect"])
def test_roots_between_two_points_are_found_elementwise(name: str):
    powers = array([2.0, 5.0, 0.3])

    roots = getattr(optimize, name)(lambda x, a: x**3 - a, array(np.zeros(3)), array(np.full(3, 4.0)), (powers,))

    near(np.cbrt(powers), roots, relative=1e-11, why="an interval of 2e-12")


@pytest.mark.parametrize("name", ["brentq", "bisect", "newton"])
def test_the_derivative_of_a_root_is_that_of_the_implicit_function(name: str):
    def root(a: Any) -> Any:
        ends = (array(1.0),) if name == "newton" else (array(0.0), array(4.0))
        return getattr(optimize, name)(lambda x, a: x**3 - a, *ends, args=(a,))

    near(2.0 ** (-2 / 3) / 3, rune.grad(root)(array(2.0)), relative=1e-9, why="of the root itself")
    second = rune.grad(rune.grad(root))(array(2.0))
    near(-(2.0 ** (-5 / 3)) * 2 / 9, second, relative=1e-9, why="of the root itself")


def by_golden_section(f: Any) -> Any:
    return optimize.golden(f, brack=(0.0, 4.0), tol=1e-9)


def by_a_simplex(f: Any) -> Any:
    return optimize.minimize(lambda x: f(x[0]), array([1.0]), method="Nelder-Mead", tol=1e-9).x[0]


@pytest.mark.parametrize("search", [by_golden_section, by_a_simplex])
def test_the_derivative_of_a_minimum_found_without_slopes_is_that_of_the_implicit_function(search: Any):
    def minimum(a: Any) -> Any:
        return search(lambda x: x**4 / 4 - a * x)

    first, second = rune.grad(minimum), rune.grad(rune.grad(minimum))
    near(2.0 ** (-2 / 3) / 3, first(array(2.0)), relative=1e-6, why="minima are flat")
    near(-(2.0 ** (-5 / 3)) * 2 / 9, second(array(2.0)), relative=1e-6, why="minima are flat")


def test_a_search_without_slopes_accepts_a_function_without_derivatives():
    def distance(x: Any) -> Any:
        return rune.pure_callback(lambda x: abs(x - 1), rune.ShapeDtypeStruct((), x.dtype), x)

    near(1.0, optimize.golden(distance, brack=(0.0, 4.0)), relative=1e-4, why="f32")


def test_brentq_takes_as_many_steps_as_scipys():
    f = lambda x: x**3 - 2.0 * x - 5.0  # noqa: E731
    _, expected = scipy.optimize.brentq(f, 2.0, 3.0, full_output=True)

    _, report = optimize.brentq(f, array(2.0), array(3.0), full_output=True)

    assert report.converged
    assert int(report.iterations) <= expected.iterations + 3


def test_a_bracket_without_a_change_of_sign_gives_nan():
    assert np.isnan(optimize.brentq(lambda x: x * x + 1.0, array(0.0), array(1.0)))


@pytest.mark.parametrize("name", ["brentq", "bisect"])
@pytest.mark.parametrize("width", [2.0, 0.1])
def test_a_function_that_is_nan_at_an_end_or_on_the_way_has_no_root(name: str, width: float):
    f = lambda x: rnp.where(abs(x - 0.5) < width, np.nan, x - 0.4)  # noqa: E731

    root, report = getattr(optimize, name)(f, array(0.0), array(1.0), full_output=True)

    assert np.isnan(root)
    assert not report.converged


@pytest.mark.parametrize("name", ["brentq", "bisect"])
def test_a_root_at_an_end_is_found_beside_an_infinity(name: str):
    assert getattr(optimize, name)(lambda x: x / (1.0 - x), array(0.0), array(1.0)) == 0.0
    assert getattr(optimize, name)(lambda x: (1.0 - x) / x, array(0.0), array(1.0)) == 1.0


def test_halving_reports_too_few_steps():
    _, few = optimize.bisect(lambda x: x - 0.3, array(0.0), array(1.0), maxiter=3, full_output=True)
    _, enough = optimize.bisect(lambda x: x - 0.3, array(0.0), array(1.0), full_output=True)

    assert not few.converged
    assert enough.converged


def test_newton_with_a_second_derivative_is_halleys_method():
    root, report = optimize.newton(
        lambda x: x**3 - 2.0, array(1.0), fprime=lambda x: 3.0 * x**2, fprime2=lambda x: 6.0 * x, full_output=True
    )

    near(np.cbrt(2.0), root, relative=1e-14, why="cubic convergence")
    assert int(report.iterations) <= 5


def test_golden_finds_the_minimum_of_a_function_of_one_number():
    minimiser = optimize.golden(lambda x: (x - 0.3) ** 2, brack=(array(-1.0), array(2.0)), tol=1e-7)

    near(0.3, minimiser, relative=1e-6, why="the values are flat at the minimum")


def test_a_system_of_equations_is_solved_under_jit():
    system = lambda x: rnp.stack([x[0] ** 2 + x[1] - 3.0, x[0] - x[1] ** 2 + 1.0])  # noqa: E731

    solution = rune.jit(lambda x: optimize.root(system, x, tol=1e-10))(array([1.0, 1.0]))

    assert solution.success
    near(np.zeros(2), system(solution.x), relative=1e-9, why="the tolerance")


# --- integrals --------------------------------------------------------------------------------

ENDS = [(0.0, 2.0), (0.5, np.inf), (-np.inf, 0.3), (-np.inf, np.inf), (2.0, 0.0)]


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_quad_integrates_over_finite_and_infinite_intervals(low: float, high: float):
    expected, _ = scipy.integrate.quad(lambda x: np.exp(-x * x) * np.cos(x), low, high)

    integral, error = integrate.quad(lambda x: rnp.exp(-x * x) * rnp.cos(x), array(low), array(high), limit=16)

    near(expected, integral, relative=1e-9, why="16 parts of 21 points")
    assert float(error) < 1e-6


def test_the_derivative_of_quad_is_the_integral_of_the_derivative():
    integral = lambda a: integrate.quad(lambda x: rnp.exp(-a * x), array(0.0), array(1.0))[0]  # noqa: E731
    slope = rune.grad(integral)

    near(2 / np.e - 1, slope(array(1.0)), relative=1e-12, why="smooth: exact to rounding")


# --- differential equations -------------------------------------------------------------------


def oscillator(y: Any, t: Any, a: Any) -> Any:
    return rnp.stack([y[1], -a * y[0]])


TIMES = array(np.linspace(0.0, 2.0, 5))


def test_odeint_agrees_with_the_solution_of_an_oscillator():
    path = integrate.odeint(oscillator, array([1.0, 0.0]), TIMES, array(2.0))

    near(np.cos(np.sqrt(2) * np.asarray(TIMES)), path[:, 0], relative=1e-6, why="rtol 1.4e-8")


def test_odeint_runs_backwards_in_time():
    path = integrate.odeint(oscillator, array([1.0, 0.0]), -TIMES, array(2.0))

    near(np.cos(np.sqrt(2) * np.asarray(TIMES)), path[:, 0], relative=1e-6, why="rtol 1.4e-8")


@pytest.mark.parametrize("argument", [0, 1, 2])
def test_the_adjoint_equation_agrees_with_finite_differences(argument: int):
    weights = array(np.arange(5.0)[:, None] + 1.0)
    loss = lambda *args: rnp.sum(weights * integrate.odeint(oscillator, *args) ** 2)  # noqa: E731
    args = [array([1.0, 0.5]), TIMES, array(2.0)]
    direction = np.random.default_rng(0).uniform(-1, 1, args[argument].shape)

    def loss_at(h: float) -> float:
        arguments = list(args)
        arguments[argument] = arguments[argument] + array(h * direction)
        return float(loss(*arguments))

    slopes = rune.grad(loss, argument)(*args)

    expected = (loss_at(1e-4) - loss_at(-1e-4)) / 2e-4
    near(expected, np.sum(np.asarray(slopes) * direction), relative=1e-5, why="rtol of the solver")


def test_odeint_accepts_trees_and_functions_that_close_over_values():
    def end(rate: Any) -> Any:
        slope = lambda y, t: {"u": -rate * y["u"]}  # noqa: E731
        return integrate.odeint(slope, {"u": array([1.0, 2.0])}, TIMES)["u"][-1, 1]

    near(2 * np.exp(-2.0), end(array(1.0)), relative=1e-6, why="rtol 1.4e-8")
    near(-4 * np.exp(-2.0), rune.grad(end)(array(1.0)), relative=1e-6, why="rtol 1.4e-8")


def test_odeint_works_under_jit_and_lane_by_lane():
    rates = array([1.0, 2.0, 3.0])
    solve = lambda a: integrate.odeint(lambda y, t: -a * y, array(1.0), TIMES)[-1]  # noqa: E731

    path = rune.jit(rune.vmap(solve))(rates)

    near(np.exp(-2.0 * np.asarray(rates)), path, relative=1e-6, why="rtol 1.4e-8")


def test_odeint_gives_nan_if_its_steps_do_not_suffice():
    path = integrate.odeint(oscillator, array([1.0, 0.0]), TIMES, array(2.0), mxstep=2)

    assert np.isnan(np.asarray(path)[-1]).all()


@pytest.mark.parametrize("method", ["RK45", "RK23"])
@pytest.mark.parametrize("span", [(0.0, 3.0), (3.0, 0.0)])
def test_solve_ivp_takes_scipys_steps(method: str, span: tuple[float, float]):
    expected = scipy.integrate.solve_ivp(lambda t, y: -t * y, span, [1.0, 2.0], method, dense_output=True)

    path = integrate.solve_ivp(lambda t, y: -t * y, span, array([1.0, 2.0]), method, dense_output=True)

    near(expected.t, path.t, relative=1e-10, why="the same steps, to rounding")
    near(expected.y, path.y, relative=1e-10, why="the same steps, to rounding")
    at = np.array([0.4, 1.7])
    near(expected.sol(at), path.sol(array(at)), relative=1e-10, why="the same extension")


def test_solve_ivp_gives_the_solution_at_the_requested_times():
    times = np.array([0.5, 1.0, 2.5])
    expected = scipy.integrate.solve_ivp(lambda t, y: -t * y, (0.0, 3.0), [1.0], t_eval=times)

    path = integrate.solve_ivp(lambda t, y: -t * y, (0.0, 3.0), array([1.0]), t_eval=array(times))

    near(expected.y, path.y, relative=1e-10, why="the same steps, to rounding")
