"""Optimizers related to Adam: other uses of the moments of the gradient.

Each is a part, `scale_by_…`, and the optimizer built on it, under Optax's names.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.deprecated.clipping import required
from rune.optim.deprecated.states import AdamState, Optimizer, filled, no_steps, two_moments, unbiased
from rune.optim.leaves import Tree, in_dtypes, real_filled, square_of
from rune.optim.parts import (
    Rate,
    add_decayed_weights,
    correction,
    running_mean,
    running_squares,
    scale_by_learning_rate,
)
from rune.optim.transforms import chain
from rune.transforms.arguments import required_number


class AmsgradState(NamedTuple):
    """Step count, running means of the gradient and of its square, the largest of the latter."""

    count: Any
    mu: Tree
    nu: Tree
    nu_max: Tree


class AdanState(NamedTuple):
    """Running means of gradients, of their changes and of squares; the last gradient; the count."""

    m: Tree
    v: Tree
    n: Tree
    g: Tree
    t: Array


def _root(v: Array, eps_root: float, eps: float) -> Array:
    return rnp.sqrt(v + eps_root) + eps


def scale_by_belief(
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-16, eps_root: float = 1e-16, *, nesterov: bool = False
) -> Optimizer:
    """The running mean over the root of the gradient's mean squared distance from it.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Zhuang et al. 2020, arXiv:2010.07468, algorithm 2.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_belief(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1.1111, -1.1111], f32[2], cpu:0)
    """

    def update(grads: Tree, state: AdamState, params: Tree = None) -> tuple[Tree, AdamState]:
        count = state.count + 1
        mu = running_mean("scale_by_belief", b1, state.mu, grads)
        surprise = tree.map(lambda g, m: g - m, grads, mu)
        nu = tree.map(lambda v: v + eps_root, running_squares("scale_by_belief", b2, state.nu, surprise))
        mean = unbiased("scale_by_belief", b1, count, nesterov)
        second = correction("scale_by_belief", b2, count)

        def direction(g: Array, m: Array, v: Array) -> Array:
            return rnp.astype(mean(g, m) / _root(v / second, 0.0, eps), m.dtype)

        return tree.map(direction, grads, mu, nu), AdamState(count, mu, nu)

    return Optimizer(two_moments, update)


def adabelief(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-16,
    eps_root: float = 1e-16,
    *,
    nesterov: bool = False,
) -> Optimizer:
    """Adam whose steps are long where gradients are as foreseen.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Zhuang et al. 2020, arXiv:2010.07468.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.adabelief(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5556,  0.5556], f32[2], cpu:0)
    """
    return chain(scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov), scale_by_learning_rate(learning_rate))


def scale_by_amsgrad(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0) -> Optimizer:
    """Adam's direction over the largest root of squares so far, so that rates never grow.

    Shapes: updates, and mu, nu and nu_max in the state, are trees like the parameters; counts are
            i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Reddi et al. 2018, arXiv:1904.09237, with both means corrected for their start.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_amsgrad(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1., -1.], f32[2], cpu:0)
    """

    def update(grads: Tree, state: AmsgradState, params: Tree = None) -> tuple[Tree, AmsgradState]:
        count = state.count + 1
        mu = running_mean("scale_by_amsgrad", b1, state.mu, grads)
        nu = running_squares("scale_by_amsgrad", b2, state.nu, grads)
        first = correction("scale_by_amsgrad", b1, count)
        second = correction("scale_by_amsgrad", b2, count)
        most = tree.map(lambda v, old: rnp.astype(rnp.maximum(v / second, old), v.dtype), nu, state.nu_max)
        updates = tree.map(lambda m, v: rnp.astype(m / first / _root(v, eps_root, eps), m.dtype), mu, most)
        return updates, AmsgradState(count, mu, nu, most)

    def init(params: Tree) -> AmsgradState:
        return AmsgradState(*two_moments(params), real_filled(params, 0.0))

    return Optimizer(init, update)


def amsgrad(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0
) -> Optimizer:
    """Adam with rates that never grow. Source: Reddi et al. 2018, arXiv:1904.09237.

    Shapes: updates, and mu, nu and nu_max in the state, are trees like the parameters; counts are
            i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.amsgrad(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    return chain(scale_by_amsgrad(b1, b2, eps, eps_root), scale_by_learning_rate(learning_rate))


# --- rectified --------------------------------------------------------------------------------


def _lengths(b2: Any, count: Array) -> tuple[Any, Any]:
    """ρ∞ and ρ(count) of RAdam: the number of gradients that the mean of squares stands for, in the
    limit and now.

    ρ = ρ∞ - 2 t b2**t / (1 - b2**t) is a small difference of large numbers for b2 near 1. With
    x = -t log b2 it is [ρ∞ + 2 / log b2] + (2 t / x) (1 - x / expm1(x)), each part exact.
    """
    log = math.log(b2) if isinstance(b2, float) else rnp.log(b2)
    most = 2.0 / (1.0 - b2) - 1.0
    x = rnp.astype(count, "f32") * -log
    is_near = x < 0.5
    near, far = rnp.where(is_near, x, 0.5), rnp.where(is_near, 0.5, x)
    square = near * near
    series = 1 / 12 - square * (1 / 720 - square * (1 / 30240 - square / 1209600))
    part = rnp.where(is_near, near * (0.5 - near * series), 1.0 - far / rnp.expm1(far))
    return most, (most + 2.0 / log) - 2.0 / log * part


def scale_by_radam(
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    threshold: float = 5.0,
    *,
    nesterov: bool = False,
) -> Optimizer:
    """Adam's direction times a correction for its variance in the first steps.

    While the mean of squares stands for fewer than `threshold` gradients, the running mean alone.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError unless b2 is between 0 and 1, and for a threshold below 4: the variance of
            fewer gradients is not finite.
    Source: Liu et al. 2019, arXiv:1908.03265, algorithm 2.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_radam(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 3., -4.], f32[2], cpu:0)
    """

    required_number("scale_by_radam", "threshold", threshold, 4)
    if isinstance(b2, int | float) and not 0 < b2 < 1:
        raise ArgumentError(f"scale_by_radam: cannot use {b2=} (above 0 and below 1 required)")

    def update(grads: Tree, state: AdamState, params: Tree = None) -> tuple[Tree, AdamState]:
        count = state.count + 1
        mu = running_mean("scale_by_radam", b1, state.mu, grads)
        nu = running_squares("scale_by_radam", b2, state.nu, grads)
        mean = unbiased("scale_by_radam", b1, count, nesterov)
        second = correction("scale_by_radam", b2, count)
        most, length = _lengths(b2, count)
        is_known = length >= threshold
        long = rnp.where(is_known, length, 5.0)  # where it is not known, any number with a real root
        share = (long - 4.0) * (long - 2.0) * most / ((most - 4.0) * (most - 2.0) * long)
        factor = rnp.sqrt(share)

        def direction(g: Array, m: Array, v: Array) -> Array:
            plain = mean(g, m)
            corrected_direction = factor * plain / _root(v / second, eps_root, eps)
            return rnp.astype(rnp.where(is_known, corrected_direction, plain), m.dtype)

        return tree.map(direction, grads, mu, nu), AdamState(count, mu, nu)

    return Optimizer(two_moments, update)


def radam(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    threshold: float = 5.0,
    *,
    nesterov: bool = False,
) -> Optimizer:
    """Adam that needs no warm-up. Source: Liu et al. 2019, arXiv:1908.03265.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.radam(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-1.5,  2. ], f32[2], cpu:0)
    """
    return chain(
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov), scale_by_learning_rate(learning_rate)
    )


# --- by layers, and by changes ----------------------------------------------------------------


def scale_by_novograd(
    b1: float = 0.9, b2: float = 0.25, eps: float = 1e-8, eps_root: float = 0.0, weight_decay: float = 0.0
) -> Optimizer:
    """Momentum of gradients over the running length of their leaf, weights decaying inside.

    Shapes: updates, and mu in the state, are trees like the parameters; nu has a [] for each leaf;
            the count is i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError without parameters.
    Source: Ginsburg et al. 2019, arXiv:1905.11286, algorithm 1.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_novograd(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.6, -0.8], f32[2], cpu:0)
    """

    def init(params: Tree) -> AdamState:
        squares = tree.map(lambda p: rnp.zeros((), rnp.real(p).dtype), params)
        return AdamState(no_steps(), filled(params, 0.0), squares)

    def update(grads: Tree, state: AdamState, params: Tree = None) -> tuple[Tree, AdamState]:
        squares = tree.map(lambda g: rnp.sum(square_of(g)), grads)
        mean = running_mean("scale_by_novograd", b2, state.nu, squares)
        nu = tree.map(lambda g, v: rnp.where(state.count == 0, g, v), squares, mean)
        nu = in_dtypes("scale_by_novograd", nu, state.nu)

        def momentum(g: Array, p: Array, m: Array, v: Array) -> Array:
            return b1 * m + (g / _root(v, eps_root, eps) + weight_decay * p)

        mu = tree.map(momentum, grads, required("scale_by_novograd", params), state.mu, nu)
        mu = in_dtypes("scale_by_novograd", mu, state.mu)
        return mu, AdamState(state.count + 1, mu, nu)

    return Optimizer(init, update)


def novograd(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.25,
    eps: float = 1e-6,
    eps_root: float = 0.0,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Momentum of gradients normed layer by layer. Source: Ginsburg et al., arXiv:1905.11286.

    Shapes: updates, and mu in the state, are trees like the parameters; nu has a [] for each leaf;
            the count is i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.novograd(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.3,  0.4], f32[2], cpu:0)
    """
    return chain(scale_by_novograd(b1, b2, eps, eps_root, weight_decay), scale_by_learning_rate(learning_rate))


def scale_by_adan(
    b1: float = 0.98, b2: float = 0.92, b3: float = 0.99, eps: float = 1e-8, eps_root: float = 0.0
) -> Optimizer:
    """Nesterov's momentum from running means of gradients and of their changes.

    Shapes: updates, and m, v, n and g in the state, are trees like the parameters; counts are
            i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Xie et al. 2022, arXiv:2208.06677, algorithm 1.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_adan(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1., -1.], f32[2], cpu:0)
    """

    def update(grads: Tree, state: AdanState, params: Tree = None) -> tuple[Tree, AdanState]:
        t = state.t + 1
        change = tree.map(lambda g, old: rnp.where(state.t == 0, 0, g - old), grads, state.g)
        lookahead_gradients = tree.map(lambda g, d: g + (1 - b2) * d, grads, change)
        m = running_mean("scale_by_adan", b1, state.m, grads)
        v = running_mean("scale_by_adan", b2, state.v, change)
        n = running_squares("scale_by_adan", b3, state.n, lookahead_gradients)
        c1, c2, c3 = (correction("scale_by_adan", b, t) for b in (b1, b2, b3))

        def direction(m: Array, v: Array, n: Array) -> Array:
            momentum = m / c1 + (1 - b2) * (v / c2)
            return rnp.astype(momentum / _root(n / c3, eps_root, eps), m.dtype)

        last = in_dtypes("scale_by_adan", grads, state.g)
        return tree.map(direction, m, v, n), AdanState(m, v, n, last, t)

    def init(params: Tree) -> AdanState:
        m, v, g = (filled(params, 0.0) for _ in range(3))
        return AdanState(m, v, real_filled(params, 0.0), g, no_steps())

    return Optimizer(init, update)


def adan(
    learning_rate: Rate,
    b1: float = 0.98,
    b2: float = 0.92,
    b3: float = 0.99,
    eps: float = 1e-8,
    eps_root: float = 1e-8,
    weight_decay: float = 0.0,
    mask: object = None,
) -> Optimizer:
    """Adam with Nesterov's momentum of changes. Source: Xie et al. 2022, arXiv:2208.06677.

    Shapes: updates, and m, v, n and g in the state, are trees like the parameters; counts are
            i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.adan(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    return chain(
        scale_by_adan(b1, b2, b3, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )
