"""Optimizers that use only the sign, length or change of a gradient, or add noise to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import random, tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.deprecated.clipping import ema
from rune.optim.deprecated.states import ExtraArgsOptimizer, Optimizer, filled, no_steps
from rune.optim.leaves import Tree, in_dtypes, real_leaves
from rune.optim.leaves import scaled as scaled_by
from rune.optim.parts import Rate, scale_by_learning_rate
from rune.optim.transforms import chain, global_norm, stateless
from rune.random.keys import single_key
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike, DTypeLike


class RpropState(NamedTuple):
    """The length of every element's step, and its last step."""

    step_sizes: Tree
    prev_updates: Tree


class OptimisticState(NamedTuple):
    """Whether no step has been made yet, and the last gradient."""

    is_initial_step: Array
    previous_gradient: Tree


class NoiseState(NamedTuple):
    """Step count, and the key of the next noise."""

    count: Any
    key: Array


def scale_by_sign() -> Optimizer:
    """The sign of every element.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> deprecated.scale_by_sign().update(rnp.array([3.0, -4.0]), ())[0]
    Array([ 1., -1.], f32[2], cpu:0)
    """
    return stateless(lambda grads, _: tree.map(rnp.sign, grads))


def sign_sgd(learning_rate: Rate) -> Optimizer:
    """Steps of one size, by the gradient's sign. Source: Bernstein et al. 2018, arXiv:1802.04434.

    Shapes: updates are a tree like the gradients; a schedule's count is i32 [].
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.sign_sgd(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


def signum(learning_rate: Rate, beta: float = 0.9) -> Optimizer:
    """Steps of one size, by the sign of the running mean. Source: as `sign_sgd`.

    Shapes: updates, and the mean in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.signum(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    return chain(ema(beta, debias=False), scale_by_sign(), scale_by_learning_rate(learning_rate))


def scale_by_rprop(
    learning_rate: float,
    eta_minus: float = 0.5,
    eta_plus: float = 1.2,
    min_step_size: float = 1e-6,
    max_step_size: float = 50.0,
) -> Optimizer:
    """Steps by signs, of lengths that grow while the sign stays and shrink where it turns.

    An element whose sign has turned rests for a step.
    Shapes: updates, and lengths and last updates in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating.
    Source: Riedmiller & Braun 1993, A direct adaptive method for faster backpropagation learning.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_rprop(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.5, -0.5], f32[2], cpu:0)
    """
    name = "scale_by_rprop"
    if not 0 < eta_minus < 1 < eta_plus:
        raise ArgumentError(
            f"{name}: cannot change lengths by {eta_minus=} and {eta_plus=} (one below 1, one above required)"
        )

    def length(g: Array, last: Array, size: Array) -> Any:
        new_size = rnp.where(g * last > 0, eta_plus * size, eta_minus * size)
        new_size = rnp.clip(new_size, min_step_size, max_step_size)
        return rnp.where(g * last == 0, size, new_size)

    def update(grads: Tree, state: RpropState, params: Tree = None) -> tuple[Tree, RpropState]:
        real_leaves(name, grads)
        sizes = tree.map(length, grads, state.prev_updates, state.step_sizes)
        sizes = in_dtypes(name, sizes, state.step_sizes)
        steps = tree.map(
            lambda g, last, size: rnp.where(g * last < 0, 0, size * rnp.sign(g)), grads, state.prev_updates, sizes
        )
        steps = in_dtypes(name, steps, state.prev_updates)
        return steps, RpropState(sizes, steps)

    def init(params: Tree) -> RpropState:
        real_leaves(name, params)
        return RpropState(filled(params, learning_rate), filled(params, 0.0))

    return Optimizer(init, update)


def rprop(
    learning_rate: float,
    eta_minus: float = 0.5,
    eta_plus: float = 1.2,
    min_step_size: float = 1e-6,
    max_step_size: float = 50.0,
) -> Optimizer:
    """Resilient propagation, for whole batches; `learning_rate` is the length of the first step.

    Shapes: updates, and lengths and last updates in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating.
    Source: Riedmiller & Braun 1993, A direct adaptive method for faster backpropagation learning.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.rprop(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    inner = scale_by_rprop(learning_rate, eta_minus, eta_plus, min_step_size, max_step_size)
    return chain(inner, scale_by_learning_rate(1.0))


# --- by lengths -------------------------------------------------------------------------------


def normalize_by_update_norm(scale_factor: float = 1.0, eps: float = 1e-6) -> Optimizer:
    """Updates over their global norm, times `scale_factor`.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o = deprecated.normalize_by_update_norm()
    >>> g, p = rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.6, -0.8], f32[2], cpu:0)
    """
    return stateless(lambda grads, _: scaled_by(grads, scale_factor / (global_norm(grads) + eps)))


def scale_by_polyak(f_min: float = 0.0, max_learning_rate: float = 1.0, eps: float = 0.0) -> ExtraArgsOptimizer:
    """Updates times (value - f_min) / |gradient|², at most `max_learning_rate`.

    Its update takes the loss by name: `update(grads, state, params, value=loss)`.
    Shapes: updates are a tree like the gradients; value [].
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError without it.
    Source: Loizou et al. 2021, arXiv:2002.10542.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_polyak(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p, value=5.0)[0], 4)
    Array([ 0.6, -0.8], f32[2], cpu:0)
    """

    def update(grads: Tree, state: Tree, params: Tree = None, *, value: Any = None, **_: Any) -> tuple[Tree, Tree]:
        if value is None:
            raise ArgumentError(
                "scale_by_polyak: cannot update without the loss", hint="call update(grads, state, params, value=loss)"
            )
        square = rnp.square(global_norm(grads)) + eps
        is_flat = square <= float(rnp.finfo(square.dtype).eps)
        rate = rnp.minimum((value - f_min) / rnp.where(is_flat, 1.0, square), max_learning_rate)
        return scaled_by(grads, rnp.where(is_flat, 0.0, rate)), state

    return ExtraArgsOptimizer(lambda params: (), update)


def polyak_sgd(
    max_learning_rate: float = 1.0,
    scaling: float | Callable[[Array], ArrayLike] = 1.0,
    f_min: float = 0.0,
    eps: float = 0.0,
) -> ExtraArgsOptimizer:
    """Gradient descent with Polyak's step, for losses whose least value is known.

    scaling: a number or schedule that the step is multiplied by.
    Shapes: updates are a tree like the gradients; value [].
    Types:  each leaf in its dtype, floating or complex.
    Source: Loizou et al. 2021, arXiv:2002.10542.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.polyak_sgd(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p, value=5.0)[0], 4)
    Array([-0.6,  0.8], f32[2], cpu:0)
    """
    return chain(scale_by_polyak(f_min, max_learning_rate, eps), scale_by_learning_rate(scaling))


# --- by changes, and noise --------------------------------------------------------------------


def scale_by_optimistic_gradient(alpha: float = 1.0, beta: float = 1.0) -> Optimizer:
    """(alpha + beta) times the gradient, minus beta times the last one.

    Shapes: updates, and the last gradient in the state, are trees like the parameters; the
            state also has a bool [], True before the first step.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Mokhtari et al. 2019, arXiv:1901.08511.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_optimistic_gradient(), rnp.array([3.0]), rnp.array([1.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([3.], f32[1], cpu:0)
    """
    name = "scale_by_optimistic_gradient"

    def update(grads: Tree, state: OptimisticState, params: Tree = None) -> tuple[Tree, OptimisticState]:
        first = state.is_initial_step

        def leaf(g: Array, last: Array) -> Array:
            return (alpha + beta) * g - beta * rnp.where(first, g, last)

        old = state.previous_gradient
        updates = in_dtypes(name, tree.map(leaf, grads, old), old)
        return updates, OptimisticState(rnp.zeros((), bool), in_dtypes(name, grads, old))

    return Optimizer(lambda params: OptimisticState(rnp.ones((), bool), filled(params, 0.0)), update)


def optimistic_gradient_descent(learning_rate: Rate, alpha: float = 1.0, beta: float = 1.0) -> Optimizer:
    """Gradient descent that foresees the next gradient, for games of two losses.

    Shapes: updates, and the last gradient in the state, are trees like the parameters; the
            state also has a bool [], True before the first step.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Mokhtari et al. 2019, arXiv:1901.08511.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o = deprecated.optimistic_gradient_descent(0.5)
    >>> g, p = rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-1.5,  2. ], f32[2], cpu:0)
    """
    return chain(scale_by_optimistic_gradient(alpha, beta), scale_by_learning_rate(learning_rate))


def add_noise(eta: float, gamma: float, key: ArrayLike) -> Optimizer:
    """Updates plus normal noise of variance eta / count**gamma.

    key: a key of `rune.random`, or a seed; the state holds what follows it.
    Shapes: updates are a tree like the gradients; the state holds a count i32 [] and a key [].
    Types:  each leaf in its dtype, floating or complex.
    Source: Neelakantan et al. 2015, arXiv:1511.06807.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g = deprecated.add_noise(0.0, 0.55, 0), rnp.array([3.0, -4.0])
    >>> o.update(g, o.init(g))[0]
    Array([ 3., -4.], f32[2], cpu:0)
    """

    required_number("add_noise", "eta", eta, 0)

    def init(params: Tree) -> NoiseState:
        known = random.key(key) if isinstance(key, int) else single_key("add_noise", key)
        return NoiseState(no_steps(), known)

    def update(grads: Tree, state: NoiseState, params: Tree = None) -> tuple[Tree, NoiseState]:
        count = state.count + 1
        following, noise_key = random.split(state.key)
        size = rnp.sqrt(eta / rnp.astype(count, "f32") ** gamma)
        leaves, treedef = tree.flatten(grads)
        noise = [
            rnp.astype(size * random.normal(random.fold_in(noise_key, n), g.shape, _drawn(g)), g.dtype)
            for n, g in enumerate(leaves)
        ]
        noisy = [g + e for g, e in zip(leaves, noise, strict=True)]
        return tree.unflatten(treedef, noisy), NoiseState(count, following)

    return Optimizer(init, update)


def _drawn(g: Array) -> DTypeLike:
    """The dtype of the noise: for complex numbers, both parts get noise."""
    return rnp.result_type(g) if rnp.iscomplexobj(g) else rnp.float32


def noisy_sgd(learning_rate: Rate, eta: float = 0.01, gamma: float = 0.55, key: ArrayLike = 0) -> Optimizer:
    """Gradient descent with noise that fades. Source: Neelakantan et al. 2015, arXiv:1511.06807.

    Shapes: updates are a tree like the gradients; the state holds a count i32 [] and a key [].
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g = deprecated.noisy_sgd(0.5, eta=0.0), rnp.array([3.0, -4.0])
    >>> o.update(g, o.init(g))[0]
    Array([-1.5,  2. ], f32[2], cpu:0)
    """
    return chain(add_noise(eta, gamma, key), scale_by_learning_rate(learning_rate))
