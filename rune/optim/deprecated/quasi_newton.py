"""L-BFGS: approximate Newton steps from the last few changes of parameters and gradients.

The inverse of the Hessian is never formed: the direction comes from two passes over the stored
changes (the two-loop recursion), each one loop of the program. The memory is a ring: leaves get a
leading axis of `memory_size`.

Source: Liu & Nocedal 1989, Mathematical Programming 45; Nocedal & Wright 2006, algorithm 7.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import control, tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.deprecated.clipping import required
from rune.optim.deprecated.line_searches import scale_by_zoom_linesearch
from rune.optim.deprecated.states import ExtraArgsOptimizer, Optimizer, filled, inner_product, no_steps
from rune.optim.leaves import Tree, in_dtypes, scaled
from rune.optim.parts import Rate, scale_by_learning_rate
from rune.optim.transforms import chain

_ZOOM = scale_by_zoom_linesearch(20, initial_guess_strategy="one")


class LbfgsState(NamedTuple):
    """Step count, the last parameters and gradients; changes of both, and 1 / their products."""

    count: Any
    params: Tree
    updates: Tree
    diff_params_memory: Tree
    diff_updates_memory: Tree
    weights_memory: Array


def scale_by_lbfgs(memory_size: int = 10, scale_init_precond: bool = True) -> Optimizer:
    """The gradient times an estimate of the Hessian's inverse from `memory_size` last changes.

    scale_init_precond: the estimate starts from the identity times the last curvature; in the first
    step times 1 / |gradient|, at most 1. A change along which the gradient does not grow is left
    out, so that a gradient always gives a direction that it goes up along.
    Shapes: updates are a tree like the parameters; the state has the last parameters and
            gradients, changes of both, [memory_size, *S] for a leaf [*S], and weights
            [memory_size].
    Types:  each leaf in the dtype of its parameter, floating or complex; weights f32 or f64,
            the count i32.
    Errors: ArgumentError for a memory of less than one change, or without parameters.
    Source: Nocedal & Wright 2006, Numerical Optimization, algorithm 7.4.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_lbfgs(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 0.6, -0.8], f32[2], cpu:0)
    """
    if not isinstance(memory_size, int) or memory_size < 1:
        raise ArgumentError(f"scale_by_lbfgs: cannot remember {memory_size!r} changes")

    def init(params: Tree) -> LbfgsState:
        zeros = filled(params, 0.0)
        ring = tree.map(lambda p: rnp.zeros((memory_size, *p.shape), p.dtype), params)
        number = inner_product(params, params).dtype
        return LbfgsState(no_steps(), zeros, zeros, ring, ring, rnp.zeros(memory_size, number))

    def update(grads: Tree, state: LbfgsState, params: Tree = None) -> tuple[Tree, LbfgsState]:
        grads = in_dtypes("scale_by_lbfgs", grads, required("scale_by_lbfgs", params))
        step, change = _difference(params, state.params), _difference(grads, state.updates)
        curvature = inner_product(step, change)
        is_kept = (state.count > 0) & (curvature > 0)
        weight = rnp.where(is_kept, 1.0 / rnp.where(is_kept, curvature, 1.0), 0.0)
        place = (state.count - 1) % memory_size

        def put(ring: Array, new: Array) -> Array:
            return ring.at[place].set(new)

        steps = tree.map(put, state.diff_params_memory, step)
        changes = tree.map(put, state.diff_updates_memory, change)
        weights = put(state.weights_memory, weight)
        size: Array | float = 1.0
        if scale_init_precond:
            last = curvature / rnp.where(is_kept, inner_product(change, change), 1.0)
            norm = rnp.sqrt(inner_product(grads, grads))
            size = rnp.where(is_kept, last, 1.0 / rnp.maximum(norm, 1.0))
        order = (state.count + rnp.arange(memory_size)) % memory_size  # the oldest first
        direction = _two_loops(grads, steps, changes, weights, order, size)
        return direction, LbfgsState(state.count + 1, params, grads, steps, changes, weights)

    return Optimizer(init, update)


def _difference(new: Tree, old: Tree) -> Tree:
    return tree.map(lambda a, b: a - b, new, old)


def _two_loops(grads: Tree, steps: Tree, changes: Tree, weights: Array, order: Array, size: Array | float) -> Tree:
    """The estimate, size at its start, times the gradients."""

    def at(ring: Tree, place: Array) -> Tree:
        return tree.map(lambda x: x[place], ring)

    def less(vector: Tree, share: Array, other: Tree) -> Tree:
        return _difference(vector, scaled(other, share))

    def back(vector: Tree, place: Array) -> tuple[Tree, Array]:
        share = weights[place] * inner_product(at(steps, place), vector)
        return less(vector, share, at(changes, place)), share

    def forth(vector: Tree, pair: tuple[Array, Array]) -> tuple[Tree, None]:
        place, share = pair
        missing = weights[place] * inner_product(at(changes, place), vector) - share
        return less(vector, missing, at(steps, place)), None

    vector, shares = control.scan(back, grads, order, reverse=True)
    return control.scan(forth, scaled(vector, size), (order, shares))[0]


def lbfgs(
    learning_rate: Rate | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: Optimizer | None = _ZOOM,
) -> ExtraArgsOptimizer:
    """Quasi-Newton steps, their lengths by a line search, for losses without noise.

    linesearch: the last part of the chain; None for steps of `learning_rate` alone.
    Shapes: updates are a tree like the parameters; the state has the last parameters and
            gradients, changes of both, [memory_size, *S] for a leaf [*S], and weights
            [memory_size].
    Types:  each leaf in the dtype of its parameter, floating; weights f32 or f64, the count i32.
    Errors: ArgumentError unless the line search is given value, grad and value_fn.
    Source: Liu & Nocedal 1989, Mathematical Programming 45.

    >>> import rune, rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> loss = lambda p: rnp.sum((p - 3.0) ** 2)
    >>> o, p = deprecated.lbfgs(), rnp.zeros(2)
    >>> value, g = rune.value_and_grad(loss)(p)
    >>> state = o.init(p)
    >>> updates, state = o.update(g, state, p, value=value, grad=g, value_fn=loss)
    >>> float(loss(optim.apply_updates(p, updates))) < float(value)
    True
    """
    rate = 1.0 if learning_rate is None else learning_rate
    direction = [scale_by_lbfgs(memory_size, scale_init_precond), scale_by_learning_rate(rate)]
    return chain(*direction, *([] if linesearch is None else [linesearch]))
