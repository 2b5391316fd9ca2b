"""A network over sequences in Haiku, as in its quick start."""

import rune.as_jax  # noqa: F401  # isort: skip
import time

import haiku as hk
import jax
import jax.numpy as jnp
import optax


def forward(xs):
    core = hk.LSTM(32)
    outs, _ = hk.dynamic_unroll(core, xs, core.initial_state(xs.shape[1]))
    return hk.Linear(1)(outs)[..., 0]


model = hk.without_apply_rng(hk.transform(forward))
optimizer = optax.adam(1e-2)


@jax.jit
def step(params, state, xs, ys):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, xs) - ys) ** 2))(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


xs = jax.random.normal(jax.random.PRNGKey(1), (12, 32, 3))
ys = jnp.cumsum(xs.sum(-1), axis=0) / 5
params = model.init(jax.random.PRNGKey(0), xs)
state = optimizer.init(params)

times, losses = [], []
for _ in range(50):
    start = time.process_time()
    params, state, loss = step(params, state, xs, ys)
    losses.append(float(loss))
    times.append(time.process_time() - start)
print("losses", losses[0], losses[9], losses[-1])
print("first", times[0])
print("steady", sorted(times)[len(times) // 2])
