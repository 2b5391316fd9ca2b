"""Parts that scale gradients by a memory of earlier ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.deprecated.clipping import beside_params
from rune.optim.deprecated.states import AdamState, CountState, Optimizer, no_steps, two_moments
from rune.optim.leaves import Tree, in_dtypes, real_filled, scaled, square_of
from rune.optim.parts import correction, running_mean, running_squares, scale_by_rms
from rune.optim.transforms import stateless
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike


class AdadeltaState(NamedTuple):
    """Running means of squared gradients and of squared updates."""

    e_g: Tree
    e_x: Tree


def scale(step_size: float) -> Optimizer:
    """Updates times a number.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale(2.0), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 6., -8.], f32[2], cpu:0)
    """
    required_number("scale", "step_size", step_size)
    return stateless(lambda grads, _: scaled(grads, step_size))


def scale_by_schedule(step_size_fn: Callable[[Array], ArrayLike]) -> Optimizer:
    """Updates times a schedule's value at the step, from 0.

    Shapes: updates are a tree like the gradients; the state is a count i32 [].
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError if an argument is not a function of the step.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> o = deprecated.scale_by_schedule(optim.constant_schedule(0.5))
    >>> g, p = rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1.5, -2. ], f32[2], cpu:0)
    """

    if not callable(step_size_fn):
        raise ArgumentError(f"scale_by_schedule: cannot call {step_size_fn!r} (a function of the step required)")

    def update(grads: Tree, state: CountState, params: Tree = None) -> tuple[Tree, CountState]:
        rate = step_size_fn(state.count)
        return scaled(grads, rate), CountState(state.count + 1)

    return Optimizer(lambda params: CountState(no_steps()), update)


# --- by squares -------------------------------------------------------------------------------


def scale_by_stddev(
    decay: float = 0.9, eps: float = 1e-8, initial_scale: float = 0.0, eps_in_sqrt: bool = True
) -> Optimizer:
    """`scale_by_rms` with the squares taken about the running mean."""
    return scale_by_rms(decay, eps, initial_scale, eps_in_sqrt, centered=True)


def scale_by_adadelta(rho: float = 0.9, eps: float = 1e-6) -> Optimizer:
    """Updates times the running size of past updates over that of gradients: no unit is left.

    Shapes: updates, and e_g and e_x in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Zeiler 2012, arXiv:1212.5701.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_adadelta(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.0032, -0.0032], f32[2], cpu:0)
    """

    def update(grads: Tree, state: AdadeltaState, params: Tree = None) -> tuple[Tree, AdadeltaState]:
        squares = running_squares("scale_by_adadelta", rho, state.e_g, grads)
        updates = tree.map(lambda g, v, x: rnp.sqrt(x + eps) / rnp.sqrt(v + eps) * g, grads, squares, state.e_x)
        return updates, AdadeltaState(squares, running_squares("scale_by_adadelta", rho, state.e_x, updates))

    return Optimizer(lambda params: AdadeltaState(real_filled(params, 0.0), real_filled(params, 0.0)), update)


# --- by moments -------------------------------------------------------------------------------


def scale_by_adamax(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Adam with the largest gradient so far, fading, in place of the root of squares.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Kingma & Ba 2014, arXiv:1412.6980, algorithm 2.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_adamax(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1., -1.], f32[2], cpu:0)
    """

    def update(grads: Tree, state: AdamState, params: Tree = None) -> tuple[Tree, AdamState]:
        count = state.count + 1
        mu = running_mean("scale_by_adamax", b1, state.mu, grads)
        nu = tree.map(lambda g, v: rnp.maximum(rnp.abs(g) + eps, b2 * v), grads, state.nu)
        nu = in_dtypes("scale_by_adamax", nu, state.nu)
        first = correction("scale_by_adamax", b1, count)
        updates = tree.map(lambda m, v: rnp.astype(m / first / v, m.dtype), mu, nu)
        return updates, AdamState(count, mu, nu)

    return Optimizer(two_moments, update)


def scale_by_yogi(
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-3,
    eps_root: float = 0.0,
    initial_accumulator_value: float = 1e-6,
) -> Optimizer:
    """Adam whose mean of squares moves by a step of the square's size, up or down.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Zaheer et al. 2018, Adaptive methods for nonconvex optimization, NeurIPS.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_yogi(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.9996, -0.9997], f32[2], cpu:0)
    """

    def leaf_of_squares(square: Array, v: Array) -> Array:
        return v - (1 - b2) * rnp.sign(v - square) * square

    def update(grads: Tree, state: AdamState, params: Tree = None) -> tuple[Tree, AdamState]:
        count = state.count + 1
        mu = running_mean("scale_by_yogi", b1, state.mu, grads)
        nu = tree.map(leaf_of_squares, tree.map(square_of, grads), state.nu)
        nu = in_dtypes("scale_by_yogi", nu, state.nu)
        first = correction("scale_by_yogi", b1, count)
        second = correction("scale_by_yogi", b2, count)

        def leaf(m: Array, v: Array) -> Array:
            direction = (m / first) / (rnp.sqrt(v / second + eps_root) + eps)
            return rnp.astype(direction, m.dtype)

        return tree.map(leaf, mu, nu), AdamState(count, mu, nu)

    return Optimizer(lambda params: two_moments(params, initial_accumulator_value), update)


# --- by the parameters ------------------------------------------------------------------------


def scale_by_trust_ratio(min_norm: float = 0.0, trust_coefficient: float = 1.0, eps: float = 0.0) -> Optimizer:
    """Each leaf's update scaled to trust_coefficient times the length of its parameter.

    A leaf whose parameter or update is 0 is left as it is. Errors: ArgumentError without params.
    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Source: You et al. 2017, arXiv:1708.03888.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_trust_ratio(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1.3416, -1.7889], f32[2], cpu:0)
    """

    def leaf(g: Array, p: Array) -> Array:
        of_param = rnp.maximum(_length(p), min_norm)
        of_update = rnp.maximum(_length(g), min_norm)
        ratio = trust_coefficient * of_param / (of_update + eps)
        nothing = (of_param == 0) | (of_update == 0)
        return rnp.astype(g * rnp.where(nothing, 1.0, ratio), g.dtype)

    return beside_params("scale_by_trust_ratio", leaf)


def _length(x: Array) -> Array:
    return rnp.sqrt(rnp.sum(square_of(x)))


def scale_by_param_block_rms(min_scale: float = 1e-3) -> Optimizer:
    """Each leaf's update times the root mean square of its parameter, at least `min_scale`.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Source: Shazeer & Stern 2018, arXiv:1804.04235, section 8.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o = deprecated.scale_by_param_block_rms()
    >>> g, p = rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 4.7434, -6.3246], f32[2], cpu:0)
    """

    def leaf(g: Array, p: Array) -> Array:
        size = rnp.maximum(rnp.sqrt(rnp.mean(square_of(p))), min_scale)
        return rnp.astype(g * size, g.dtype)

    return beside_params("scale_by_param_block_rms", leaf)
