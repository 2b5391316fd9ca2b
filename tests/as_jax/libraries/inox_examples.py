"""inox: neural networks that are trees of their parameters."""

import inox
import inox.nn as nn
import jax
import jax.numpy as jnp


class _Network(nn.Module):
    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.l1 = nn.Linear(3, 16, key=keys[0])
        self.l2 = nn.Linear(16, 3, key=keys[1])
        self.norm = nn.LayerNorm()
        self.relu = nn.ReLU()
        self.name = "stainless"

    def __call__(self, x):
        return self.l2(self.norm(self.relu(self.l1(x))))


def _data():
    x = jax.random.normal(jax.random.key(1), (32, 3))
    return x, jnp.sort(x, axis=-1)


def slopes_of_the_readme():
    loss = inox.jit(lambda model, x, y: jnp.mean((y - jax.vmap(model)(x)) ** 2))
    return jax.tree.leaves(inox.grad(loss)(_Network(jax.random.key(0)), *_data()))


def training_of_a_partition():
    static, params, others = _Network(jax.random.key(0)).partition(nn.Parameter)

    @jax.jit
    def step(params):
        loss = lambda p: jnp.mean((_data()[1] - jax.vmap(static(p, others))(_data()[0])) ** 2)  # noqa: E731
        value, slopes = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

    losses = []
    for _ in range(5):
        params, value = step(params)
        losses.append(value)
    return jnp.stack(losses)


def layers():
    keys = jax.random.split(jax.random.key(2), 3)
    image, row = jax.random.normal(jax.random.key(3), (8, 8, 2)), jax.random.normal(jax.random.key(4), (5, 8))
    return {
        "conv": nn.Conv(2, 4, kernel_size=(3, 3), key=keys[0])(image),
        "attention": nn.MultiheadAttention(heads=2, in_features=8, key=keys[1])(row),
        "group": nn.GroupNorm(groups=1)(image),
    }
