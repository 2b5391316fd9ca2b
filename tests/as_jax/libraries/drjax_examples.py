"""DrJAX: maps over placements and reductions of them, as primitives."""

import drjax
import jax
import jax.numpy as jnp


@drjax.program(placements={"clients": 4})
def _average_of_squares(x, rows):
    copies = drjax.broadcast(x)
    squares = drjax.map_fn(lambda a, b: a * b**2, (copies, rows))
    return drjax.reduce_mean(squares)


ROWS = jnp.arange(8.0).reshape(4, 2)


def first_program_of_the_readme():
    return _average_of_squares(jnp.array(3.0), ROWS), jax.jit(_average_of_squares)(jnp.array(3.0), ROWS)


def slopes():
    loss = lambda x, rows: jnp.sum(_average_of_squares(x, rows))  # noqa: E731
    return jax.grad(loss, argnums=(0, 1))(jnp.array(3.0), ROWS), jax.jit(jax.grad(loss))(2.0, ROWS)


def federated_averaging():
    @drjax.program(placements={"clients": 4})
    def train(model, data):
        local = lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.sum((x @ w - 1.0) ** 2))(w)  # noqa: E731
        return drjax.reduce_weighted_mean(drjax.map_fn(local, (drjax.broadcast(model), data)), jnp.arange(1.0, 5.0))

    data = jax.random.normal(jax.random.key(0), (4, 3, 2))
    return jax.jit(train)(jnp.ones(2), data), jax.jacrev(train)(jnp.ones(2), data)
