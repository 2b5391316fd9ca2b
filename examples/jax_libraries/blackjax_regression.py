"""A location and a scale by NUTS in BlackJAX, as in its quick start."""

import rune.as_jax  # noqa: F401  # isort: skip
import time

import blackjax
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats

observed = 10.0 + 20.0 * jax.random.normal(jax.random.key(0), (1000,))


def logdensity(x):
    scale = jnp.exp(x["log_scale"])
    return jnp.sum(stats.norm.logpdf(observed, x["loc"], scale)) + x["log_scale"]


nuts = blackjax.nuts(logdensity, 1e-3, jnp.array([0.5, 0.01]))


@jax.jit
def inference(key, state):
    def one_step(state, key):
        state, _ = nuts.step(key, state)
        return state, state.position

    return jax.lax.scan(one_step, state, jax.random.split(key, 200))


state = nuts.init({"loc": 1.0, "log_scale": 1.0})
times = []
for seed in range(4):
    start = time.process_time()
    state, positions = inference(jax.random.key(seed), state)
    means = float(positions["loc"].mean()), float(positions["log_scale"].mean())
    times.append(time.process_time() - start)
    print("means", *means)
print("first", times[0])
print("steady", min(times[1:]))
