"""Eight schools by NUTS in NumPyro, as in its README."""

import rune.as_jax  # noqa: F401  # isort: skip
import time

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import random
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


mcmc = MCMC(NUTS(eight_schools), num_warmup=500, num_samples=500, progress_bar=False)
times = []
for seed in range(3):
    start = time.process_time()
    mcmc.run(random.PRNGKey(seed), sigma, y=y)
    samples = mcmc.get_samples()
    means = float(samples["mu"].mean()), float(samples["tau"].mean())
    times.append(time.process_time() - start)
    print("means", *means)
print("first", times[0])
print("steady", min(times[1:]))
