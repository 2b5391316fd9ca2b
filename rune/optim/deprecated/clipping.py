"""Parts that keep updates within bounds, and those that mend or smooth them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.deprecated.states import Optimizer, no_steps
from rune.optim.leaves import Tree, square_of
from rune.optim.parts import correction, running_mean
from rune.optim.transforms import stateless
from rune.transforms.arguments import required_number


def clip_by_block_rms(threshold: float) -> Optimizer:
    """Each leaf scaled down so that its root mean square is at most `threshold`.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Source: Shazeer & Stern 2018, arXiv:1804.04235, section 6.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.clip_by_block_rms(1.0), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.8485, -1.1314], f32[2], cpu:0)
    """

    required_number("clip_by_block_rms", "threshold", threshold, 0)

    def block(g: Array) -> Array:
        rms = rnp.sqrt(rnp.mean(square_of(g)))
        return rnp.astype(g / rnp.maximum(1.0, rms / threshold), g.dtype)

    return stateless(lambda grads, _: tree.map(block, grads))


def adaptive_grad_clip(clipping: float, eps: float = 1e-3) -> Optimizer:
    """Each unit's gradient kept at most `clipping` times as long as the unit's weights.

    Units are the last axis of a matrix, the last of a kernel [*K, I, O], elements of a vector; the
    length of a unit counts as `eps` at least.
    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError without parameters.
    Source: Brock et al. 2021, arXiv:2102.06171.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.adaptive_grad_clip(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.6708, -0.8944], f32[2], cpu:0)
    """

    required_number("adaptive_grad_clip", "clipping", clipping, 0)

    def leaf(g: Array, p: Array) -> Array:
        most = clipping * rnp.maximum(_unit_norm(p), eps)
        norm = rnp.maximum(_unit_norm(g), 1e-6)
        return rnp.astype(rnp.where(norm < most, g, g * (most / norm)), g.dtype)

    return beside_params("adaptive_grad_clip", leaf)


def beside_params(name: str, leaf: Callable[[Array, Array], Array]) -> Optimizer:
    """leaf(update, parameter) for every leaf. Errors: ArgumentError without params."""
    return stateless(lambda grads, params: tree.map(leaf, grads, required(name, params)))


def required(name: str, params: Tree) -> Tree:
    """The parameters, or ArgumentError where `update` was called without."""
    if params is None:
        raise ArgumentError(f"{name}: cannot update without parameters", hint="call update(grads, state, params)")
    return params


def _unit_norm(x: Array) -> Array:
    if x.ndim < 2:
        return rnp.abs(x) if x.ndim == 0 else rnp.sqrt(rnp.sum(square_of(x), keepdims=True))
    axes = tuple(range(x.ndim - 1))
    return rnp.sqrt(rnp.sum(square_of(x), axes, keepdims=True))


def centralize() -> Optimizer:
    """Gradients of matrices and kernels minus their mean over all axes but the first, as in Optax.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Source: Yong et al. 2020, arXiv:2004.01461.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> deprecated.centralize().update(rnp.array([[1.0, 3.0], [3.0, 5.0]]), ())[0]
    Array([[-1.,  1.],
           [-1.,  1.]], f32[2,2], cpu:0)
    """

    def leaf(g: Array) -> Array:
        return g if g.ndim < 2 else g - rnp.mean(g, tuple(range(1, g.ndim)), keepdims=True)

    return stateless(lambda grads, _: tree.map(leaf, grads))


def zero_nans() -> Optimizer:
    """NaN elements replaced by 0.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> deprecated.zero_nans().update(rnp.array([rnp.nan, 1.0]), ())[0]
    Array([0., 1.], f32[2], cpu:0)
    """
    return stateless(lambda grads, _: tree.map(lambda g: rnp.where(rnp.isnan(g), 0, g), grads))


class EmaState(NamedTuple):
    """Step count and running mean."""

    count: Any
    ema: Tree


def ema(decay: float, debias: bool = True) -> Optimizer:
    """The running mean of the updates, by default corrected for its start.

    Shapes: updates, and the mean in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.ema(0.9), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 3., -4.], f32[2], cpu:0)
    """

    def update(grads: Tree, state: EmaState, params: Tree = None) -> tuple[Tree, EmaState]:
        count = state.count + 1
        mean = running_mean("ema", decay, state.ema, grads)
        factor = correction("ema", decay, count) if debias else 1.0
        return tree.map(lambda m: rnp.astype(m / factor, m.dtype), mean), EmaState(count, mean)

    return Optimizer(lambda params: EmaState(no_steps(), tree.map(rnp.zeros_like, params)), update)
