"""A program of a user, with the types that checkers are to infer. It is checked, not run."""

from typing import NamedTuple, assert_type

import rune
import rune.numpy as rnp
from rune import Array, data, lax, nn, optim, random, tree


class Params(NamedTuple):
    w: Array
    b: Array


def init(key: Array) -> Params:
    return Params(random.normal(key, (3, 2)), rnp.zeros(2))


def predict(params: Params, x: Array) -> Array:
    return nn.softmax(x @ params.w + params.b)


def loss(params: Params, x: Array, y: Array) -> Array:
    return rnp.mean((predict(params, x) - y) ** 2)


compiled = rune.jit(loss)
params = init(random.key(0))
x, y = rnp.ones((4, 3)), rnp.where(rnp.arange(8).reshape(4, 2) > 3, 1.0, 0.0)

assert_type(compiled(params, x, y), Array)
assert_type(rune.grad(loss)(params, x, y), Params)
assert_type(rune.value_and_grad(loss)(params, x, y), tuple[Array, Params])
assert_type(rune.vmap(predict, in_axes=(None, 0))(params, x), Array)
assert_type(rune.checkpoint(predict)(params, x), Array)
assert_type(x.at[0].set(1.0), Array)
assert_type(x.sum(axis=0), Array)
assert_type(x.T @ x + 1, Array)
assert_type(rnp.sin(x), Array)
assert_type(rnp.where(x > 0), tuple[Array, ...])
assert_type(rnp.linalg.norm(x), Array)
assert_type(rnp.fft.fft(x), Array)
assert_type(random.normal(random.key(1), (3,)), Array)
assert_type(nn.softmax(x), Array)
assert_type(lax.cummax(x), Array)

adam = optim.adam(1e-3)
state = adam.init(params)
for batch in data.arrays({"x": x, "y": y}).batch(2).prefetch():
    updates, state = adam.update(rune.grad(loss)(params, batch["x"], batch["y"]), state, params)
    params = optim.apply_updates(params, updates)
tree.save("params.safetensors", params)
