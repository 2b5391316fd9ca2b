"""Dynamax: hidden Markov models and linear Gaussian models, filtered, smoothed and fitted."""

import jax
import jax.numpy as jnp
import jax.random as jr
from dynamax.hidden_markov_model import CategoricalHMM, GaussianHMM, hmm_posterior_mode
from dynamax.linear_gaussian_ssm import LinearGaussianSSM, lgssm_smoother, parallel_lgssm_smoother


def _observations(steps):
    t = jnp.arange(steps)
    return jnp.stack([jnp.sin(0.7 * t), jnp.cos(1.3 * t) + 0.1 * t], axis=-1)


def _gaussian_hmm():
    model = GaussianHMM(3, 2)
    return model, *model.initialize(jr.key(0))


def _lgssm():
    model = LinearGaussianSSM(3, 2)
    return model, *model.initialize(jr.key(1))


def sample_of_a_categorical_hmm():
    model = CategoricalHMM(2, 1, 4)
    params, _ = model.initialize(jr.key(2))
    return model.sample(params, jr.key(3), num_timesteps=11)


def posterior_of_a_gaussian_hmm():
    model, params, _ = _gaussian_hmm()
    posterior = model.smoother(params, _observations(13))
    return posterior.marginal_loglik, posterior.smoothed_probs


def most_likely_states():
    return hmm_posterior_mode(
        jnp.array([0.6, 0.4]), jnp.array([[0.9, 0.1], [0.3, 0.7]]), jnp.log(jax.nn.softmax(_observations(9)))
    )


def expectation_maximisation():
    model, params, properties = _gaussian_hmm()
    return model.fit_em(params, properties, _observations(31), num_iters=3, verbose=False)[1]


def gradient_descent():
    model, params, properties = _gaussian_hmm()
    return model.fit_sgd(params, properties, _observations(17), num_epochs=3, key=jr.key(4))[1]


def slope_of_a_likelihood():
    model, params, _ = _lgssm()
    return jax.grad(model.marginal_log_prob)(params, _observations(11)).dynamics.weights


def kalman_smoother_in_turn_and_in_parallel():
    _, params, _ = _lgssm()
    serial = lgssm_smoother(params, _observations(11))
    parallel = parallel_lgssm_smoother(params, _observations(11))
    return serial.smoothed_means, parallel.smoothed_means, parallel.marginal_loglik
