"""Distrax: distributions, bijectors, mixtures, hidden Markov models, TFP's beside them."""

import distrax
import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfd = tfp.distributions
KEY = 1234
MATRIX = jnp.array([[2.0, 0.5], [0.5, 1.0]])


def multivariate_normal_of_the_quick_start():
    dist = distrax.MultivariateNormalDiag(jnp.array([-1.0, 0.0, 1.0]), jnp.array([0.1, 0.2, 0.3]))
    samples = dist.sample(seed=jax.random.PRNGKey(KEY), sample_shape=(4,))
    return {"samples": samples, "log_prob": dist.log_prob(samples), "entropy": dist.entropy()}


def divergence_from_a_distribution_of_tfp():
    first = distrax.MultivariateNormalDiag(jnp.array([-1.0, 0.0, 1.0]), jnp.array([0.1, 0.2, 0.3]))
    second = tfd.MultivariateNormalDiag(jnp.array([1.0, 2.0, 3.0]), 10 * jnp.ones(3))
    return {"there": first.kl_divergence(second), "back": tfd.kl_divergence(second, distrax.to_tfp(first))}


def distributions_under_transformations():
    def loss(loc, scale):
        dist = distrax.Normal(loc, scale)
        x, log_prob = dist.sample_and_log_prob(seed=jax.random.PRNGKey(0), sample_shape=(8,))
        return jnp.mean(x**2 + log_prob)

    grads = jax.jit(jax.grad(loss, argnums=(0, 1)))(0.5, 2.0)
    batch = jax.vmap(lambda m: distrax.Normal(m, 1.0).log_prob(0.3))(jnp.arange(3.0))
    return {"grads": grads, "batch": batch}


def distributions_are_trees():
    dist = distrax.Normal(jnp.zeros(2), jnp.ones(2))
    shifted = jax.tree_util.tree_map(lambda x: x + 1.0, dist)
    return {"log_prob": jax.jit(lambda d, x: d.log_prob(x))(shifted, jnp.array([0.5, 1.5])), "mean": shifted.mean()}


def discrete_distributions():
    categorical = distrax.Categorical(logits=jnp.array([0.1, 0.5, -0.3]))
    key = jax.random.PRNGKey(KEY)
    return {
        "categorical": categorical.sample(seed=key, sample_shape=(5,)),
        "log_prob": categorical.log_prob(jnp.array([0, 2])),
        "entropy": categorical.entropy(),
        "bernoulli": distrax.Bernoulli(probs=0.3).sample(seed=key, sample_shape=(5,)),
        "epsilon": distrax.EpsilonGreedy(jnp.array([1.0, 3.0, 2.0]), 0.1).probs,
        "multinomial": distrax.Multinomial(4, probs=jnp.array([0.2, 0.3, 0.5])).log_prob(jnp.array([1.0, 1.0, 2.0])),
        "one_hot": distrax.OneHotCategorical(probs=jnp.array([0.2, 0.3, 0.5])).sample(seed=key),
        "greedy": distrax.Greedy(jnp.array([1.0, 3.0, 3.0])).probs,
    }


def continuous_distributions():
    x = jnp.array([0.2, 0.7])
    table = {
        "beta": distrax.Beta(2.0, 3.0),
        "gamma": distrax.Gamma(2.0, 3.0),
        "gumbel": distrax.Gumbel(0.0, 1.0),
        "laplace": distrax.Laplace(0.0, 1.0),
        "log_normal": distrax.LogStddevNormal(0.0, 0.3),
        "logistic": distrax.Logistic(0.0, 1.0),
        "uniform": distrax.Uniform(0.0, 2.0),
        "mises": distrax.VonMises(0.1, 2.0),
    }
    return {name: {"log_prob": d.log_prob(x), "mean": d.mean()} for name, d in table.items()}


def full_covariances():
    full = distrax.MultivariateNormalFullCovariance(jnp.zeros(2), MATRIX)
    tri = distrax.MultivariateNormalTri(jnp.zeros(2), jnp.linalg.cholesky(MATRIX))
    samples = full.sample(seed=jax.random.PRNGKey(KEY), sample_shape=(3,))
    return {"samples": samples, "full": full.log_prob(samples), "tri": tri.log_prob(samples), "cov": full.covariance()}


def transformed_by_bijectors():
    chain = distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(shift=0.5, scale=2.0)])
    dist = distrax.Transformed(distrax.Normal(0.0, 1.0), chain)
    samples, log_prob = dist.sample_and_log_prob(seed=jax.random.PRNGKey(KEY), sample_shape=(4,))
    y, log_det = chain.forward_and_log_det(jnp.array([0.1, -0.2]))
    x, inverse = chain.inverse_and_log_det(y)
    return {"samples": samples, "log_prob": log_prob, "y": y, "det": log_det, "x": x, "inverse": inverse}


def bijector_of_a_function():
    bijector = distrax.Lambda(lambda x: jnp.log(x * 2.0 + 1.0))
    y, log_det = bijector.forward_and_log_det(jnp.array([0.1, 2.0]))
    return {"y": y, "log_det": log_det, "x": bijector.inverse(y)}


def affine_and_coupling_flows():
    mask = jnp.array([True, False, True, False])

    def bijector(params):
        return distrax.ScalarAffine(shift=params[..., 0], scale=jnp.exp(params[..., 1]))

    def conditioner(x):
        return jnp.stack([jnp.sin(x), 0.1 * x], axis=-1)

    coupling = distrax.MaskedCoupling(mask=mask, bijector=bijector, conditioner=conditioner)
    y, log_det = coupling.forward_and_log_det(jnp.arange(4.0) / 3)
    triangular = distrax.UnconstrainedAffine(MATRIX, jnp.array([0.5, 1.0]))
    z, det = triangular.forward_and_log_det(jnp.array([1.0, -1.0]))
    return {"y": y, "log_det": log_det, "x": coupling.inverse(y), "z": z, "det": det}


def rational_quadratic_spline():
    params = jax.random.normal(jax.random.PRNGKey(0), (3, 3 * 4 + 1))
    spline = distrax.RationalQuadraticSpline(params, range_min=0.0, range_max=1.0)
    y, log_det = spline.forward_and_log_det(jnp.array([0.2, 0.5, 0.9]))
    return {"y": y, "log_det": log_det, "x": spline.inverse(y)}


def mixtures():
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(logits=jnp.zeros(3)),
        distrax.MultivariateNormalDiag(jnp.array([[-1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]), jnp.ones((3, 2))),
    )
    two = distrax.MixtureOfTwo(0.3, distrax.Normal(0.0, 1.0), distrax.Normal(5.0, 1.0))
    x = mixture.sample(seed=jax.random.PRNGKey(KEY), sample_shape=(4,))
    return {"x": x, "log_prob": mixture.log_prob(x), "mean": mixture.mean(), "two": two.log_prob(jnp.array([0.0, 4.0]))}


def hidden_markov_model():
    model = distrax.HMM(
        init_dist=distrax.Categorical(probs=jnp.array([0.6, 0.4])),
        trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        obs_dist=distrax.Normal(jnp.array([0.0, 3.0]), jnp.array([1.0, 1.0])),
    )
    states, observations = model.sample(seed=jax.random.PRNGKey(KEY), seq_len=6)
    _alphas, _betas, marginals, log_prob = model.forward_backward(observations)
    return {
        "states": states,
        "obs": observations,
        "marginals": marginals,
        "log_prob": log_prob,
        "path": model.viterbi(observations),
    }


def metadistributions_of_tfp():
    independent = distrax.Independent(tfd.Normal(jnp.zeros(3), jnp.ones(3)), reinterpreted_batch_ndims=1)
    sampled = tfd.Sample(distrax.to_tfp(distrax.Normal(0.0, 1.0)), sample_shape=[3])
    x = sampled.sample(seed=jax.random.PRNGKey(KEY))
    return {"x": x, "sampled": sampled.log_prob(x), "independent": independent.log_prob(x)}


def quantised_and_squashed():
    quantised = distrax.Quantized(distrax.Normal(0.0, 2.0), low=-3, high=3)
    block = distrax.Block(distrax.Tanh(), 1)
    diag = distrax.DiagLinear(jnp.array([2.0, 3.0]))
    return {
        "quantised": quantised.log_prob(jnp.array([-1.0, 2.0])),
        "block": block.forward_and_log_det(jnp.array([0.1, 0.2])),
        "inverse": distrax.Inverse(diag).forward_and_log_det(jnp.array([1.0, 1.0])),
    }
