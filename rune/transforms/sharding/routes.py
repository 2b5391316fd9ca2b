"""Routes: the exchanges that lead from one layout of an array to another, with the fewest bytes.

P('a', None) -> P(None, None)     the devices of 'a' gather their blocks
P(None, None) -> P(None, 'a')     each device takes its part, and nothing is sent
P('a', None) -> P(None, 'a')      each device sends every other one the part of its block
P(('a', 'b')) -> P(('b', 'a'))    each device sends its block to the one that it belongs to

A layout is, for each axis of an array, the mesh axes that split it, the first outermost. A route is
the shortest path among the layouts whose names stand where the first or the last layout has them.

Invariant: each layout on the way has equal blocks, so an axis of unknown length only has the
           beginnings of the cuts that it has at either end.
Cost:      a few thousand layouts with four mesh axes, once for each pair of layouts; more mesh
           axes are gathered and split one after another.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, permutations

from rune.core.axes import Name
from rune.core.types import Shape
from rune.records import dataclass

Layout = tuple[tuple[Name, ...], ...]
MOST_NAMES = 4  # with more mesh axes there are too many layouts to search


@dataclass(frozen=True, slots=True)
class Gather:
    """The devices of the innermost name of an axis join their blocks."""

    axis: int
    name: Name


@dataclass(frozen=True, slots=True)
class Part:
    """Each device of a mesh axis takes its part of an axis."""

    axis: int
    name: Name


@dataclass(frozen=True, slots=True)
class Turn:
    """The innermost names of one axis split another in its place."""

    axis: int
    target: int
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Swap:
    """Each device gets the block of another layout from a device that has it."""

    source: Layout
    target: Layout


Step = Gather | Part | Turn | Swap


@dataclass(frozen=True, slots=True)
class Route:
    """Exchanges, and the share of the array that a device sends in all of them."""

    steps: tuple[Step, ...]
    share: float


def route(source: Layout, target: Layout, shape: Shape, sizes: Mapping[Name, int]) -> Route:
    """The route between two layouts of an array on a mesh with axes of these sizes."""
    lengths = tuple(size if isinstance(size, int) else None for size in shape)
    return _route(source, target, lengths, tuple(sizes.items()))


@functools.lru_cache(maxsize=4096)
def _route(
    source: Layout, target: Layout, lengths: tuple[int | None, ...], sizes: tuple[tuple[Name, int], ...]
) -> Route:
    ways = _Ways(source, target, lengths, dict(sizes))
    if len(ways.names) > MOST_NAMES:
        return ways.plain()
    # Dijkstra's algorithm. Numbers break ties, since layouts have no order.
    costs: dict[Layout, tuple[float, int]] = {source: (0.0, 0)}
    before: dict[Layout, tuple[Layout, Step]] = {}
    numbers = count(1)
    pending: list[tuple[float, int, int, Layout]] = [(0.0, 0, 0, source)]
    while pending:
        sent, messages, _, layout = heapq.heappop(pending)
        if layout == target:
            break
        if (sent, messages) > costs[layout]:
            continue
        for step, result in ways.steps(layout):
            cost = sent + ways.sent(step, layout), messages + (not isinstance(step, Part))
            if result not in costs or cost < costs[result]:
                costs[result], before[result] = cost, (layout, step)
                heapq.heappush(pending, (*cost, next(numbers), result))
    steps: list[Step] = []
    layout = target
    while layout != source:
        layout, step = before[layout]
        steps.append(step)
    return Route(tuple(reversed(steps)), costs[target][0])


@dataclass(frozen=True, slots=True)
class _Ways:
    """The steps between layouts.

    lengths: of the axes of the array; None for those that are not known
    sizes:   the number of devices along each mesh axis
    """

    source: Layout
    target: Layout
    lengths: tuple[int | None, ...]
    sizes: Mapping[Name, int]

    @property
    def names(self) -> set[Name]:
        """The mesh axes that split one of the two layouts."""
        return {name for layout in (self.source, self.target) for names in layout for name in names}

    def steps(self, layout: Layout) -> Iterator[tuple[Step, Layout]]:
        """The steps that start at a layout, and where they lead."""
        used = {name for names in layout for name in names}
        for axis, names in enumerate(layout):
            if names:
                yield Gather(axis, names[-1]), _with(layout, {axis: names[:-1]})
            for name in self._names_along(axis):
                if name not in used and self._fits(axis, longer := (*names, name)):
                    yield Part(axis, name), _with(layout, {axis: longer})
            for first in range(len(names)):
                yield from self._turns(layout, axis, names[:first], names[first:])
            for order in permutations(names) if len(names) > 1 else ():
                if order != names and self._fits(axis, order):
                    other = _with(layout, {axis: order})
                    yield Swap(layout, other), other
        if self._parts(layout) == self._parts(self.target):
            yield Swap(layout, self.target), self.target

    def _turns(
        self, layout: Layout, axis: int, outer: tuple[Name, ...], inner: tuple[Name, ...]
    ) -> Iterator[tuple[Step, Layout]]:
        for other, names in enumerate(layout):
            is_wanted = set(inner).issubset(self._names_along(other))
            if other != axis and is_wanted and self._fits(other, (*names, *inner)):
                yield Turn(axis, other, inner), _with(layout, {axis: outer, other: (*names, *inner)})

    def sent(self, step: Step, layout: Layout) -> float:
        """The share of the array that a device sends in a step."""
        block = 1 / math.prod(self._parts(layout))
        match step:
            case Gather(name=name):
                return (self.sizes[name] - 1) * block
            case Part():
                return 0.0
            case Turn(names=names):
                return block * (1 - 1 / self._size(names))
            case Swap():
                return block

    def plain(self) -> Route:
        """Gathers along names that only the source has, then parts along those of the target."""
        steps: list[Step] = []
        layout, sent = self.source, 0.0
        for axis, (names, target) in enumerate(zip(self.source, self.target, strict=True)):
            for end in range(len(names), common(names, target), -1):
                step = Gather(axis, names[end - 1])
                sent += self.sent(step, layout)
                steps.append(step)
                layout = _with(layout, {axis: names[: end - 1]})
        for axis, (names, target) in enumerate(zip(self.source, self.target, strict=True)):
            steps += [Part(axis, name) for name in target[common(names, target) :]]
        return Route(tuple(steps), sent)

    def _names_along(self, axis: int) -> tuple[Name, ...]:
        # Not a set: its order differs between processes, which have to choose the same route.
        return tuple(dict.fromkeys((*self.source[axis], *self.target[axis])))

    def _fits(self, axis: int, names: tuple[Name, ...]) -> bool:
        """Whether the devices along these mesh axes may have equal parts of an axis."""
        length = self.lengths[axis]
        if length is None:
            return names in (self.source[axis][: len(names)], self.target[axis][: len(names)])
        return length % self._size(names) == 0

    def _parts(self, layout: Layout) -> list[int]:
        return [self._size(names) for names in layout]

    def _size(self, names: Sequence[Name]) -> int:
        return math.prod(self.sizes[name] for name in names)


def _with(layout: Layout, changes: Mapping[int, tuple[Name, ...]]) -> Layout:
    return tuple(changes.get(axis, names) for axis, names in enumerate(layout))


def common(a: Sequence[Name], b: Sequence[Name]) -> int:
    """The number of names in their common beginning."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
