"""Optimizers around optimizers: for some leaves, for several steps, for finite gradients.

Keyword arguments of the inner optimizer, as of a line search, are passed on to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

import rune.numpy as rnp
from rune import control, tree
from rune.array import Array
from rune.core.lists import merge, omit, pick
from rune.errors import ArgumentError
from rune.optim.deprecated.clipping import beside_params
from rune.optim.deprecated.states import ExtraArgsOptimizer, Optimizer, no_steps, with_extra_args_support
from rune.optim.leaves import Tree, in_dtypes, real_leaves
from rune.optim.transforms import stateless
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike

Mask = Tree | Callable[[Tree], Tree]


class MultiStepsState(NamedTuple):
    """Gradients so far in this round, full rounds so far, the inner state, the running mean."""

    mini_step: Array
    gradient_step: Array
    inner: Tree
    mean: Tree


class FiniteState(NamedTuple):
    """Updates in a row, and in all, that were not finite; whether the last one was; inner state."""

    in_a_row: Array
    in_all: Array
    last_finite: Array
    inner: Tree


class ConditionState(NamedTuple):
    """Step count, and the inner state."""

    step: Array
    inner: Tree


class EveryState(NamedTuple):
    """Steps so far in this round, and the sum of their updates."""

    count: Any
    grad_acc: Tree


def masked(inner: Optimizer, mask: Mask) -> ExtraArgsOptimizer:
    """`inner` on the leaves where the mask is True; updates of other leaves pass unchanged.

    mask: a tree of bools like the parameters (or a prefix of it), or a function from them to one.
    Shapes: updates are a tree like the gradients; the state is that of `inner`, for a list of
            leaves.
    Types:  as of `inner`, the other leaves in theirs.
    Errors: ArgumentError if an argument is not an optimizer, or if trees differ in structure.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> part = deprecated.masked(optim.sgd(1.0), {"a": True, "b": False})
    >>> grads = {"a": rnp.ones(1), "b": rnp.ones(1)}
    >>> part.update(grads, part.init(grads))[0]
    {'a': Array([-1.], f32[1], cpu:0), 'b': Array([1.], f32[1], cpu:0)}
    """
    willing = with_extra_args_support(inner)

    def chosen(values: Tree) -> list[bool]:
        mask_tree = mask(values) if callable(mask) else mask
        flags = tree.broadcast_prefix(mask_tree, values)
        if not all(isinstance(flag, bool | np.bool_) for flag in flags):
            raise ArgumentError("masked: cannot use the mask (a tree of bools required)")
        return [bool(flag) for flag in flags]

    def selected(values: Tree) -> list[object] | None:
        if values is None:
            return None
        return pick(tree.leaves(values), chosen(values))

    def init(params: Tree) -> Tree:
        return willing.init(selected(params))

    def update(grads: Tree, state: Tree, params: Tree = None, **extra: object) -> tuple[Tree, Tree]:
        inner_updates, state = willing.update(selected(grads), state, selected(params), **extra)
        leaves, treedef = tree.flatten(grads)
        flags = chosen(grads)
        updates = merge(flags, inner_updates, omit(leaves, flags))
        return tree.unflatten(treedef, updates), state

    return ExtraArgsOptimizer(init, update)


def multi_transform(transforms: Mapping[Any, Optimizer], labels: Mask) -> ExtraArgsOptimizer:
    """A different optimizer for each label of a tree of labels (or a prefix of it).

    labels: a tree of labels like the parameters, or a function from them to one.
    Shapes: updates are a tree like the gradients; the state is a dict from labels to states for the
            lists of their leaves.
    Types:  as of each optimizer.
    Errors: ArgumentError for a label without an optimizer.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> both = deprecated.multi_transform({"x": optim.sgd(1.0), "y": optim.sgd(2.0)}, ["x", "y"])
    >>> grads = [rnp.ones(1), rnp.ones(1)]
    >>> both.update(grads, both.init(grads))[0]
    [Array([-1.], f32[1], cpu:0), Array([-2.], f32[1], cpu:0)]
    """

    if not isinstance(transforms, Mapping):
        raise ArgumentError(f"multi_transform: cannot read {type(transforms).__name__} (label -> optimizer)")

    def labels_of(values: Tree) -> Tree:
        label_tree = labels(values) if callable(labels) else labels
        unknown = [x for x in tree.leaves(label_tree) if x not in transforms]
        if unknown:
            raise ArgumentError(
                f"multi_transform: cannot find an optimizer for label {unknown[0]!r} "
                f"(labels are {', '.join(map(repr, transforms))})"
            )
        return label_tree

    def of(label: Hashable) -> ExtraArgsOptimizer:
        return masked(transforms[label], lambda v: tree.map(lambda x: x == label, labels_of(v)))

    parts = {label: of(label) for label in transforms}

    def init(params: Tree) -> Tree:
        labels_of(params)
        return {label: part.init(params) for label, part in parts.items()}

    def update(grads: Tree, state: Tree, params: Tree = None, **extra: object) -> tuple[Tree, Tree]:
        after = {}
        for label, part in parts.items():
            grads, after[label] = part.update(grads, state[label], params, **extra)
        return grads, after

    return ExtraArgsOptimizer(init, update)


def set_to_zero() -> Optimizer:
    """Updates of 0: the parameters stay as they are.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> deprecated.set_to_zero().update(rnp.array([3.0, -4.0]), ())[0]
    Array([0., 0.], f32[2], cpu:0)
    """
    return stateless(lambda grads, _: tree.map(rnp.zeros_like, grads))


def freeze(mask: Mask) -> ExtraArgsOptimizer:
    """Updates of 0 where the mask is True; the others pass unchanged.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError if an argument is not an optimizer, or if trees differ in structure.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> grads = {"a": rnp.ones(1), "b": rnp.ones(1)}
    >>> part = deprecated.freeze({"a": True, "b": False})
    >>> part.update(grads, part.init(grads))[0]
    {'a': Array([0.], f32[1], cpu:0), 'b': Array([1.], f32[1], cpu:0)}
    """
    return masked(set_to_zero(), mask)


def keep_params_nonnegative() -> Optimizer:
    """Updates cut where they would make a parameter negative, so that it becomes 0.

    Shapes: updates are a tree like the gradients; the state is ().
    Types:  each leaf in its dtype, floating.
    Errors: ArgumentError without parameters.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o = deprecated.keep_params_nonnegative()
    >>> g, p = rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> o.update(g, o.init(p), p)[0]
    Array([ 3., -2.], f32[2], cpu:0)
    """
    cut = beside_params("keep_params_nonnegative", lambda u, p: rnp.where(p + u < 0, -p, u))

    def rule(grads: Tree, params: Tree) -> Tree:
        return cut.update(real_leaves("keep_params_nonnegative", grads), (), params)[0]

    return stateless(rule)


def conditionally_transform(inner: Optimizer, should_transform_fn: Callable[[Array], ArrayLike]) -> ExtraArgsOptimizer:
    """`inner` in the steps for which a function of the step count is true.

    In other steps updates and the inner state pass unchanged.
    Shapes: updates as of `inner`; the state is its state and a count i32 [].
    Types:  as of `inner`, which keeps those of gradients and state.
    Errors: ArgumentError if an argument is not an optimizer, or if trees differ in structure.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> part = deprecated.conditionally_transform(deprecated.scale(2.0), lambda step: step % 2 == 1)
    >>> state = part.init(rnp.zeros(1))
    >>> first, state = part.update(rnp.ones(1), state)
    >>> first, part.update(rnp.ones(1), state)[0]
    (Array([1.], f32[1], cpu:0), Array([2.], f32[1], cpu:0))
    """
    willing = with_extra_args_support(inner)
    if not callable(should_transform_fn):
        raise ArgumentError(f"conditionally_transform: cannot call {should_transform_fn!r} (a function of the step)")

    def update(grads: Tree, state: ConditionState, params: Tree = None, **extra: object) -> tuple[Tree, ConditionState]:
        def step(_: object) -> tuple[Tree, Tree]:
            updates, inside = willing.update(grads, state.inner, params, **extra)
            return in_dtypes("conditionally_transform", updates, grads), inside

        updates, after = control.cond(should_transform_fn(state.step), step, lambda _: (grads, state.inner), None)
        return updates, ConditionState(state.step + 1, after)

    return ExtraArgsOptimizer(lambda params: ConditionState(no_steps(), inner.init(params)), update)


def apply_every(k: int = 1) -> Optimizer:
    """The sum of every k updates; 0 in between. The last part of a chain.

    Shapes: updates, and their sum in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError for a k below 1.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> part = deprecated.apply_every(2)
    >>> first, state = part.update(rnp.ones(1), part.init(rnp.zeros(1)))
    >>> first, part.update(rnp.ones(1), state)[0]
    (Array([0.], f32[1], cpu:0), Array([2.], f32[1], cpu:0))
    """
    if not isinstance(k, int) or k < 1:
        raise ArgumentError(f"apply_every: cannot update every {k} steps")

    def update(grads: Tree, state: EveryState, params: Tree = None) -> tuple[Tree, EveryState]:
        total = tree.map(lambda g, a: g + rnp.where(state.count == 0, 0, a), grads, state.grad_acc)
        is_last = state.count == k - 1
        total = in_dtypes("apply_every", total, state.grad_acc)
        updates = tree.map(lambda a: rnp.where(is_last, a, 0), total)
        return updates, EveryState((state.count + 1) % k, total)

    return Optimizer(lambda params: EveryState(no_steps(), tree.map(rnp.zeros_like, params)), update)


def multi_steps(inner: Optimizer, every_k_schedule: int | Callable[[Array], ArrayLike]) -> ExtraArgsOptimizer:
    """`inner` on the mean of every k gradients; updates are 0 in between.

    every_k_schedule: k, or a function from the number of full rounds to k.
    Shapes: updates, and the mean in the state, are trees like the parameters; there are also the
            state of `inner` and two counts i32 [].
    Types:  each leaf, of gradients too, in the dtype of its parameter.
    Errors: ArgumentError for a k below 1.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> slow = deprecated.multi_steps(optim.sgd(1.0), 2)
    >>> state = slow.init(rnp.zeros(1))
    >>> first, state = slow.update(rnp.array([1.0]), state)
    >>> second, state = slow.update(rnp.array([3.0]), state)
    >>> first, second
    (Array([0.], f32[1], cpu:0), Array([-2.], f32[1], cpu:0))
    """
    is_whole = isinstance(every_k_schedule, int)
    if not (callable(every_k_schedule) or (is_whole and every_k_schedule >= 1)):
        raise ArgumentError(f"multi_steps: cannot update every {every_k_schedule} steps")
    willing = with_extra_args_support(inner)

    def init(params: Tree) -> MultiStepsState:
        zeros = tree.map(rnp.zeros_like, params)
        return MultiStepsState(no_steps(), no_steps(), inner.init(params), zeros)

    def update(
        grads: Tree, state: MultiStepsState, params: Tree = None, **extra: object
    ) -> tuple[Tree, MultiStepsState]:
        k = every_k_schedule
        k = k(state.gradient_step) if callable(k) else k
        share = 1 / rnp.astype(state.mini_step + 1, "f32")
        mean = tree.map(lambda m, g: m + (g - m) * share, state.mean, grads)
        mean = in_dtypes("multi_steps", mean, state.mean)
        is_full = state.mini_step + 1 >= k

        def step(_: object) -> tuple[Tree, Tree, Tree]:
            updates, after = willing.update(mean, state.inner, params, **extra)
            updates = in_dtypes("multi_steps", updates, mean)
            return updates, after, tree.map(rnp.zeros_like, mean)

        def wait(_: object) -> tuple[Tree, Tree, Tree]:
            return tree.map(rnp.zeros_like, mean), state.inner, mean

        updates, after, mean = control.cond(is_full, step, wait, None)
        mini = rnp.where(is_full, 0, state.mini_step + 1)
        rounds = state.gradient_step + rnp.astype(is_full, "i32")
        return updates, MultiStepsState(mini, rounds, after, mean)

    return ExtraArgsOptimizer(init, update)


def apply_if_finite(inner: Optimizer, max_consecutive_errors: int) -> ExtraArgsOptimizer:
    """`inner`; where a gradient is not finite, updates are 0 and the state does not change.

    After more than `max_consecutive_errors` such gradients in a row, they are applied.
    Shapes: updates as of `inner`; the state is its state, two counts i32 [] and a bool [].
    Types:  as of `inner`.
    Errors: ArgumentError for a negative number.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> careful = deprecated.apply_if_finite(optim.sgd(1.0), 3)
    >>> careful.update(rnp.array([rnp.inf]), careful.init(rnp.zeros(1)))[0]
    Array([0.], f32[1], cpu:0)
    """
    willing = with_extra_args_support(inner)
    required_number("apply_if_finite", "max_consecutive_errors", max_consecutive_errors, 0)

    def init(params: Tree) -> FiniteState:
        return FiniteState(no_steps(), no_steps(), rnp.ones((), bool), inner.init(params))

    def update(grads: Tree, state: FiniteState, params: Tree = None, **extra: object) -> tuple[Tree, FiniteState]:
        fine = rnp.ones((), bool)
        for leaf in tree.leaves(grads):
            fine = fine & rnp.all(rnp.isfinite(leaf))
        in_a_row = rnp.where(fine, 0, state.in_a_row + 1)
        through = fine | (in_a_row > max_consecutive_errors)
        updates, after = willing.update(grads, state.inner, params, **extra)
        updates = tree.map(lambda u: rnp.where(through, u, 0), updates)
        after = tree.map(lambda new, old: rnp.where(through, new, old), after, state.inner)
        in_all = state.in_all + rnp.astype(~fine, "i32")
        return updates, FiniteState(in_a_row, in_all, fine, after)

    return ExtraArgsOptimizer(init, update)


MultiSteps = multi_steps
partition = multi_transform
