"""Optimizers and their parts are pairs of pure functions, so they can be chained."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.leaves import T, Tree, in_dtypes, square_of
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class GradientTransformation:
    """init(params) -> state;  update(grads, state, params) -> (updates, state).

    The state is a tree of arrays. Further inputs of an update, such as a loss, are keyword
    arguments.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> halved = optim.GradientTransformation(lambda params: (), lambda g, s, p: (g / 2, s))
    >>> halved.update(rnp.ones(1), halved.init(rnp.ones(1)), None)[0]
    Array([0.5], f32[1], cpu:0)
    """

    init: Callable[[Tree], Tree]
    update: Callable[..., tuple[Tree, Tree]]

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        """The two functions, so that `init, update = optim.adam(0.1)`."""
        return iter((self.init, self.update))


def chain(*parts: GradientTransformation) -> GradientTransformation:
    """The parts one after another: the updates of one are the gradients of the next.

    Keyword arguments of the update go to the parts that accept them.

    Shapes: updates as of the last part; the state is the tuple of theirs. Types: as of the parts.
    Errors: ArgumentError if an argument is not an optimizer, or for the state of another chain.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g = optim.chain(optim.clip(1.0), optim.sgd(0.5)), rnp.array([3.0, -4.0])
    >>> o.update(g, o.init(g))[0]
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    for part in parts:
        if not (hasattr(part, "init") and hasattr(part, "update")):
            raise ArgumentError(f"chain: cannot take {type(part).__name__} as an optimizer (init and update required)")

    def init(params: Tree) -> Tree:
        return tuple(part.init(params) for part in parts)

    def update(grads: Tree, state: Tree, params: Tree = None, **extra: object) -> tuple[Tree, Tree]:
        if not isinstance(state, tuple | list) or len(state) != len(parts):
            state_text = len(state) if isinstance(state, tuple | list) else type(state).__name__
            raise ArgumentError(f"chain: cannot use a state of {state_text} for {len(parts)} parts")
        states = []
        for part, old in zip(parts, state, strict=True):
            grads, new = part.update(grads, old, params, **accepted(part.update, extra))
            states.append(new)
        return grads, tuple(states)

    return GradientTransformation(init, update)


def accepted(function: Callable[..., object], arguments: Mapping[str, object]) -> Mapping[str, Any]:
    """Those keyword arguments that the function accepts; all of them if it accepts any."""
    known = inspect.signature(function).parameters if arguments else {}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
    return {name: value for name, value in arguments.items() if takes_any or name in known}


def stateless(rule: Callable[[Tree, Tree], Tree]) -> GradientTransformation:
    """A part of `rule(grads, params) -> updates`, without a state."""

    def update(grads: Tree, state: Tree, params: Tree = None) -> tuple[Tree, Tree]:
        return rule(grads, params), state

    return GradientTransformation(lambda params: (), update)


def apply_updates(params: T, updates: Tree) -> T:
    """params + updates, leaf by leaf, each in the dtype of its parameter.

    Shapes: a tree like params. Types: those of params.
    Errors: ArgumentError for trees that differ; ShapeError for leaves of different shapes;
            DtypeError for a complex update of a real parameter.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optim.apply_updates({"w": rnp.ones(1)}, {"w": rnp.ones(1)})
    {'w': Array([2.], f32[1], cpu:0)}
    """
    return in_dtypes("apply_updates", tree.map(rnp.add, params, updates), params)


def global_norm(updates: Tree) -> Array:
    """The Euclidean norm of all leaves together, in f32 or wider."""
    wide = (rnp.astype(x, rnp.result_type(x, "f32")) for x in tree.leaves(updates))
    return rnp.sqrt(sum((rnp.sum(square_of(x)) for x in wide), rnp.zeros(())))
