"""Matfree: decompositions, traces, determinants and least squares from products with vectors."""

import jax
import jax.numpy as jnp
from matfree import decomp, eig, funm, lstsq, stochtrace

KEY = jax.random.key(0)
MATRIX = jax.random.normal(KEY, (9, 9))
DEFINITE = MATRIX @ MATRIX.T + 2 * jnp.eye(9)
START = jnp.ones(9) / 3


def _matvec(v, matrix):
    return matrix @ v


def quick_start_a_trace():
    sampler = stochtrace.sampler_signs(jnp.ones(9), num=40)
    estimate = stochtrace.estimator_monte_carlo(stochtrace.monte_carlo_trace(), sampler)
    return jax.jit(lambda m: estimate(lambda v: m @ v, KEY))(MATRIX)


def diagonals_and_norms():
    sampler = stochtrace.sampler_normal(jnp.ones(9), num=40)
    integrands = {
        "diagonal": stochtrace.monte_carlo_diagonal(),
        "frobenius": stochtrace.monte_carlo_frobeniusnorm_squared(),
    }
    return {
        name: stochtrace.estimator_monte_carlo(f, sampler)(lambda v: MATRIX @ v, KEY) for name, f in integrands.items()
    }


def a_determinant_and_its_slope():
    problem = funm.monte_carlo_funm_sym_logdet(decomp.tridiag_sym(5))
    sampler = stochtrace.sampler_normal(jnp.ones(9), num=10)
    estimate = stochtrace.estimator_monte_carlo(problem, sampler)

    def logdet(scale):
        return estimate(lambda v: DEFINITE @ v * scale, KEY)

    return jax.value_and_grad(logdet)(1.3)


def decompositions_of_krylov():
    tridiagonal = decomp.tridiag_sym(4, reortho="full")(lambda v: DEFINITE @ v, START)
    upper = decomp.hessenberg(4, reortho="full")(lambda v: MATRIX @ v, START)
    both = decomp.bidiag(4)(lambda v: MATRIX[:, :7] @ v, jnp.ones(7) / 7**0.5)
    return {
        "tridiagonal": jnp.abs(tridiagonal.J_small),
        "residual": jnp.linalg.norm(tridiagonal.residual),
        "hessenberg": upper.J_small,
        "bidiagonal": both.J_small,
    }


def slopes_of_a_decomposition():
    def entry(matrix):
        return jnp.sum(decomp.hessenberg(3, reortho="full")(lambda v, m: m @ v, START, matrix).J_small ** 2)

    return jax.grad(entry)(MATRIX)


def parts_of_the_spectrum():
    values, _ = eig.eigh_partial(decomp.tridiag_sym(6))(lambda v: DEFINITE @ v, START)
    _, singular, _ = eig.svd_partial(decomp.bidiag(5))(lambda v: MATRIX @ v, START)
    return {"eigenvalues": values, "singular": singular}


def functions_of_matrices():
    lanczos = funm.funm_lanczos_sym(funm.dense_funm_sym_eigh(jnp.sqrt), decomp.tridiag_sym(6))
    arnoldi = funm.funm_arnoldi(funm.dense_funm_pade_exp(), decomp.hessenberg(6, reortho="full"))
    return {"root": lanczos(lambda v: DEFINITE @ v, START), "exponential": arnoldi(lambda v: 0.3 * MATRIX @ v, START)}


def least_squares():
    tall, b = MATRIX[:, :4], jnp.arange(9.0)
    solve = lstsq.lsmr(atol=1e-5, btol=1e-5)
    x, _ = solve(lambda v: tall.T @ v, b)
    return {"x": x}
