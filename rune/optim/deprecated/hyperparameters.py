"""Hyperparameters in the state: they are read, set and saved there, and traced in the step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.core.interpreter import Tracer
from rune.errors import ArgumentError
from rune.ops.promote import opened
from rune.optim.deprecated.states import ExtraArgsOptimizer, Optimizer, no_steps, with_extra_args_support
from rune.optim.leaves import Tree
from rune.transforms.arguments import require_callable


class HyperparamsState(NamedTuple):
    """Step count, the hyperparameters by name, and the optimizer's own state."""

    count: Any
    hyperparams: dict[str, Array]
    inner_state: Tree


def inject_hyperparams(
    inner_factory: Callable[..., Optimizer], static_args: str | Iterable[str] = ()
) -> Callable[..., ExtraArgsOptimizer]:
    """The factory of an optimizer that keeps its numbers in `state.hyperparams`.

    Numbers and arrays among the arguments become part of the state and may be replaced there
    between steps; schedules are evaluated at the step count. Bools, strings, None, trees of
    flags and the arguments named in `static_args` are passed on unchanged. Functions that are not
    schedules, such as masks, must be named in `static_args`.
    Shapes: updates as of the factory's optimizer; the state is its state, a count i32 [], and a
            dict of numbers [], and of arrays in their shapes.
    Types:  as of the factory's optimizer; numbers f32, arrays in their dtypes.
    Errors: ArgumentError for a name that the factory does not have.

    >>> import rune.numpy as rnp; from rune import optim; from rune.optim import deprecated
    >>> optimizer = deprecated.inject_hyperparams(optim.sgd)(1.0)
    >>> state = optimizer.init(rnp.zeros(1))
    >>> state.hyperparams["learning_rate"] = rnp.float32(0.5)
    >>> optimizer.update(rnp.array([2.0]), state)[0]
    Array([-1.], f32[1], cpu:0)
    """
    require_callable("inject_hyperparams", inner_factory)
    signature = inspect.signature(inner_factory)
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    unknown = static - set(signature.parameters)
    if unknown:
        raise ArgumentError(
            f"inject_hyperparams: cannot keep {', '.join(sorted(unknown))} static "
            f"(arguments are {', '.join(signature.parameters)})"
        )

    def factory(*args: object, **keywords: object) -> ExtraArgsOptimizer:
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        schedules, numbers, static_values = _kinds(bound.arguments, static)

        def optimizer_of(values: Mapping[str, object]) -> ExtraArgsOptimizer:
            call = inspect.BoundArguments(signature, type(bound.arguments)())
            call.arguments.update({**bound.arguments, **static_values, **values})
            return with_extra_args_support(inner_factory(*call.args, **call.kwargs))

        def at(count: Array, hyperparams: Mapping[str, object]) -> dict[str, Any]:
            rates = {name: rnp.asarray(schedule(count)) for name, schedule in schedules.items()}
            return {**hyperparams, **rates}

        def init(params: Tree) -> HyperparamsState:
            constants = {name: rnp.asarray(value) for name, value in numbers.items()}
            values = at(no_steps(), constants)
            return HyperparamsState(no_steps(), values, optimizer_of(values).init(params))

        def update(
            grads: Tree, state: HyperparamsState, params: Tree = None, **extra: object
        ) -> tuple[Tree, HyperparamsState]:
            values = at(state.count, state.hyperparams)
            updates, after = optimizer_of(values).update(grads, state.inner_state, params, **extra)
            return updates, HyperparamsState(state.count + 1, values, after)

        return ExtraArgsOptimizer(init, update)

    return factory


def _kinds(arguments: Mapping[str, object], static: set[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Schedules, numbers, and arguments that do not enter the state."""
    schedules: dict[str, object] = {}
    numbers: dict[str, object] = {}
    static_values: dict[str, object] = {}
    for name, argument in arguments.items():
        value = opened(argument)
        is_number = isinstance(value, int | float | Array | Tracer | np.ndarray | np.generic)
        if name in static or isinstance(value, bool | Optimizer):
            static_values[name] = value
        elif callable(value):
            schedules[name] = value
        elif is_number:
            numbers[name] = value
        else:
            static_values[name] = value
    return schedules, numbers, static_values
