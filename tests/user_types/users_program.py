"""A program of a user, with the types that checkers are to infer. It is checked, not run."""

from functools import partial
from typing import Any, NamedTuple, assert_type

import numpy as np

import rune
import rune.numpy as rnp
import rune.scipy.linalg
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


compiled, compiled_sine = rune.jit(loss), rune.jit(rnp.sin)
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

# Flags that decide the result.
assert_type(rnp.linalg.qr(x, mode="r"), Array)
assert_type(rnp.linalg.qr(x).R, Array)
assert_type(rnp.linalg.qr(x, "raw"), tuple[Array, Array])
assert_type(rnp.linalg.svd(x, compute_uv=False), Array)
assert_type(rnp.linalg.svd(x).S, Array)
assert_type(rnp.linalg.eigh(x.T @ x).eigenvectors, Array)
assert_type(rnp.linalg.slogdet(x.T @ x).logabsdet, Array)
assert_type(rnp.linalg.lstsq(x, y)[0], Array)
assert_type(rune.scipy.linalg.eigh(x, eigvals_only=True), Array)
assert_type(rune.scipy.linalg.eigh(x), tuple[Array, Array])
assert_type(rnp.unique(x), Array)
assert_type(rnp.unique(x, return_counts=True), tuple[Array, Array])
assert_type(rnp.unique(x, return_index=True, return_counts=True, axis=0), tuple[Array, Array, Array])
assert_type(rnp.unique(x, True, True, True), tuple[Array, Array, Array, Array])
assert_type(rnp.intersect1d(x, y, return_indices=True), tuple[Array, Array, Array])
assert_type(rnp.average(x, weights=x), Array)
assert_type(rnp.average(x, weights=x, returned=True), tuple[Array, Array])
assert_type(rnp.histogram(x, bins=3), tuple[Array, Array])
assert_type(rnp.meshgrid(x[:, 0], x[0]), list[Array])
assert_type(rnp.nonzero(x), tuple[Array, ...])
assert_type(rnp.linspace(0, 1, 3, retstep=True), tuple[Array, Array])
assert_type(rnp.linspace(0, 1, 3), Array)
assert_type(rnp.polyfit(x[0], x[0], 1, cov=True), tuple[Array, Array])
assert_type(rnp.gradient(x, axis=0), Array)
assert_type(rnp.atleast_2d(x), Array)
assert_type(rnp.isfinite(x), Array)
assert_type(lax.sort(x), Array)
assert_type(lax.sort([x, y]), tuple[Array, ...])
assert_type(lax.top_k(x, 2), tuple[Array, Array])
assert_type(nn.logsumexp(x, return_sign=True), tuple[Array, Array])
# The same flags by position.
assert_type(rnp.linalg.svd(x, True, False), Array)
assert_type(rnp.linspace(0, 1, 3, True, True), tuple[Array, Array])
assert_type(rnp.average(x, None, x, True), tuple[Array, Array])
assert_type(rnp.polyfit(x[0], x[0], 1, None, False, None, True), tuple[Array, Array])
assert_type(rnp.polyfit(x[0], x[0], 1, None, True), tuple[Array, Array, Array, Array, Array])
assert_type(rnp.intersect1d(x, y, False, True), tuple[Array, Array, Array])
assert_type(rune.scipy.linalg.eigh(x, None, True, True), Array)
assert_type(rune.scipy.linalg.svd(x, True, False), Array)
assert_type(nn.logsumexp(x, None, x, False, True), tuple[Array, Array])


def with_steps(params: Params, x: Array) -> tuple[Array, int]:
    return rnp.sum(predict(params, x)), 3


assert_type(rune.grad(with_steps, has_aux=True)(params, x), tuple[Params, int])
assert_type(rune.grad(with_steps, 0, True)(params, x), tuple[Params, int])
assert_type(rune.grad(with_steps, 1, has_aux=True)(params, x), tuple[Any, int])
assert_type(rune.grad(loss, argnums=1)(params, x, y), Array)
assert_type(rune.grad(loss, argnums=(0, 1))(params, x, y), tuple[Params, Array])
assert_type(rune.value_and_grad(with_steps, has_aux=True)(params, x), tuple[tuple[Array, int], Params])
assert_type(rune.value_and_grad(loss, argnums=(0, 1))(params, x, y), tuple[Array, tuple[Params, Array]])
assert_type(rune.vjp(predict, params, x)[1](y), tuple[Params, Array])
assert_type(rune.vjp(with_steps, params, x, has_aux=True)[2], int)
assert_type(rune.jvp(with_steps, (params, x), (params, x), has_aux=True), tuple[Array, Array, int])


# Results inferred from functions.
def step(params: Params, x: Array) -> tuple[Params, Array]:
    return params, x


def halved(params: Params) -> Params:
    return Params(params.w / 2, params.b)


assert_type(rune.cond(True, halved, halved, params), Params)
assert_type(rune.cond(x.sum() > 0, rnp.sin, rnp.cos, x), Array)
assert_type(rune.switch(0, [rnp.sin, rnp.cos], x), Array)
assert_type(rune.scan(step, params, x), tuple[Params, Array])
assert_type(rune.while_loop(lambda p: p.w.sum() > 1, halved, params), Params)
assert_type(rune.fori_loop(0, 3, lambda i, p: halved(p), params), Params)
assert_type(rune.associative_scan(rnp.add, x), Array)
assert_type(rune.map(rnp.sin, x), Array)
assert_type(lax.stop_gradient(params), Params)
assert_type(tree.map(rnp.sin, params), Params)
assert_type(tree.map(rnp.add, params, params), Params)
assert_type(tree.map(rnp.sin, {"x": x}), dict[str, Array])
assert_type(tree.map(float, {"x": x}), dict[str, float])


# Lambdas over carries of arrays, of classes and of numbers; functions that are typed decide.
class Motion(NamedTuple):
    place: Array
    speed: Array


def motion_step(motion: Motion, dt: Array) -> tuple[Motion, Array]:
    return Motion(motion.place + dt * motion.speed, motion.speed), motion.place


def pair(totals: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], None]:
    return (totals[0] + x, totals[1]), None


def counted(totals: dict[str, Array], x: Array) -> tuple[dict[str, Array], None]:
    return {"sum": totals["sum"] + x, "n": totals["n"] + 1}, None


def numbered(i: int, motion: Motion) -> Motion:
    return Motion(motion.place * i, motion.speed)


untyped: Any = None
motion, sums = Motion(x[0], x[1]), {"sum": x[0]}
assert_type(rune.scan(motion_step, motion, x), tuple[Motion, Array])
assert_type(rune.scan(lambda m, row: (Motion(m.place + row, m.speed), m.place.mean()), motion, x), tuple[Motion, Array])
assert_type(rune.scan(lambda m, _: (m, m.speed), motion, length=3), tuple[Motion, Array])
assert_type(rune.scan(lambda c, row: (c + row, c), x[0], x), tuple[Array, Array])
assert_type(rune.scan(lambda c, row: ((c[1], c[0]), row["y"]), (x, x), {"y": y}), tuple[tuple[Array, Array], Array])
assert_type(rune.scan(motion_step, motion, np.ones(3)), tuple[Motion, Array])
assert_type(rune.scan(motion_step, motion, untyped), tuple[Motion, Array])
assert_type(rune.scan(pair, (0.0, x[0]), x[0]), tuple[tuple[Array, Array], None])
assert_type(rune.scan(counted, {"sum": 0.0, "n": 0}, x[0]), tuple[dict[str, Array], None])
assert_type(rune.scan(counted, {"sum": x[0], "n": 0}, x[0]), tuple[dict[str, Array], None])
assert_type(rune.while_loop(lambda m: m.place.sum() < 5, lambda m: Motion(m.place * 2, m.speed), motion), Motion)
assert_type(rune.while_loop(lambda c: c.sum() < 5, lambda c: c * 2, x), Array)
assert_type(rune.fori_loop(0, 3, lambda i, m: Motion(m.place + i, m.speed), motion), Motion)
assert_type(rune.fori_loop(0, 3, lambda i, c: c + i, x), Array)
assert_type(rune.fori_loop(0, 3, numbered, motion), Motion)
assert_type(rune.map(lambda m: m.place.sum(), motion), Array)
assert_type(rune.map(rnp.sum, np.ones(3)), Array)
assert_type(rune.scan(lambda c, r: ({"s": c["s"] + r}, c["s"]), {"s": x[0]}, x), tuple[dict[str, Array], Array])
assert_type(rune.scan(lambda c, r: ({"s": c["s"] + r}, c["s"]), sums, x), tuple[dict[str, Array], Array])


# Branches: lambdas get the operands, numbers arrive as arrays, typed functions decide.
def of_both(a: Array, b: Array) -> Array:
    return a * b


def nested(d: dict[str, dict[str, Array]]) -> Array:
    return d["a"]["b"]


def one(a: Array) -> float:
    return 1.0


def either(a: Array | float) -> Array:
    return rnp.asarray(a)


pairs: tuple[Array, ...] = (x, y)
listed: list[Array] = [x, y]
number_or_array: Array | float = x
assert_type(rune.cond(x.sum() > 0, lambda: x, lambda: -x), Array)
assert_type(rune.cond(x.sum() > 0, lambda a: a + 1, lambda a: -a, x), Array)
assert_type(rune.cond(x.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, x, y), Array)
assert_type(rune.cond(True, lambda a: (a, a), lambda a: (-a, a), x), tuple[Array, Array])
assert_type(rune.cond(True, lambda m: m.place, lambda m: m.speed * 2, motion), Array)
assert_type(rune.cond(True, lambda m, s: Motion(m.place * s, m.speed), lambda m, _: m, motion, x), Motion)
assert_type(rune.cond(True, lambda: 1.0, lambda: 2.0), Array)
assert_type(rune.cond(True, one, one, x), Array)
assert_type(rune.cond(True, either, either, number_or_array), Array)
assert_type(rune.cond(True, of_both, of_both, number_or_array, x), Array)
assert_type(rune.cond(True, of_both, of_both, 0.0, x), Array)
assert_type(rune.cond(True, of_both, of_both, x, np.ones(3)), Array)
assert_type(rune.cond(True, of_both, of_both, *pairs), Array)
assert_type(rune.cond(True, of_both, of_both, *listed), Array)
assert_type(rune.cond(True, of_both, of_both, untyped, x), Array)
assert_type(rune.cond(True, partial(of_both, x), compiled_sine, x), Array)
assert_type(rune.cond(True, nested, nested, {"a": {"b": 0.0}}), Array)
assert_type(rune.cond(True, nested, nested, {"a": {"b": x}}), Array)
assert_type(rune.cond(True, rnp.sin, rnp.cos, operand=x), Array)


# Jacobians of arrays with respect to an array are arrays.
def squared(params: Params, x: Array) -> Array:
    return params.w * x


assert_type(rune.jacfwd(rnp.sin)(x), Array)
assert_type(rune.jacrev(of_both)(x, y), Array)
assert_type(rune.jacobian(of_both, mode="reverse")(x, y), Array)
assert_type(rune.hessian(of_both)(x, y), Array)
assert_type(rune.jacfwd(rune.jacrev(rnp.sin))(x), Array)
assert_type(rune.vmap(rune.jacfwd(rnp.sin))(x), Array)
assert_type(rune.jacrev(squared)(params, x), Any)
assert_type(rune.jacrev(of_both, argnums=(0, 1))(x, y), Any)
assert_type(rune.jacfwd(lambda p: {"a": p.w})(params), Any)


# Sizes are integers.
def doubled(size: int) -> int:
    return 2 * size


width: int = x.shape[1]
assert_type(doubled(x.shape[0]), int)
assert_type(x.shape, tuple[int, ...])


# Lists of arrays and of numbers, where they are converted.
assert_type(rnp.concat([x, x]), Array)
assert_type(rnp.column_stack([x, x]), Array)
assert_type(rnp.dstack((x, x)), Array)
assert_type(rnp.vsplit(x, [1, 2]), list[Array])
assert_type(rnp.repeat(x, [1, 2], axis=0), Array)
assert_type(rnp.quantile(x, [0.1, 0.9]), Array)
assert_type(rnp.polyval([1.0, 2.0], x), Array)
rnp.histogramdd([x[0], x[1]], bins=[2, 3], range=[(0, 1), (0, 1)])


# Functions with custom rules keep their signatures.
@rune.custom_vjp
def root(x: Array, shift: float = 0.0) -> Array:
    return rnp.sqrt(x + shift)


@rune.custom_jvp
def both(x: Array) -> tuple[Array, Motion]:
    return x, motion


assert_type(root(x, shift=1.0), Array)
assert_type(both(x), tuple[Array, Motion])

adam = optim.adam(1e-3)
state = adam.init(params)
for batch in data.arrays({"x": x, "y": y}).batch(2).prefetch():
    updates, state = adam.update(rune.grad(loss)(params, batch["x"], batch["y"]), state, params)
    params = optim.apply_updates(params, updates)
tree.save("params.safetensors", params)
