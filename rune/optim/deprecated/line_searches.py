"""Searches for a step length along the updates, by further calls of the loss.

    optimizer = optim.chain(optim.sgd(1.0), optim.scale_by_backtracking_linesearch(20))
    updates, state = optimizer.update(
        grad, state, params, value=value, grad=grad, value_fn=loss)

A search is the last part of a chain: the parts before it give the direction. It is one loop of the
program, however many lengths it tries, and stores the value and gradient at the new point: with
`value_and_grad_from_state` the next step need not compute them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import rune.numpy as rnp
from rune import control, tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.deprecated.states import ExtraArgsOptimizer, filled, inner_product, no_steps
from rune.optim.leaves import Tree, in_dtypes, real_leaves, scaled
from rune.optim.transforms import accepted, apply_updates
from rune.scipy.optimize.wolfe import Line, strong_wolfe
from rune.transforms.derivatives.grad import value_and_grad
from rune.typing import ArrayLike


class LineSearchState(NamedTuple):
    """The last length, the value and gradient at its end (None if not stored), and about the
    search: the number of lengths tried, and whether the last one meets the conditions.
    """

    learning_rate: Array
    value: Array
    grad: Tree
    steps: Array
    is_met: Array


def _is_search(x: object) -> bool:
    return isinstance(x, LineSearchState)


def _start(name: str, params: Tree, grad: Tree) -> LineSearchState:
    number = inner_product(real_leaves(name, params), params)
    return LineSearchState(rnp.ones_like(number), rnp.full_like(number, rnp.inf), grad, no_steps(), rnp.zeros((), bool))


def _known(name: str, **arguments: object) -> None:
    missing = [argument for argument, value in arguments.items() if value is None]
    if missing:
        raise ArgumentError(
            f"{name}: cannot search without {', '.join(missing)}",
            hint="call update(grads, state, params, value=value, grad=grads, value_fn=loss)",
        )


def scale_by_zoom_linesearch(
    max_linesearch_steps: int, slope_rtol: float = 1e-4, curv_rtol: float = 0.9, initial_guess_strategy: str = "keep"
) -> ExtraArgsOptimizer:
    """Updates times a length that meets the strong Wolfe conditions.

    The value falls by at least slope_rtol times the decrease along the first slope, and the slope
    at that length is at most curv_rtol times the first one. If no such length is found, the best
    one tried is used; 0 if the updates do not point downhill.
    initial_guess_strategy: the first length tried is the last result ("keep"), or 1 ("one").
    Shapes: updates, grad, and a gradient that is kept, are trees like the parameters; value [], and
            the last length, the steps and whether it is met in the state [].
    Types:  each leaf in the dtype of its parameter, floating; lengths f32 or f64, the steps i32.
    Errors: ArgumentError unless update is given params, value, grad and value_fn.
    Source: Nocedal & Wright 2006, Numerical Optimization, algorithms 3.5 and 3.6.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> loss = lambda p: rnp.sum(p**2)
    >>> o, g, p = deprecated.scale_by_zoom_linesearch(20), rnp.array([2.0]), rnp.array([1.0])
    >>> o.update(-g, o.init(p), p, value=loss(p), grad=g, value_fn=loss)[0]
    Array([-1.], f32[1], cpu:0)
    """
    name = "scale_by_zoom_linesearch"
    if initial_guess_strategy not in ("keep", "one"):
        raise ArgumentError(
            f"{name}: cannot start from {initial_guess_strategy!r}", hint='initial_guess_strategy is "keep" or "one"'
        )

    def update(
        updates: Tree,
        state: LineSearchState,
        params: Tree = None,
        *,
        value: ArrayLike | None = None,
        grad: Tree = None,
        value_fn: Any = None,
        **extra: object,
    ) -> tuple[Tree, LineSearchState]:
        _known(name, params=params, value=value, grad=grad, value_fn=value_fn)
        grad = in_dtypes(name, grad, params)
        evaluate, known = value_and_grad(value_fn), accepted(value_fn, extra)
        number = state.learning_rate.dtype

        def at(length: Array) -> Line:
            loss, slopes = evaluate(apply_updates(params, scaled(updates, length)), **known)
            slope = inner_product(slopes, updates)
            return Line(length, rnp.astype(loss, number), rnp.astype(slope, number), slopes)

        slope = rnp.astype(inner_product(grad, updates), number)
        start = Line(rnp.zeros((), number), rnp.astype(value, number), slope, grad)
        is_kept = (initial_guess_strategy == "keep") & (state.learning_rate > 0)
        first = rnp.where(is_kept, state.learning_rate, 1.0)
        end, is_met, steps = strong_wolfe(at, start, first, slope_rtol, curv_rtol, max_linesearch_steps)
        end = tree.map(lambda new, old: rnp.where(slope < 0, new, old), end, start)
        return scaled(updates, end.a), LineSearchState(end.a, end.value, end.gradient, steps, is_met)

    def init(params: Tree) -> LineSearchState:
        return _start(name, params, filled(params, 0.0))

    return ExtraArgsOptimizer(init, update)


def _require_factors(name: str, decrease_factor: float, increase_factor: float) -> None:
    if not 0 < decrease_factor < 1 <= increase_factor:
        raise ArgumentError(
            f"{name}: cannot search with {decrease_factor=} and {increase_factor=}",
            hint="the first lies between 0 and 1, the second is at least 1",
        )


def _values_along(
    params: Tree, updates: Tree, value_fn: Callable[..., Array], known: Tree, number: np.dtype
) -> Callable[[Array], Array]:
    """The value at params + length * updates, as a function of the length."""

    def value_at(length: Array) -> Array:
        point = apply_updates(params, scaled(updates, length))
        return rnp.astype(value_fn(point, **known), number)

    return value_at


def scale_by_backtracking_linesearch(
    max_backtracking_steps: int,
    slope_rtol: float = 1e-4,
    decrease_factor: float = 0.8,
    increase_factor: float = 1.5,
    max_learning_rate: float = 1.0,
    atol: float = 0.0,
    rtol: float = 0.0,
    store_grad: bool = False,
) -> ExtraArgsOptimizer:
    """Updates times a length that is shortened until the value falls enough (Armijo's rule).

    It falls enough at the length a where value(a) <= (1 + rtol) value + a slope_rtol slope + atol.
    The first length is the last one found times increase_factor, at most max_learning_rate.
    store_grad: compute and keep the gradient at the new point, for `value_and_grad_from_state`.
    Shapes: as `scale_by_zoom_linesearch`. Types: as `scale_by_zoom_linesearch`.
    Errors: ArgumentError unless update is given params, value, grad and value_fn; for factors that
    do not shorten or lengthen. Source: Nocedal & Wright 2006, Numerical Optimization, 3.1.

    >>> import rune.numpy as rnp; from rune.optim import deprecated
    >>> loss, p = lambda p: rnp.sum(p**2), rnp.array([1.0])
    >>> o = deprecated.scale_by_backtracking_linesearch(20)
    >>> rnp.round(o.update(-2 * p, o.init(p), p, value=loss(p), grad=2 * p, value_fn=loss)[0], 4)
    Array([-1.6], f32[1], cpu:0)
    """
    name = "scale_by_backtracking_linesearch"
    _require_factors(name, decrease_factor, increase_factor)

    def update(
        updates: Tree,
        state: LineSearchState,
        params: Tree = None,
        *,
        value: ArrayLike | None = None,
        grad: Tree = None,
        value_fn: Any = None,
        **extra: object,
    ) -> tuple[Tree, LineSearchState]:
        _known(name, params=params, value=value, grad=grad, value_fn=value_fn)
        number = state.learning_rate.dtype
        slope, start_value = rnp.astype(inner_product(grad, updates), number), rnp.astype(value, number)
        value_at = _values_along(params, updates, value_fn, accepted(value_fn, extra), number)

        def is_enough(length: Array, loss: Array) -> Array:
            return loss <= (1 + rtol) * start_value + slope_rtol * length * slope + atol

        first = rnp.minimum(increase_factor * state.learning_rate, max_learning_rate)
        length, loss, steps = _shortened(first, decrease_factor, value_at, is_enough, max_backtracking_steps)
        is_met = is_enough(length, loss)
        # A step to a larger value, or to NaN, gains nothing.
        length, loss = rnp.where(is_met, length, 0.0), rnp.where(is_met, loss, start_value)
        step, rate = scaled(updates, length), rnp.where(is_met, length, first)
        slopes = value_and_grad(value_fn)
        gradient = slopes(apply_updates(params, step), **accepted(value_fn, extra))[1] if store_grad else None
        return step, LineSearchState(rate, loss, gradient, steps, is_met)

    def init(params: Tree) -> LineSearchState:
        return _start(name, params, filled(params, 0.0) if store_grad else None)

    return ExtraArgsOptimizer(init, update)


def _shortened(
    first: Array,
    factor: float,
    value_at: Callable[[Array], Array],
    is_enough: Callable[[Array, Array], Array],
    most: int,
) -> tuple[Array, Array, Array]:
    """The first of first, factor · first, factor² · first, … that is enough; the value there; the
    count.
    """

    def goes_on(carry: tuple[Array, Array, Array]) -> Array:
        length, loss, steps = carry
        return ~is_enough(length, loss) & (steps < most)

    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        shorter = factor * carry[0]
        return shorter, value_at(shorter), carry[2] + 1

    return control.while_loop(goes_on, again, (first, value_at(first), rnp.ones((), "i32")))


def value_and_grad_from_state(value_fn: Callable[..., object]) -> Callable[..., tuple[Any, Tree]]:
    """`rune.value_and_grad(value_fn)`, read from `state=` if a line search stored both there.

    They are computed where the state has none yet, in the first step, or the value is not finite.
    Shapes: value [], gradient a tree like the parameters. Types: as `rune.value_and_grad`.
    Errors: ArgumentError for a state without one search that keeps them, see `store_grad`.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> value_and_grad = deprecated.value_and_grad_from_state(lambda p: rnp.sum(p**2))
    >>> value_and_grad(rnp.array([3.0]), state=deprecated.lbfgs().init(rnp.zeros(1)))
    (Array(9., f32[], cpu:0), Array([6.], f32[1], cpu:0))
    """

    def value_and_gradient(params: Tree, *args: object, state: Tree, **keywords: object) -> tuple[Array, Tree]:
        searches = filter(_is_search, tree.leaves(state, _is_search))
        candidates = [search for search in searches if search.grad is not None]
        if len(candidates) != 1:
            raise ArgumentError(
                f"value_and_grad_from_state: cannot choose among {len(candidates)} line searches "
                "that keep value and gradient",
                hint="a state of one zoom line search, or of backtracking with store_grad=True",
            )
        (last,) = candidates
        number = last.value.dtype

        def compute(_: object) -> tuple[Array, Tree]:
            value, grad = value_and_grad(value_fn)(params, *args, **keywords)
            return rnp.astype(value, number), grad

        return control.cond(rnp.isfinite(last.value), lambda _: (last.value, last.grad), compute, None)

    return value_and_gradient
