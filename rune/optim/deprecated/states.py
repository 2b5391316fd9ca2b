"""States and helpers of the deprecated names, beside the parts of rune.optim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.leaves import T, Tree, real_filled
from rune.optim.parts import correction
from rune.optim.transforms import GradientTransformation, accepted, chain, stateless

Optimizer = ExtraArgsOptimizer = GradientTransformationExtraArgs = GradientTransformation


class AdamState(NamedTuple):
    """Step count, and running means of the gradient and of its square."""

    count: Any
    mu: Tree
    nu: Tree


class CountState(NamedTuple):
    """The step count of a schedule."""

    count: Any


def no_steps() -> Array:
    """The step count before the first step."""
    return rnp.zeros((), "i32")


def filled(params: T, value: float) -> T:
    """A tree like the parameters, filled with one number."""
    return tree.map(lambda p: rnp.full_like(p, value), params)


def two_moments(params: Tree, value: float = 0.0) -> AdamState:
    """The state before the first step, both means filled with one number; those of squares are
    real.
    """
    return AdamState(no_steps(), filled(params, value), real_filled(params, value))


def unbiased(name: str, b1: Any, count: Array, nesterov: bool) -> Callable[[Any, Any], Any]:
    """The function (gradient, running mean) -> mean, corrected for its start at 0.

    nesterov: the mean as it will be after one more step with this gradient.
    """
    first = correction(name, b1, count)
    if not nesterov:
        return lambda g, m: m / first
    next_correction = correction(name, b1, count + 1)
    return lambda g, m: b1 * m / next_correction + (1 - b1) * g / first


def inner_product(a: Tree, b: Tree) -> Array:
    """The sum of Re(conj(x) y) over all elements of two trees, in f32 or wider."""
    total = rnp.zeros(())
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        wide = rnp.result_type(x, y, "f32")
        product = rnp.conj(rnp.astype(x, wide)) * rnp.astype(y, wide)
        total = total + rnp.sum(rnp.real(product))
    return total


def with_extra_args_support(inner: Optimizer) -> ExtraArgsOptimizer:
    """`inner` with an update that takes further arguments by name, and ignores unknown ones.

    Shapes: updates and state as of `inner`. Types: as of `inner`.
    Errors: ArgumentError if an argument is not an optimizer, or if trees differ in structure.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> o = deprecated.with_extra_args_support(optim.sgd(0.5))
    >>> g, p = rnp.array([3.0]), rnp.array([1.0])
    >>> o.update(g, o.init(p), p, value=1.0)[0]
    Array([-1.5], f32[1], cpu:0)
    """
    if not (hasattr(inner, "init") and hasattr(inner, "update")):
        raise ArgumentError(f"optim: cannot take {type(inner).__name__} as an optimizer (init and update required)")

    def update(grads: Tree, state: Tree, params: Tree = None, **extra: object) -> tuple[Tree, Tree]:
        return inner.update(grads, state, params, **accepted(inner.update, extra))

    return ExtraArgsOptimizer(inner.init, update)


def named_chain(*parts: tuple[str, Optimizer]) -> ExtraArgsOptimizer:
    """`chain` of named parts, whose state is a dictionary.

    Shapes: updates as of the last part; the state is a dict of theirs. Types: as of the parts.
    Errors: ArgumentError for a name that is given twice.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> o = deprecated.named_chain(("clip", optim.clip(1.0)), ("adam", deprecated.scale_by_adam()))
    >>> sorted(o.init(rnp.zeros(1)))
    ['adam', 'clip']
    """
    if not all(isinstance(part, tuple) and len(part) == 2 for part in parts):
        raise ArgumentError("named_chain: cannot read the parts (pairs of name and optimizer)")
    names = [name for name, _ in parts]
    if len(set(names)) < len(names):
        raise ArgumentError(f"named_chain: cannot use a name twice ({', '.join(names)})")
    inner = chain(*(part for _, part in parts))

    def init(params: Tree) -> dict[str, Tree]:
        return dict(zip(names, inner.init(params), strict=True))

    def update(
        grads: Tree, state: dict[str, Tree], params: Tree = None, **extra: object
    ) -> tuple[Tree, dict[str, Tree]]:
        updates, after = inner.update(grads, tuple(state[n] for n in names), params, **extra)
        return updates, dict(zip(names, after, strict=True))

    return ExtraArgsOptimizer(init, update)


def identity() -> Optimizer:
    """Updates as they are.

    Shapes: as the gradients; no state. Types: each leaf in its dtype, floating or complex.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.identity(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 3., -4.], f32[2], cpu:0)
    """
    return stateless(lambda grads, _: grads)
