"""OTT-JAX: transport between point clouds, gradients, barycentres, soft sorting."""

import jax
import jax.numpy as jnp
from ott.geometry import costs, geometry, pointcloud
from ott.problems.linear import barycenter_problem, linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import discrete_barycenter, sinkhorn
from ott.solvers.linear import implicit_differentiation as imp_diff
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import sinkhorn_divergence, soft_sort

X = jax.random.normal(jax.random.key(0), (13, 2))
Y = jax.random.normal(jax.random.key(1), (17, 2)) + 1.0
RIDGES = {"solver_kwargs": {"ridge_identity": 1e-3, "ridge_kernel": 1e-3}}


def _transport(geom, **options):
    return sinkhorn.Sinkhorn(**options)(linear_problem.LinearProblem(geom))


def transport_between_point_clouds():
    out = jax.jit(_transport)(pointcloud.PointCloud(X, Y, epsilon=0.1))
    return {"cost": out.reg_ot_cost, "matrix": out.matrix, "f": out.f, "g": out.g, "converged": out.converged}


def points_follow_the_gradient_of_the_cost():
    def cost(x):
        return _transport(pointcloud.PointCloud(x, Y, epsilon=0.1)).reg_ot_cost

    x = X
    for _ in range(3):
        x = x - jax.grad(cost)(x)
    return {"points": x, "cost": cost(x)}


def slopes_of_a_plan_through_its_steps_and_by_the_implicit_function():
    ways = {"unrolled": {"implicit_diff": None}, "implicit": {"implicit_diff": imp_diff.ImplicitDiff(**RIDGES)}}

    def spread(x, options):
        return jnp.sum(_transport(pointcloud.PointCloud(x, Y, epsilon=0.5), **options).matrix ** 2)

    return {name: jax.grad(spread)(X, options) for name, options in ways.items()}


def costs_of_other_kinds():
    kinds = {"cosine": costs.Cosine(), "p": costs.PNormP(1.5), "euclidean": costs.Euclidean()}
    return {n: _transport(pointcloud.PointCloud(X, Y, cost_fn=c, epsilon=0.2)).reg_ot_cost for n, c in kinds.items()}


def transport_of_a_cost_matrix_between_uneven_weights():
    cost = jnp.abs(jnp.arange(5.0)[:, None] - jnp.arange(4.0)) ** 2
    a, b = jnp.array([0.1, 0.2, 0.3, 0.2, 0.2]), jnp.array([0.4, 0.3, 0.2, 0.1])
    prob = linear_problem.LinearProblem(geometry.Geometry(cost_matrix=cost, epsilon=0.1), a=a, b=b, tau_a=0.9)
    out = sinkhorn.Sinkhorn(lse_mode=False, max_iterations=500)(prob)
    return {"matrix": out.matrix, "cost": out.reg_ot_cost}


def divergence_of_sinkhorn():
    def divergence(x):
        return sinkhorn_divergence.sinkhorn_divergence(pointcloud.PointCloud, x, Y, epsilon=0.3)[0]

    value, gradient = jax.value_and_grad(divergence)(X)
    return {"value": value, "gradient": gradient}


def distance_of_gromov_and_wasserstein():
    z = jax.random.normal(jax.random.key(2), (9, 3))
    prob = quadratic_problem.QuadraticProblem(pointcloud.PointCloud(X), pointcloud.PointCloud(z))
    solver = gromov_wasserstein.GromovWasserstein(epsilon=1.0, linear_solver=sinkhorn.Sinkhorn(), max_iterations=20)
    out = solver(prob)
    return {"cost": out.reg_gw_cost, "matrix": out.matrix}


def barycentre_of_histograms():
    geom = geometry.Geometry(cost_matrix=(jnp.arange(7.0)[:, None] - jnp.arange(7.0)) ** 2, epsilon=0.5)
    a = jnp.array([[0.6, 0.3, 0.1, 0, 0, 0, 0], [0, 0, 0, 0, 0.2, 0.3, 0.5]])
    solver = discrete_barycenter.FixedBarycenter()
    return solver(barycenter_problem.FixedBarycenterProblem(geom, a)).histogram


def ranks_quantiles_and_sorts_that_are_smooth():
    x = jnp.array([2.0, -1.0, 0.5, 3.5, 1.0])
    return {
        "sort": soft_sort.sort(x, epsilon=0.01),
        "ranks": soft_sort.ranks(x, epsilon=0.05),
        "quantile": soft_sort.quantile(x, q=jnp.array([0.3, 0.7])),
    }
