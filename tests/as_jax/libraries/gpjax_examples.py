"""GPJax: Gaussian processes, their fits, sparse and classifying ones."""

import gpjax as gpx
import jax
import jax.numpy as jnp
import optax as ox

X = jnp.linspace(-2.0, 2.0, 25).reshape(-1, 1)
Y = jnp.sin(3 * X) + 0.1 * jax.random.normal(jax.random.key(0), X.shape)
DATA = gpx.Dataset(X=X, y=Y)
AT = jnp.linspace(-2.0, 2.0, 5).reshape(-1, 1)


def _prior(kernel=None):
    return gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=kernel or gpx.kernels.RBF())


def _moments(distribution):
    return {"mean": distribution.mean, "covariance": distribution.covariance()}


def prediction_from_data():
    posterior = _prior() * gpx.likelihoods.Gaussian()
    return _moments(posterior.predict(AT, train_data=DATA))


def marginal_likelihood_and_its_fit():
    posterior = _prior(gpx.kernels.Matern32()) * gpx.likelihoods.Gaussian()
    loss = lambda p, d: -gpx.objectives.conjugate_mll(p, d)  # noqa: E731
    fitted, history = gpx.fit(
        model=posterior, objective=loss, train_data=DATA, optim=ox.adam(0.05), num_iters=6,
        key=jax.random.key(1), verbose=False,
    )  # fmt: skip
    return {"history": history, **_moments(fitted.predict(AT, train_data=DATA))}


def kernels():
    table = {
        "rbf": gpx.kernels.RBF(lengthscale=0.7),
        "matern12": gpx.kernels.Matern12(),
        "matern52": gpx.kernels.Matern52(variance=1.5),
        "periodic": gpx.kernels.Periodic(period=1.3),
        "polynomial": gpx.kernels.Polynomial(degree=2),
        "linear": gpx.kernels.Linear(),
        "white": gpx.kernels.White(),
        "sum": gpx.kernels.RBF() + gpx.kernels.Linear(),
    }
    return {name: kernel.cross_covariance(AT, X[:3]) for name, kernel in table.items()}


def samples_of_the_prior():
    return _prior(gpx.kernels.Matern52()).predict(AT).sample(jax.random.key(2), sample_shape=(3,))


def objectives():
    posterior = _prior() * gpx.likelihoods.Gaussian(obs_stddev=0.3)
    return {
        "marginal": jax.value_and_grad(lambda s: gpx.objectives.conjugate_mll(_scaled(s), DATA))(0.8),
        "left_out": gpx.objectives.conjugate_loocv(posterior, DATA),
    }


def _scaled(scale):
    return _prior(gpx.kernels.RBF(lengthscale=scale)) * gpx.likelihoods.Gaussian(obs_stddev=0.3)


def a_sparse_process():
    posterior = _prior() * gpx.likelihoods.Gaussian()
    family = gpx.variational_families.CollapsedVariationalGaussian(posterior, inducing_inputs=X[::6])
    elbo = gpx.objectives.collapsed_elbo(family, DATA)
    return {"elbo": elbo, **_moments(family.predict(AT, DATA))}


def a_classifier():
    data = gpx.Dataset(X=X, y=(Y > 0).astype(jnp.float32))
    posterior = _prior() * gpx.likelihoods.Bernoulli()
    family = gpx.variational_families.VariationalGaussian(posterior, inducing_inputs=X[::5])
    fitted, history = gpx.fit(
        model=family, objective=lambda p, d: -gpx.objectives.elbo(p, d), train_data=data, optim=ox.adam(0.05),
        num_iters=4, key=jax.random.key(3), verbose=False,
    )  # fmt: skip
    return {"history": history, "mean": fitted.predict(AT).mean}
