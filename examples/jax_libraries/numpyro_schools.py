"""Eight schools by NUTS in NumPyro, as in its README.

A line for each number: mean, its Monte Carlo error, mean square and its error, R-hat, and the
effective number of draws, of four chains.
"""

import rune.as_jax  # noqa: F401  # isort: skip
import time

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import random
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS
from numpyro.infer.reparam import LocScaleReparam

y = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
sigma = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)})
def eight_schools(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("J", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


mcmc = MCMC(NUTS(eight_schools), num_warmup=500, num_samples=1000, progress_bar=False)
times, chains = [], []
for seed in range(4):
    start = time.process_time()
    mcmc.run(random.PRNGKey(seed), sigma, y=y)
    draws = mcmc.get_samples()
    jnp.mean(draws["theta"]).item()
    times.append(time.process_time() - start)
    chains.append({"mu": draws["mu"], "log_tau": jnp.log(draws["tau"]), "theta": draws["theta"]})
draws = {name: np.stack([np.asarray(chain[name]) for chain in chains]) for name in chains[0]}


def mean_and_error(values):
    """The mean of all chains, and its Monte Carlo error: that of as many independent draws."""
    size = effective_sample_size(values)
    return values.mean((0, 1)), values.std((0, 1)) / np.sqrt(size), size


for name, values in draws.items():
    mean, error, size = mean_and_error(values)
    square, square_error, _ = mean_and_error(values**2)
    table = np.stack([mean, error, square, square_error, split_gelman_rubin(values), size])
    for number, row in enumerate(table.reshape(6, -1).T):
        print(f"{name}[{number}]", *(f"{x:.4f}" for x in row))
print("first", times[0])
print("steady", min(times[1:]))
