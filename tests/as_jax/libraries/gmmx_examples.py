"""gmmx: mixtures of normal distributions, fitted by expectation and maximisation."""

import jax
import jax.numpy as jnp
from gmmx import EMFitter, GaussianMixtureModelJax


def _model(covariances="full"):
    key = jax.random.key(0)
    means = 3.0 * jax.random.normal(key, (3, 2))
    factors = 0.5 * jnp.eye(2) + 0.2 * jax.random.normal(jax.random.key(1), (3, 2, 2))
    return GaussianMixtureModelJax.from_squeezed(
        means, factors @ jnp.swapaxes(factors, 1, 2), jnp.array([0.2, 0.5, 0.3])
    )


def samples_of_the_readme():
    model = GaussianMixtureModelJax.create(n_components=5, n_features=3)
    return model.sample(jax.random.key(2), 40)


def probabilities_and_labels():
    model, x = _model(), jax.random.normal(jax.random.key(3), (31, 2)) * 2.0
    return {"log": model.log_prob(x), "share": model.predict_proba(x), "label": model.predict(x), "bic": model.bic(x)}


def a_fit():
    model = _model()
    result = EMFitter(tol=1e-3, max_iter=20).fit(x=model.sample(jax.random.key(4), 300), gmm=model)
    return result.n_iter, result.log_likelihood, result.gmm.means, result.gmm.weights


def slopes_by_the_points():
    model, x = _model(), jax.random.normal(jax.random.key(5), (17, 2))
    return jax.grad(lambda x: jnp.sum(model.log_prob(x)))(x)
