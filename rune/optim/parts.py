"""Parts of optimizers: each turns gradients into updates by its memory of earlier gradients.

running mean   m ← decay m + (1 - decay) g
correction     1 - decay**count, the weight of the gradients in a mean that started at 0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import ops, tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.leaves import T, Tree, in_dtypes, real_filled, same_shape, scaled, square_of, zeros
from rune.optim.schedules import StepFunction
from rune.optim.transforms import GradientTransformation, stateless
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike

Rate = ArrayLike | StepFunction
Mask = Tree | Callable[[Tree], Tree]


class State(NamedTuple):
    """The memory of a part; a field that the part does not use is None.

    count: steps so far, i32 []: an array, so that counting does not retrace.
    mu:    running mean of the gradients, or the velocity of momentum.
    nu:    running mean, or sum, of their squares; real.
    """

    count: Any = None
    mu: Tree = None
    nu: Tree = None


def running_mean(name: str, decay: ArrayLike, old: T, new: Tree) -> T:
    """decay old + (1 - decay) new, in the dtypes of the old.

    Errors: ArgumentError for a decay outside 0…1, and for leaves of different shapes; DtypeError
            for complex leaves where the old ones are real.
    """
    rate = required_number(name, "decay", decay, 0, 1)
    means = tree.map(lambda a, b: (1 - rate) * b + rate * same_shape(name, a, b), old, new)
    return in_dtypes(name, means, old)


def running_squares(name: str, decay: ArrayLike, old: T, new: Tree) -> T:
    """decay old + (1 - decay) |new|², in the dtypes of the old."""
    return running_mean(name, decay, old, tree.map(square_of, new))


def correction(name: str, decay: ArrayLike, count: Array) -> float | Array:
    """1 - decay**count, by expm1: for a decay near 1 the difference would lose its digits in
    f32.
    """
    rate = required_number(name, "decay", decay, 0, 1)
    if isinstance(rate, int | float):
        return 1.0 if rate == 0 else -rnp.expm1(rnp.astype(count, "f32") * math.log(rate))
    return -rnp.expm1(rnp.astype(count, "f32") * rnp.log(rate))


def scale_by_learning_rate(learning_rate: Rate) -> GradientTransformation:
    """Updates times minus the learning rate; a schedule is evaluated at the step count, from 0."""
    if not callable(learning_rate):
        rate = required_number("scale_by_learning_rate", "learning_rate", learning_rate)
        return stateless(lambda grads, _: scaled(grads, -rate))
    schedule: Callable[..., Any] = learning_rate

    def update(grads: Tree, state: State, params: Tree = None) -> tuple[Tree, State]:
        return scaled(grads, -schedule(state.count)), State(state.count + 1)

    return GradientTransformation(lambda params: State(rnp.zeros((), "i32")), update)


def add_decayed_weights(weight_decay: float, mask: Mask = None) -> GradientTransformation:
    """Updates plus weight_decay times the parameters, for leaves where the mask is True.

    mask: a tree of bools like the parameters (or a prefix of it), or a function from them to one.
    """

    def rule(grads: Tree, params: Tree) -> Tree:
        if params is None:
            why = "add_decayed_weights: cannot decay without parameters"
            raise ArgumentError(why, hint="call update(grads, state, params)")
        decays = mask(params) if callable(mask) else True if mask is None else mask
        flags = tree.unflatten(tree.structure(params), tree.broadcast_prefix(decays, params))
        return tree.map(lambda g, p, on: g + weight_decay * p if on else g, grads, params, flags)

    return stateless(rule)


def trace(decay: float, nesterov: bool = False) -> GradientTransformation:
    """Momentum: v = g + decay v; the update is v, or g + decay v with `nesterov`."""
    required_number("trace", "decay", decay, 0)

    def update(grads: Tree, state: State, params: Tree = None) -> tuple[Tree, State]:
        sums = tree.map(lambda g, v: g + decay * same_shape("trace", v, g), grads, state.mu)
        velocity = in_dtypes("trace", sums, state.mu)
        updates = tree.map(lambda g, v: g + decay * v, grads, velocity) if nesterov else velocity
        return in_dtypes("trace", updates, velocity), State(mu=velocity)

    return GradientTransformation(lambda params: State(mu=zeros(params)), update)


def scale_by_adam(
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0, nesterov: bool = False
) -> GradientTransformation:
    """The running mean over the root of that of the squares, both corrected for their start at 0.

    nesterov: the mean as it will be after one more step with this gradient.
    """
    name = "scale_by_adam"

    def update(grads: Tree, state: State, params: Tree = None) -> tuple[Tree, State]:
        count = state.count + 1
        mu = running_mean(name, b1, state.mu, grads)
        nu = running_squares(name, b2, state.nu, grads)
        first, second = correction(name, b1, count), correction(name, b2, count)
        next_correction = correction(name, b1, count + 1) if nesterov else 1.0

        def direction(g: Array, m: Array, v: Array) -> Array:
            mean = b1 * m / next_correction + (1 - b1) * g / first if nesterov else m / first
            return rnp.astype(mean / (rnp.sqrt(v / second + eps_root) + eps), m.dtype)

        return tree.map(direction, grads, mu, nu), State(count, mu, nu)

    return GradientTransformation(lambda p: State(rnp.zeros((), "i32"), zeros(p), real_filled(p, 0.0)), update)


def scale_by_rms(
    decay: float = 0.9, eps: float = 1e-8, initial_scale: float = 0.0, eps_in_sqrt: bool = True, centered: bool = False
) -> GradientTransformation:
    """Updates over the root of the running mean of squares; eps is added before the root, or after.

    centered: the squares are those of distances from the running mean.
    """
    name = "scale_by_rms"

    def over_root(g: Array, v: Array) -> Array:
        return g * ops.rsqrt(v + eps) if eps_in_sqrt else g * (1 / (rnp.sqrt(v) + eps))

    def update(grads: Tree, state: State, params: Tree = None) -> tuple[Tree, State]:
        mu = running_mean(name, decay, state.mu, grads) if centered else None
        nu = running_squares(name, decay, state.nu, grads)
        # Rounding may take the difference below 0, of gradients that hardly change.
        variance = tree.map(lambda v, m: rnp.maximum(v - square_of(m), 0), nu, mu) if centered else nu
        return tree.map(over_root, grads, variance), State(mu=mu, nu=nu)

    return GradientTransformation(
        lambda p: State(mu=zeros(p) if centered else None, nu=real_filled(p, initial_scale)), update
    )


def scale_by_rss(initial_accumulator_value: float = 0.1, eps: float = 1e-7) -> GradientTransformation:
    """Updates over the root of the sum of all squares so far; 0 while that sum is 0."""

    def leaf(g: Array, v: Array) -> Array:
        is_positive = v > 0
        return g * rnp.where(is_positive, ops.rsqrt(rnp.where(is_positive, v, 1) + eps), 0)

    def update(grads: Tree, state: State, params: Tree = None) -> tuple[Tree, State]:
        total = tree.map(lambda g, v: square_of(g) + v, grads, state.nu)
        total = in_dtypes("scale_by_rss", total, state.nu)
        return tree.map(leaf, grads, total), State(nu=total)

    return GradientTransformation(lambda params: State(nu=real_filled(params, initial_accumulator_value)), update)


def scale_by_lion(b1: float = 0.9, b2: float = 0.99) -> GradientTransformation:
    """The sign of (1 - b1) g + b1 m, where the running mean m decays by b2."""

    def update(grads: Tree, state: State, params: Tree = None) -> tuple[Tree, State]:
        signs = tree.map(lambda g, m: rnp.sign((1 - b1) * g + b1 * m), grads, state.mu)
        mu = running_mean("scale_by_lion", b2, state.mu, grads)
        return in_dtypes("scale_by_lion", signs, state.mu), State(mu=mu)

    return GradientTransformation(lambda params: State(mu=zeros(params)), update)
