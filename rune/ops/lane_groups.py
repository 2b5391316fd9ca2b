"""Groups of lanes: a collective within each group of an axis, instead of among all its lanes.

Each lane of the axis is in exactly one group. A collective has them as its parameter `groups`;
without that parameter, all lanes are one group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Rule
from rune.core.values import Value
from rune.dims import Size
from rune.ops.family import Batched, broadcast
from rune.ops.movement import concatenate, repeat_lane, slice_

if TYPE_CHECKING:
    from rune.array import Array

Groups = tuple[tuple[int, ...], ...]


def lanes_in_groups(over_lanes: Rule) -> Rule:
    """The rule `over_lanes` for a collective that may have groups."""

    def rule(batched: Batched, size: Size, *args: Value, groups: Groups = (), **params: object) -> tuple[Value, bool]:
        if not groups:
            return over_lanes(batched, size, *args, **params)
        operands = [x if b else repeat_lane(x, size) for x, b in zip(args, batched, strict=True)]
        results = [_of_group(over_lanes, group, operands, params) for group in groups]
        order = np.argsort([lane for group in groups for lane in group])
        return picked(concatenate(*results, axis=0), order.tolist()), True

    return rule


def _of_group(over_lanes: Rule, group: Sequence[int], operands: Sequence[Value], params: Mapping[str, object]) -> Value:
    """The results for the lanes of one group, in the group's order."""
    members = [picked(x, group) for x in operands]
    out, has_lanes = over_lanes((True,) * len(members), len(group), *members, **params)
    return out if has_lanes else repeat_lane(out, len(group))


def among_groups(among: Rule) -> Rule:
    """The rule `among` for a collective that may have groups."""

    def rule(operands: Sequence[np.ndarray], *, groups: Groups = (), **params: object) -> list[np.ndarray]:
        results: dict[int, np.ndarray] = {}
        for group in groups or [range(len(operands))]:
            results.update(zip(group, among([operands[n] for n in group], **params), strict=True))
        return [results[n] for n in range(len(operands))]

    return rule


def picked(lanes: Value, numbers: Sequence[int | None]) -> Array:
    """The lanes with these numbers, in this order; zeros for None."""
    return concatenate(*(_run(lanes, first, count) for first, count in _runs(numbers)), axis=0)


def _runs(numbers: Sequence[int | None]) -> list[tuple[int | None, int]]:
    """Runs of consecutive numbers, or of None: (first number or None, count)."""
    runs: list[tuple[int | None, int]] = []
    for number in numbers:
        first, count = runs[-1] if runs else (None, 0)
        if runs and number == (None if first is None else first + count):
            runs[-1] = (first, count + 1)
        else:
            runs.append((number, 1))
    return runs


def _run(lanes: Value, first: int | None, count: int) -> Value:
    shape = type_of(lanes).shape
    if first is None:
        return broadcast(literal_like(0, lanes), shape=(count, *shape[1:]), axes=())
    start = (first, *(0 for _ in shape[1:]))
    limit = (first + count, *shape[1:])
    return slice_(lanes, start=start, limit=limit, stride=tuple(1 for _ in shape))
