"""distreqx: distributions and bijectors as modules of Equinox."""

import equinox as eqx
import jax
import jax.numpy as jnp
from distreqx import bijectors as b
from distreqx import distributions as d

KEY = jax.random.key(0)
COVARIANCE = jnp.array([[2.0, 0.5], [0.5, 1.0]])


def a_normal_of_many_dimensions():
    normal = d.MultivariateNormalDiag(jnp.array([-1.0, 0.0, 1.0]), jnp.array([0.1, 0.2, 0.3]))
    x = normal.sample(KEY)
    return {"x": x, "log_prob": normal.log_prob(x), "entropy": normal.entropy(), "mode": normal.mode()}


def continuous_distributions():
    table = {
        "normal": d.Normal(jnp.array(0.3), jnp.array(1.2)),
        "beta": d.Beta(jnp.array(2.0), jnp.array(3.0)),
        "gamma": d.Gamma(jnp.array(2.0), jnp.array(1.5)),
        "logistic": d.Logistic(jnp.array(0.1), jnp.array(0.7)),
        "uniform": d.Uniform(jnp.array(0.0), jnp.array(2.0)),
    }
    return {n: {"x": p.sample(KEY), "log": p.log_prob(jnp.array(0.4)), "mean": p.mean()} for n, p in table.items()}


def discrete_distributions():
    table = {
        "bernoulli": d.Bernoulli(probs=jnp.array(0.3)),
        "categorical": d.Categorical(logits=jnp.array([0.1, 0.5, -0.3])),
        "one_hot": d.OneHotCategorical(probs=jnp.array([0.2, 0.3, 0.5])),
    }
    return {n: {"x": p.sample(KEY), "entropy": p.entropy(), "mode": p.mode()} for n, p in table.items()}


def transformed_by_bijectors():
    chain = b.Chain([b.Tanh(), b.ScalarAffine(shift=jnp.array(0.5), scale=jnp.array(2.0))])
    transformed = d.Transformed(d.Normal(jnp.array(0.0), jnp.array(1.0)), chain)
    x, log_prob = transformed.sample_and_log_prob(KEY)
    return {"x": x, "log_prob": log_prob, "again": transformed.log_prob(x)}


def bijectors():
    x = jnp.array([0.3, -0.6])
    table = {
        "sigmoid": b.Block(b.Sigmoid(), 1),
        "triangular": b.TriangularLinear(COVARIANCE),
        "affine": b.UnconstrainedAffine(COVARIANCE, jnp.array([0.5, 1.0])),
        "diagonal": b.DiagLinear(jnp.array([2.0, -0.5])),
    }
    return {n: [f.forward_and_log_det(x), f.inverse_and_log_det(f.forward(x))] for n, f in table.items()}


def covariances_and_divergences():
    full = d.MultivariateNormalFullCovariance(jnp.zeros(2), COVARIANCE)
    tri = d.MultivariateNormalTri(jnp.ones(2), jnp.linalg.cholesky(COVARIANCE))
    return {"sample": full.sample(KEY), "log": tri.log_prob(jnp.ones(2)), "kl": full.kl_divergence(tri)}


def a_mixture_is_fitted():
    def mixture(p):
        parts = eqx.filter_vmap(d.MultivariateNormalDiag)(p["loc"], jnp.exp(p["scale"]))
        return d.MixtureSameFamily(d.Categorical(logits=p["logits"]), parts)

    x = jax.random.normal(KEY, (20, 2)) + jnp.where(jnp.arange(20) % 2 == 0, 2.0, -2.0)[:, None]

    @jax.jit
    @jax.grad
    def slope(p):
        return -jnp.mean(jax.vmap(mixture(p).log_prob)(x))

    p = {"loc": jnp.array([[1.0, 1.0], [-1.0, -1.0]]), "scale": jnp.zeros((2, 2)), "logits": jnp.zeros(2)}
    for _ in range(4):
        p = jax.tree_util.tree_map(lambda v, g: v - 0.1 * g, p, slope(p))
    return p


def a_batch_of_distributions():
    normals = eqx.filter_vmap(d.Normal)(jnp.arange(3.0), jnp.ones(3))
    return eqx.filter_vmap(lambda n, x: n.log_prob(x))(normals, jnp.array([0.5, 1.0, 4.0]))
