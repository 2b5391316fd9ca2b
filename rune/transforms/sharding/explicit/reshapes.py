"""The layout of a reshaped array: one axis may be split into several, or several merged into one.

    [8@a,16] -> [4@a,2,16]     mesh axes go to the outermost parts, which they must divide
    [8@a,16] -> [128@a]        the axis that is split must lead
Source: the rules of jax 0.10.2, which refuses all other reshapes of split axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rune.core.axes import Name
from rune.core.types import Shape
from rune.transforms.sharding.reshard import Layout, uncut

Names = tuple[Name, ...]
Group = tuple[range, range]  # axes of the operand and axes of the result with the same elements


def reshaped(shape: Shape, layout: Layout, target: Shape, sizes: Mapping[Name, int]) -> Layout | None:
    """The layout of the result; None if mesh axes have no place in it.

    sizes: the number of devices along each mesh axis
    """
    if not any(layout):
        return uncut(len(target))
    if shape == target:
        return layout
    counts = [size for size in (*shape, *target) if isinstance(size, int) and size]
    if len(counts) < len(shape) + len(target):
        return None  # a size is 0, or symbolic
    lengths, names = _without_ones(counts[: len(shape)], layout)
    target_lengths, _ = _without_ones(counts[len(shape) :], uncut(len(target)))
    groups = [*_groups(lengths, target_lengths)]
    if sum(len(a) != 1 or len(b) != 1 for a, b in groups) > 1:
        return None
    parts: list[Names] = []
    for axes, target_axes in groups:
        split = _regrouped([names[n] for n in axes], [target_lengths[n] for n in target_axes], sizes)
        if split is None:
            return None
        parts += split
    places = iter(parts)
    return tuple(() if size == 1 else next(places) for size in target)


def _without_ones(shape: Sequence[int], layout: Layout) -> tuple[list[int], list[Names]]:
    pairs = [(size, names) for size, names in zip(shape, layout, strict=True) if size != 1]
    return [size for size, _ in pairs], [names for _, names in pairs]


def _groups(shape: Sequence[int], target: Sequence[int]) -> Iterator[Group]:
    """The smallest runs of axes of both shapes that have as many elements."""
    i = j = 0
    while i < len(shape) and j < len(target):
        end, target_end = i + 1, j + 1
        count, target_count = shape[i], target[j]
        while count != target_count:
            if count < target_count:
                count, end = count * shape[end], end + 1
            else:
                target_count, target_end = target_count * target[target_end], target_end + 1
        yield range(i, end), range(j, target_end)
        i, j = end, target_end


def _regrouped(names: Sequence[Names], target: Sequence[int], sizes: Mapping[Name, int]) -> list[Names] | None:
    """The mesh axes of the axes of one run in the result; None where they do not fit."""
    if len(names) == len(target) == 1:
        return [*names]
    if len(names) > 1 and len(target) > 1:
        return None
    if not any(names):
        return [()] * len(target)
    cut = max(n for n, axis_names in enumerate(names) if axis_names)
    if not all(names[: cut + 1]):
        return None
    return _dealt([name for axis_names in names for name in axis_names], target, sizes)


def _dealt(names: Sequence[Name], target: Sequence[int], sizes: Mapping[Name, int]) -> list[Names] | None:
    """The mesh axes in order, for as long as they divide an axis of the result, then the next."""
    pending, parts = [*names], list[Names]()
    for size in target:
        first = len(pending)
        count = 1
        while pending and count < size:
            count *= sizes[pending[0]]
            if size % count:
                return None
            pending.pop(0)
        parts.append(tuple(names[len(names) - first : len(names) - len(pending)]))
    return None if pending else parts


def divides(names: Names, size: object, sizes: Mapping[Name, int]) -> bool:
    """Whether the devices along these mesh axes have equal parts of an axis."""
    return not isinstance(size, int) or size % math.prod(sizes[name] for name in names) == 0
