"""traceax: the trace of an operator from products with a few vectors, by each estimator."""

import jax
import jax.numpy as jnp
import lineax as lx
import traceax as tx

MATRIX = jax.random.normal(jax.random.key(0), (9, 9))
SYMMETRIC = MATRIX @ MATRIX.T
KEY = jax.random.key(1)


def quick_start_an_estimate_of_hutchinson():
    return tx.HutchinsonEstimator()(KEY, lx.MatrixLinearOperator(MATRIX), k=10)


def estimators_that_deflate():
    operator = lx.MatrixLinearOperator(MATRIX)
    estimators = {"hutch": tx.HutchPlusPlusEstimator(), "x": tx.XTraceEstimator()}
    return {name: estimator(KEY, operator, 6) for name, estimator in estimators.items()}


def estimate_of_a_definite_matrix():
    operator = lx.MatrixLinearOperator(SYMMETRIC, lx.positive_semidefinite_tag)
    return tx.XNysTraceEstimator()(KEY, operator, 6)


def vectors_of_each_sampler():
    samplers = {"normal": tx.NormalSampler(), "signs": tx.RademacherSampler(), "sphere": tx.SphereSampler()}
    return {name: sampler(KEY, 5, 3) for name, sampler in samplers.items()}


def estimates_with_each_sampler():
    operator = lx.MatrixLinearOperator(SYMMETRIC)
    samplers = {"normal": tx.NormalSampler(), "signs": tx.RademacherSampler(), "sphere": tx.SphereSampler()}
    return {name: tx.HutchinsonEstimator(sampler)(KEY, operator, 8)[0] for name, sampler in samplers.items()}


def slope_of_an_estimate():
    def trace(scale):
        operator = lx.FunctionLinearOperator(
            lambda v: jnp.tanh(scale * MATRIX) @ v, jax.ShapeDtypeStruct((9,), "float32")
        )
        return tx.HutchinsonEstimator(tx.NormalSampler())(KEY, operator, 4)[0]

    return jax.value_and_grad(jax.jit(trace))(0.5)
