"""Spirals told apart by a recurrent network in Equinox, trained with Optax: its first example."""

import rune.as_jax  # noqa: F401  # isort: skip
import math
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Classifier(eqx.Module):
    cell: eqx.nn.GRUCell
    linear: eqx.nn.Linear
    bias: jax.Array
    hidden_size: int = eqx.field(static=True)

    def __init__(self, hidden_size, *, key):
        cell_key, linear_key = jax.random.split(key)
        self.hidden_size = hidden_size
        self.cell = eqx.nn.GRUCell(2, hidden_size, key=cell_key)
        self.linear = eqx.nn.Linear(hidden_size, 1, use_bias=False, key=linear_key)
        self.bias = jnp.zeros(1)

    def __call__(self, path):
        def step(hidden, point):
            return self.cell(point, hidden), None

        hidden, _ = jax.lax.scan(step, jnp.zeros(self.hidden_size), path)
        return jax.nn.sigmoid(self.linear(hidden) + self.bias)


def spirals(size, *, key):
    t = jnp.linspace(0, 2 * math.pi, 16)
    angles = t + jax.random.uniform(key, (size, 1), maxval=2 * math.pi)
    x, y = jnp.sin(angles) / (1 + t), jnp.cos(angles) / (1 + t)
    paths = jnp.stack([x.at[: size // 2].multiply(-1), y], axis=-1)
    return paths, jnp.ones((size, 1)).at[: size // 2].set(0)


@eqx.filter_value_and_grad
def cross_entropy(model, paths, labels):
    chances = jax.vmap(model)(paths)
    return -jnp.mean(labels * jnp.log(chances) + (1 - labels) * jnp.log(1 - chances))


optimizer = optax.adam(3e-3)


@eqx.filter_jit
def train_step(model, state, paths, labels):
    loss, grads = cross_entropy(model, paths, labels)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


data_key, model_key = jax.random.split(jax.random.key(5678))
paths, labels = spirals(10_000, key=data_key)
model = Classifier(16, key=model_key)
state = optimizer.init(eqx.filter(model, eqx.is_array))
batches = np.random.default_rng(0).permutation(10_000)[: 200 * 32].reshape(200, 32)

times, losses = [], []
for batch in batches:
    x, y = paths[batch], labels[batch]
    start = time.process_time()
    model, state, loss = train_step(model, state, x, y)
    losses.append(float(loss))
    times.append(time.process_time() - start)
print("losses", losses[0], losses[9], losses[-1])
print("right", float(jnp.mean((jax.vmap(model)(paths) > 0.5) == labels)))
print("first", times[0])
print("steady", sorted(times)[len(times) // 2])
