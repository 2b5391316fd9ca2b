"""Second copies of the parameters: averages along the path, and Lookahead's slow weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import control, tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.deprecated.states import ExtraArgsOptimizer, Optimizer, no_steps, with_extra_args_support
from rune.optim.leaves import Tree, same_shape
from rune.typing import ArrayLike


class LookaheadParams(NamedTuple):
    """The parameters at which gradients are taken, and the slow ones, for evaluation.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> deprecated.LookaheadParams(fast=rnp.ones(1), slow=rnp.zeros(1)).slow
    Array([0.], f32[1], cpu:0)
    """

    fast: Tree
    slow: Tree

    @classmethod
    def init_synced(cls, params: Tree) -> LookaheadParams:
        """Both copies at one point.

        >>> import rune.numpy as rnp
        >>> from rune.optim import deprecated
        >>> deprecated.LookaheadParams.init_synced(rnp.ones(1)).slow
        Array([1.], f32[1], cpu:0)
        """
        return cls(params, params)


class LookaheadState(NamedTuple):
    """The fast optimizer's state, and the number of steps since the copies were synchronised."""

    fast_state: Tree
    steps_since_sync: Array


def incremental_update(new_tensors: Tree, old_tensors: Tree, step_size: Any) -> Tree:
    """step_size new + (1 - step_size) old, leaf by leaf, in the dtypes of the old.

    Of parameters after every step: Polyak's average, or a target network that follows slowly.
    Shapes: two trees alike -> one like them; step_size []. Types: as old_tensors.
    Source: Polyak & Juditsky 1992, SIAM J. Control Optim. 30.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers as
            `new_tensors`.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> deprecated.incremental_update(rnp.array([4.0]), rnp.array([2.0]), 0.5)
    Array([3.], f32[1], cpu:0)
    """

    def leaf(new: Array, old: Array) -> Array:
        old_share = (1 - step_size) * same_shape("incremental_update", old, new)
        return rnp.astype(step_size * new + old_share, rnp.result_type(old))

    return tree.map(leaf, new_tensors, old_tensors)


def periodic_update(new_tensors: Tree, old_tensors: Tree, steps: ArrayLike, update_period: int) -> Tree:
    """The new tensors where `steps` is a multiple of `update_period`, else the old ones.

    Shapes: two trees alike -> one like them; steps []. Types: the same in both; steps an integer.
    Errors: ArgumentError for a period below 1.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> deprecated.periodic_update(rnp.array([4.0]), rnp.array([2.0]), 3, 2)
    Array([2.], f32[1], cpu:0)
    """
    period = _period("periodic_update", update_period)
    return control.cond(
        rnp.equal(rnp.remainder(steps, period), 0), lambda a, b: a, lambda a, b: b, new_tensors, old_tensors
    )


def _period(name: str, period: int) -> int:
    if not isinstance(period, int) or period < 1:
        raise ArgumentError(f"{name}: cannot update every {period} steps")
    return period


def lookahead(
    fast_optimizer: Optimizer, sync_period: int, slow_step_size: float, reset_state: bool = False
) -> ExtraArgsOptimizer:
    """Slow parameters that follow the fast ones by a fraction, once every `sync_period` steps.

    Its parameters are `LookaheadParams`; gradients are those at `params.fast`. At the end of each
    round the fast parameters restart from the slow ones; with reset_state, so does their state.
    Keyword arguments of the fast optimizer are passed on to it.

    Shapes: gradients as `params.fast`; updates two such trees; the state that of the fast optimizer
            and a count i32 [].
    Types:  each leaf in the dtype of its parameter.
    Errors: ArgumentError for a period below 1, or other parameters.
    Source: Zhang et al. 2019, arXiv:1907.08610.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> from rune.optim import deprecated
    >>> optimizer = deprecated.lookahead(optim.sgd(1.0), 1, 0.5)
    >>> params = deprecated.LookaheadParams.init_synced(rnp.zeros(1))
    >>> updates, _ = optimizer.update(rnp.array([2.0]), optimizer.init(params), params)
    >>> updates
    LookaheadParams(fast=Array([-1.], f32[1], cpu:0), slow=Array([-1.], f32[1], cpu:0))
    """
    period = _period("lookahead", sync_period)
    willing = with_extra_args_support(fast_optimizer)

    def init(params: Tree) -> LookaheadState:
        return LookaheadState(willing.init(_pair(params).fast), no_steps())

    def update(
        grads: Tree, state: LookaheadState, params: Tree = None, **extra: object
    ) -> tuple[LookaheadParams, LookaheadState]:
        fast, slow = _pair(params)
        updates, after = willing.update(grads, state.fast_state, fast, **extra)
        is_end = state.steps_since_sync == period - 1

        def slow_step(u: Array, f: Array, s: Array) -> Array:
            return rnp.where(is_end, rnp.astype(slow_step_size * (f + u - s), s.dtype), 0)

        slow_updates = tree.map(slow_step, updates, fast, slow)
        fast_updates = tree.map(
            lambda u, f, s, move: rnp.where(is_end, s + move - f, u), updates, fast, slow, slow_updates
        )
        if reset_state:
            anew = willing.init(fast)
            after = tree.map(lambda new, old: rnp.where(is_end, new, old), anew, after)
        steps = (state.steps_since_sync + 1) % period
        return LookaheadParams(fast_updates, slow_updates), LookaheadState(after, steps)

    return ExtraArgsOptimizer(init, update)


def _pair(params: Tree) -> LookaheadParams:
    if not isinstance(params, LookaheadParams):
        raise ArgumentError(
            f"lookahead: cannot step {type(params).__name__} (LookaheadParams required)",
            hint="params = optim.LookaheadParams.init_synced(params)",
        )
    return params
