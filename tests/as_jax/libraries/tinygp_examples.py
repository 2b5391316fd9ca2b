"""tinygp: Gaussian processes, their kernels, fits, and those of linear cost."""

import jax
import jax.numpy as jnp
import tinygp
from tinygp import GaussianProcess, kernels, transforms
from tinygp.kernels import quasisep

X = jnp.sort(jax.random.uniform(jax.random.key(0), (31,), minval=0.0, maxval=5.0))
Y = jnp.sin(X) + 0.1 * jax.random.normal(jax.random.key(1), (31,))
AT = jnp.linspace(0.0, 5.0, 7)


def _process(p, x=X):
    kernel = jnp.exp(p["amplitude"]) * kernels.ExpSquared(jnp.exp(p["scale"])) + 0.1 * kernels.Matern32(1.3)
    return GaussianProcess(kernel, x, diag=jnp.exp(p["noise"]), mean=p["mean"])


_P = {"amplitude": jnp.array(0.0), "scale": jnp.array(0.2), "noise": jnp.array(-2.0), "mean": jnp.array(0.1)}


def quick_start_a_fit_by_gradients():
    loss = jax.jit(jax.value_and_grad(lambda p: -_process(p).log_probability(Y)))
    p, values = _P, []
    for _ in range(5):
        value, slope = loss(p)
        p = jax.tree_util.tree_map(lambda x, g: x - 0.01 * g, p, slope)
        values.append(value)
    return {"p": p, "values": values}


def conditioned_on_data():
    log_probability, process = _process(_P).condition(Y, AT)
    return {"log": log_probability, "mean": process.loc, "variance": process.variance, "cov": process.covariance}


def samples_of_prior_and_posterior():
    prior = _process(_P, AT)
    posterior = _process(_P).condition(Y, AT, diag=1e-3).gp
    key = jax.random.key(2)
    return {"prior": prior.sample(key, shape=(2,)), "posterior": posterior.sample(key)}


def kernels_of_every_kind():
    table = {
        "exp": kernels.Exp(1.2),
        "squared": kernels.ExpSquared(0.7),
        "matern52": kernels.Matern52(1.1),
        "cosine": kernels.Cosine(2.0),
        "sine": kernels.ExpSineSquared(scale=1.5, gamma=0.6),
        "rational": kernels.RationalQuadratic(alpha=1.3),
        "product": kernels.Matern32(1.0) * kernels.Constant(2.0) + kernels.Constant(0.1),
    }
    return {name: kernel(AT, AT[:3]) for name, kernel in table.items()}


def kernels_of_several_inputs():
    x = jax.random.normal(jax.random.key(3), (9, 3))
    kernel = transforms.Linear(jnp.array([0.5, 1.0, 2.0]), kernels.ExpSquared()) + transforms.Subspace(
        1, kernels.Matern32()
    )
    process = GaussianProcess(kernel, x, diag=0.1)
    polynomial = kernels.Polynomial(order=2, scale=1.5, sigma=0.5) + kernels.DotProduct()
    return {"kernel": kernel(x, x), "log": process.log_probability(x[:, 0] * x[:, 1]), "dot": polynomial(x, x)}


def a_kernel_of_ones_own():
    class Spectral(kernels.Kernel):
        weight: jax.Array
        freq: jax.Array

        def evaluate(self, a, b):
            tau = jnp.abs(a - b)[..., None]
            return jnp.sum(self.weight * jnp.exp(-2 * tau**2) * jnp.cos(2 * jnp.pi * self.freq * tau))

    def loss(weight):
        kernel = Spectral(weight, jnp.array([0.2, 0.7]))
        return GaussianProcess(kernel, X, diag=0.1).log_probability(Y)

    return jax.value_and_grad(loss)(jnp.array([1.0, 0.4]))


def processes_of_linear_cost():
    kernel = quasisep.Matern32(scale=1.2) + quasisep.SHO(omega=1.5, quality=0.8, sigma=0.7)
    process = GaussianProcess(kernel, X, diag=0.1)
    posterior = process.condition(Y, AT).gp
    return {"log": process.log_probability(Y), "mean": posterior.loc, "variance": posterior.variance}


def slopes_of_processes_of_linear_cost():
    def log_probability(p):
        kernel = quasisep.Celerite(a=1.1, b=p["b"], c=0.5, d=1.7) + quasisep.Matern52(scale=p["scale"])
        return GaussianProcess(kernel, X, diag=0.2).log_probability(Y)

    return jax.jit(jax.value_and_grad(log_probability))({"b": jnp.array(0.1), "scale": jnp.array(1.4)})


def noise_that_is_correlated():
    noise = tinygp.noise.Dense(0.1 * jnp.eye(31) + 0.01)
    return GaussianProcess(kernels.Matern32(1.5), X, noise=noise).log_probability(Y)
