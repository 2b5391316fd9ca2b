"""JAXopt: solvers, implicit derivatives, projections, losses."""

import jax
import jax.numpy as jnp
import jaxopt
from jaxopt import loss, objective, projection, prox


def _data():
    x = jax.random.normal(jax.random.PRNGKey(0), (20, 3))
    return x, x @ jnp.array([1.0, -2.0, 0.5]) + 0.1 * jax.random.normal(jax.random.PRNGKey(1), (20,))


def _ridge(params, l2reg, data):
    x, y = data
    residuals = x @ params - y
    return jnp.mean(residuals**2) + 0.5 * l2reg * jnp.sum(params**2)


def _rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def gradient_descent():
    solver = jaxopt.GradientDescent(fun=_ridge, maxiter=100)
    params, _state = solver.run(jnp.zeros(3), l2reg=0.1, data=_data())
    return {"params": params, "value": _ridge(params, 0.1, _data())}


def limited_memory_bfgs():
    params, _ = jaxopt.LBFGS(fun=_rosenbrock, maxiter=60).run(jnp.array([-1.0, 1.5]))
    return params


def bfgs_and_nonlinear_conjugate_gradients():
    start = jnp.array([0.5, 0.5, 1.2])
    bfgs, _ = jaxopt.BFGS(fun=_ridge, maxiter=40).run(start, l2reg=0.1, data=_data())
    cg, _ = jaxopt.NonlinearCG(fun=_ridge, maxiter=40).run(start, l2reg=0.1, data=_data())
    return {"bfgs": bfgs, "cg": cg}


def derivative_of_a_solution():
    def solution(l2reg):
        solver = jaxopt.LBFGS(fun=_ridge, maxiter=100, tol=1e-5, implicit_diff=True)
        return solver.run(jnp.zeros(3), l2reg=l2reg, data=_data()).params

    return {"solution": solution(0.5), "jacobian": jax.jacobian(solution)(0.5)}


def derivative_by_unrolling():
    def solution(l2reg):
        solver = jaxopt.GradientDescent(fun=_ridge, maxiter=20, implicit_diff=False, unroll=True, stepsize=0.2)
        return solver.run(jnp.zeros(3), l2reg=l2reg, data=_data()).params.sum()

    return jax.value_and_grad(solution)(0.5)


def lasso_by_proximal_gradient():
    solver = jaxopt.ProximalGradient(fun=objective.least_squares, prox=prox.prox_lasso, maxiter=100)
    block = jaxopt.BlockCoordinateDescent(fun=objective.least_squares, block_prox=prox.prox_lasso, maxiter=60)
    return {
        "gradient": solver.run(jnp.zeros(3), hyperparams_prox=0.1, data=_data()).params,
        "block": block.run(jnp.zeros(3), hyperparams_prox=0.1, data=_data()).params,
    }


def projected_gradient():
    solver = jaxopt.ProjectedGradient(
        fun=objective.least_squares, projection=projection.projection_simplex, maxiter=100
    )
    box = jaxopt.ProjectedGradient(fun=objective.least_squares, projection=projection.projection_box, maxiter=100)
    start = jnp.ones(3) / 3
    return {
        "simplex": solver.run(start, hyperparams_proj=1.0, data=_data()).params,
        "box": box.run(start, hyperparams_proj=(-0.5, 0.5), data=_data()).params,
    }


def mirror_descent_on_the_simplex():
    gradient = jaxopt.MirrorDescent.make_projection_grad(lambda x, _: jax.nn.softmax(x), lambda x: jnp.log(x) + 1)
    solver = jaxopt.MirrorDescent(fun=objective.least_squares, projection_grad=gradient, maxiter=30, stepsize=0.1)
    return solver.run(jnp.ones(3) / 3, None, data=_data()).params


def least_squares_by_gauss_newton():
    x = jnp.linspace(0, 2, 15)
    y = 2.0 * jnp.exp(-1.3 * x)

    def residuals(params):
        return params[0] * jnp.exp(-params[1] * x) - y

    start = jnp.array([1.0, 1.0])
    newton = jaxopt.GaussNewton(residual_fun=residuals, maxiter=20).run(start).params
    marquardt = jaxopt.LevenbergMarquardt(residual_fun=residuals, maxiter=30).run(start).params
    return {"newton": newton, "marquardt": marquardt}


def fixed_points():
    def step(x, theta):
        return jnp.cos(x) * theta

    fixed = jaxopt.FixedPointIteration(fixed_point_fun=step, maxiter=100, tol=1e-6, implicit_diff=True)
    anderson = jaxopt.AndersonAcceleration(fixed_point_fun=step, maxiter=50, tol=1e-6)
    return {
        "fixed": fixed.run(jnp.array([0.5, 0.6]), 0.8).params,
        "grad": jax.grad(lambda t: fixed.run(jnp.array(0.5), t).params)(0.8),
        "anderson": anderson.run(jnp.array([0.5, 0.6]), 0.8).params,
    }


def roots():
    def f(x, a):
        return x**3 - x - a

    bisection = jaxopt.Bisection(optimality_fun=f, lower=1.0, upper=3.0, tol=1e-6)
    broyden = jaxopt.Broyden(fun=lambda x: jnp.array([x[0] ** 2 + x[1] - 3.0, x[0] - x[1] ** 2 / 4]), maxiter=40)
    return {
        "root": bisection.run(a=2.0).params,
        "grad": jax.grad(lambda a: bisection.run(a=a).params)(2.0),
        "broyden": broyden.run(jnp.array([1.5, 1.0])).params,
    }


def quadratic_programs():
    q, c = jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, 1.0])
    equality = jaxopt.EqualityConstrainedQP().run(
        params_obj=(q, c), params_eq=(jnp.array([[1.0, 1.0]]), jnp.array([1.0]))
    )
    osqp = jaxopt.BoxOSQP(maxiter=400).run(
        params_obj=(q, c), params_eq=jnp.eye(2), params_ineq=(jnp.zeros(2), jnp.ones(2))
    )
    return {"equality": equality.params.primal, "box": osqp.params.primal[0]}


def projections():
    x = jnp.array([0.5, 2.0, -1.0])
    return {
        "simplex": projection.projection_simplex(x),
        "l2": projection.projection_l2_ball(x, 1.0),
        "l1": projection.projection_l1_ball(x, 1.0),
        "box": projection.projection_box(x, (-0.5, 0.75)),
        "non_negative": projection.projection_non_negative(x),
        "hyperplane": projection.projection_hyperplane(x, (jnp.ones(3), 1.0)),
        "jacobian": jax.jacobian(projection.projection_simplex)(x),
    }


def losses():
    logits = jnp.array([0.5, 1.5, -0.3])
    return {
        "logistic": loss.binary_logistic_loss(1, 0.7),
        "multiclass": jax.value_and_grad(loss.multiclass_logistic_loss, argnums=1)(2, logits),
        "huber": loss.huber_loss(1.0, 3.0),
        "sparsemax": loss.multiclass_sparsemax_loss(1, logits),
        "perceptron": loss.multiclass_perceptron_loss(0, logits),
    }


def stochastic_solvers():
    x, y = _data()

    def fun(params, data):
        return jnp.mean((data[0] @ params - data[1]) ** 2)

    batches = [(x[i::4], y[i::4]) for i in range(4)] * 5
    armijo = jaxopt.ArmijoSGD(fun=fun, maxiter=20).run_iterator(jnp.zeros(3), iter(batches))
    polyak = jaxopt.PolyakSGD(fun=fun, maxiter=20).run_iterator(jnp.zeros(3), iter(batches))
    return {"armijo": armijo.params, "polyak": polyak.params}


def linear_solvers():
    a = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])
    b = jnp.array([1.0, 2.0, 3.0])
    names = ("solve_cg", "solve_normal_cg", "solve_gmres", "solve_bicgstab", "solve_lu", "solve_cholesky")
    return {name: getattr(jaxopt.linear_solve, name)(lambda v: a @ v, b) for name in names}
