"""Classes that say themselves which of their parts have lanes under `vmap`.

JAX has them by `jax.interpreters.batching.register_vmappable`. The two functions of such a class
are called with parts in place of values: what they split becomes the axis of its leaves, and what
they pass on is the same for all lanes. So objects stay trees, and `vmap` sees axes of leaves as
always.
Not done: objects of one lane that are of another class, or have other parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NoReturn

from rune import tree
from rune.errors import TransformError
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class LaneClass:
    """A class with the functions by which it splits its objects into lanes, and joins them."""

    to_lane: Callable[..., object]  # each(part, axis), lane number, object, axis
    from_lane: Callable[..., object]  # each(size, part, axis), size, object, axis


CLASSES: dict[type, LaneClass] = {}


@dataclass(frozen=True, slots=True)
class _Part:
    """In place of a leaf: the axis of its lanes."""

    axis: int | None


def argument_axes(arguments: object, axes: Sequence[int | None]) -> list[int | None]:
    """The axis of each leaf of `arguments`: of `axes`, which hold where no such class decides."""

    def split(kind: LaneClass, value: object, axis: int | None) -> object:
        return kind.to_lane(_each, _lane_number, value, axis)

    return _refined(arguments, axes, split)


def result_axes(results: object, axes: Sequence[int | None], size: object) -> list[int | None]:
    """The axis of each leaf of `results`: of `axes`, which hold where no such class decides."""

    def joined(kind: LaneClass, value: object, axis: int | None) -> object:
        return kind.from_lane(lambda _, part, a: _each(part, a), size, value, axis)

    return _refined(results, axes, joined)


def _refined(
    values: object, axes: Sequence[int | None], ask: Callable[[LaneClass, object, int | None], object]
) -> list[int | None]:
    if not CLASSES:
        return list(axes)
    following, refined = iter(axes), list[int | None]()
    for value in tree.leaves(values, is_leaf=lambda x: type(x) in CLASSES):
        kind = CLASSES.get(type(value))
        value_axes = list(islice(following, 1 if kind is None else len(tree.leaves(value))))
        refined += value_axes if kind is None else _parts(value, value_axes, kind, ask)
    return refined


def _parts(
    value: object, axes: Sequence[int | None], kind: LaneClass, ask: Callable[[LaneClass, object, int | None], object]
) -> list[int | None]:
    name = type(value).__name__
    if len(set(axes)) > 1:
        raise TransformError(f"vmap: cannot split a {name} by several axes ({axes}), as its class splits it by one")
    parts = tree.leaves(ask(kind, value, axes[0] if axes else None), is_leaf=lambda x: isinstance(x, _Part))
    if len(parts) != len(axes):
        raise TransformError(f"vmap: cannot split a {name} of {len(axes)} arrays into lanes with {len(parts)}")
    return [part.axis if isinstance(part, _Part) else None for part in parts]


def _each(part: object, axis: int | None) -> object:
    return tree.map(lambda _: _Part(axis), part)


def _lane_number() -> NoReturn:
    raise TransformError("vmap: cannot tell a class the number of a lane (its objects are split before there is one)")
