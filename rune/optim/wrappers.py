"""Optimizers around optimizers: of some leaves only, of several steps, of finite gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import control, tree
from rune.errors import ArgumentError
from rune.optim.transforms import Optimizer, Tree, no_steps

Mask = Tree | Callable[[Tree], Tree]


class MultiStepsState(NamedTuple):
    """Gradients so far in this round, full rounds so far, the inner state, the running mean."""

    mini_step: Any
    gradient_step: Any
    inner: Tree
    mean: Tree


class FiniteState(NamedTuple):
    """Updates in a row, and in all, that were not finite; whether the last one was; inner state."""

    in_a_row: Any
    in_all: Any
    last_finite: Any
    inner: Tree


def masked(inner: Optimizer, mask: Mask) -> Optimizer:
    """`inner` on the leaves where the mask is True; the others' updates pass as they are.

    mask: a tree of bools like the parameters (or a prefix of it), or a function from them to one.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> part = optim.masked(optim.sgd(1.0), {"a": True, "b": False})
    >>> grads = {"a": rnp.ones(1), "b": rnp.ones(1)}
    >>> part.update(grads, part.init(grads))[0]
    {'a': Array([-1.], f32[1], cpu:0), 'b': Array([1.], f32[1], cpu:0)}
    """

    def chosen(values: Tree) -> list[bool]:
        wanted = mask(values) if callable(mask) else mask
        return [bool(flag) for flag in tree.broadcast_prefix(wanted, values)]

    def kept(values: Tree) -> list[Any] | None:
        if values is None:
            return None
        flags = chosen(values)
        return [x for x, flag in zip(tree.leaves(values), flags, strict=True) if flag]

    def init(params: Tree) -> Tree:
        return inner.init(kept(params))

    def update(grads: Tree, state: Tree, params: Tree = None) -> tuple[Tree, Tree]:
        found, state = inner.update(kept(grads), state, kept(params))
        following = iter(found)
        leaves, treedef = tree.flatten(grads)
        made = [
            next(following) if flag else x for x, flag in zip(leaves, chosen(grads), strict=True)
        ]
        return tree.unflatten(treedef, made), state

    return Optimizer(init, update)


def multi_transform(transforms: dict[Any, Optimizer], labels: Mask) -> Optimizer:
    """A different optimizer for each label of a tree of labels.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> both = optim.multi_transform({"x": optim.sgd(1.0), "y": optim.sgd(2.0)}, ["x", "y"])
    >>> grads = [rnp.ones(1), rnp.ones(1)]
    >>> both.update(grads, both.init(grads))[0]
    [Array([-1.], f32[1], cpu:0), Array([-2.], f32[1], cpu:0)]
    """

    def of(label: Any) -> Optimizer:
        def mask(values: Tree) -> Tree:
            given = labels(values) if callable(labels) else labels
            return tree.map(lambda x: x == label, given)

        return masked(transforms[label], mask)

    parts = {label: of(label) for label in transforms}

    def update(grads: Tree, state: Tree, params: Tree = None) -> tuple[Tree, Tree]:
        after = {}
        for label, part in parts.items():
            grads, after[label] = part.update(grads, state[label], params)
        return grads, after

    return Optimizer(lambda params: {k: part.init(params) for k, part in parts.items()}, update)


def multi_steps(inner: Optimizer, every_k_schedule: int | Callable[[Any], Any]) -> Optimizer:
    """`inner` on the mean of every k gradients; updates are 0 in between.

    every_k_schedule: k, or a function from the number of full rounds to k.
    Errors: ArgumentError for a k below 1.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> slow = optim.multi_steps(optim.sgd(1.0), 2)
    >>> state = slow.init(rnp.zeros(1))
    >>> first, state = slow.update(rnp.array([1.0]), state)
    >>> second, state = slow.update(rnp.array([3.0]), state)
    >>> first, second
    (Array([0.], f32[1], cpu:0), Array([-2.], f32[1], cpu:0))
    """
    if isinstance(every_k_schedule, int) and every_k_schedule < 1:
        raise ArgumentError(f"multi_steps: cannot update every {every_k_schedule} steps")

    def init(params: Tree) -> MultiStepsState:
        zeros = tree.map(rnp.zeros_like, params)
        return MultiStepsState(no_steps(), no_steps(), inner.init(params), zeros)

    def update(
        grads: Tree, state: MultiStepsState, params: Tree = None
    ) -> tuple[Tree, MultiStepsState]:
        k = every_k_schedule
        k = k(state.gradient_step) if callable(k) else k
        share = 1 / rnp.astype(state.mini_step + 1, "f32")
        mean = tree.map(lambda m, g: m + rnp.astype((g - m) * share, m.dtype), state.mean, grads)
        is_full = state.mini_step + 1 >= k

        def step(_: Any) -> tuple[Tree, Tree, Tree]:
            found, after = inner.update(mean, state.inner, params)
            return found, after, tree.map(rnp.zeros_like, mean)

        def wait(_: Any) -> tuple[Tree, Tree, Tree]:
            return tree.map(rnp.zeros_like, grads), state.inner, mean

        found, after, mean = control.cond(is_full, step, wait, None)
        mini = rnp.where(is_full, 0, state.mini_step + 1)
        rounds = state.gradient_step + rnp.astype(is_full, "i32")
        return found, MultiStepsState(mini, rounds, after, mean)

    return Optimizer(init, update)


def apply_if_finite(inner: Optimizer, max_consecutive_errors: int) -> Optimizer:
    """`inner`, but updates 0 and its state as it was where a gradient is not finite.

    After more than `max_consecutive_errors` such gradients in a row they are let through.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> careful = optim.apply_if_finite(optim.sgd(1.0), 3)
    >>> careful.update(rnp.array([rnp.inf]), careful.init(rnp.zeros(1)))[0]
    Array([0.], f32[1], cpu:0)
    """

    def init(params: Tree) -> FiniteState:
        return FiniteState(no_steps(), no_steps(), rnp.ones((), bool), inner.init(params))

    def update(grads: Tree, state: FiniteState, params: Tree = None) -> tuple[Tree, FiniteState]:
        fine = rnp.ones((), bool)
        for leaf in tree.leaves(grads):
            fine = fine & rnp.all(rnp.isfinite(leaf))
        in_a_row = rnp.where(fine, 0, state.in_a_row + 1)
        through = fine | (in_a_row > max_consecutive_errors)
        found, after = inner.update(grads, state.inner, params)
        found = tree.map(lambda u: rnp.where(through, u, 0), found)
        after = tree.map(lambda new, old: rnp.where(through, new, old), after, state.inner)
        in_all = state.in_all + rnp.astype(~fine, "i32")
        return found, FiniteState(in_a_row, in_all, fine, after)

    return Optimizer(init, update)
