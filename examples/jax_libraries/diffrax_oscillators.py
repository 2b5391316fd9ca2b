"""A neural ODE of nonlinear oscillators in Diffrax, as in its first example."""

import rune.as_jax  # noqa: F401  # isort: skip
import time

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.mlp(y)


class NeuralODE(eqx.Module):
    field: Field

    def __init__(self, width, depth, *, key):
        self.field = Field(eqx.nn.MLP(2, 2, width, depth, activation=jax.nn.softplus, key=key))

    def __call__(self, ts, y0):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(self.field),
            diffrax.Tsit5(),
            t0=ts[0],
            t1=ts[-1],
            dt0=ts[1] - ts[0],
            y0=y0,
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
            saveat=diffrax.SaveAt(ts=ts),
        )
        return solution.ys


def oscillators(ts, count, *, key):
    def velocity(t, y, args):
        x = y / (1 + y)
        return jnp.stack([x[1], -x[0]], axis=-1)

    def path(key):
        y0 = jax.random.uniform(key, (2,), minval=-0.6, maxval=1)
        term, saves = diffrax.ODETerm(velocity), diffrax.SaveAt(ts=ts)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), ts[0], ts[-1], 0.1, y0, saveat=saves).ys

    return jax.vmap(path)(jax.random.split(key, count))


@eqx.filter_value_and_grad
def distance(model, ts, ys):
    return jnp.mean((ys - jax.vmap(model, in_axes=(None, 0))(ts, ys[:, 0])) ** 2)


optimizer = optax.adabelief(3e-3)


@eqx.filter_jit
def train_step(model, state, ts, ys):
    loss, grads = distance(model, ts, ys)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(model, updates), state, loss


data_key, model_key = jax.random.split(jax.random.PRNGKey(5678))
ts = jnp.linspace(0, 10, 100)
ys = oscillators(ts, 256, key=data_key)
model = NeuralODE(64, 2, key=model_key)
state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
random = np.random.default_rng(0)

# The first tenth of every path alone: whole ones at once end in a local minimum.
times, losses = [], []
for _ in range(50):
    batch = ys[random.permutation(256)[:32], :10]
    start = time.process_time()
    model, state, loss = train_step(model, state, ts[:10], batch)
    losses.append(float(loss))
    times.append(time.process_time() - start)
print("losses", losses[0], losses[9], losses[-1])
print("first", times[0])
print("steady", sorted(times)[len(times) // 2])
