"""A perceptron in Flax nnx, trained with Optax as in its basics."""

import rune.as_jax  # noqa: F401  # isort: skip
import time

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.linear1 = nnx.Linear(16, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.linear2 = nnx.Linear(64, 4, rngs=rngs)

    def __call__(self, x):
        return self.linear2(nnx.relu(self.dropout(self.linear1(x))))


@nnx.jit
def train_step(model, optimizer, x, labels):
    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


x = jax.random.normal(jax.random.key(0), (128, 16))
labels = jnp.argmax(x[:, :4] + x[:, 4:8] ** 2, axis=1)
model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

times, losses = [], []
for _ in range(50):
    start = time.process_time()
    losses.append(float(train_step(model, optimizer, x, labels)))
    times.append(time.process_time() - start)
print("losses", losses[0], losses[9], losses[-1])
print("first", times[0])
print("steady", sorted(times)[len(times) // 2])
