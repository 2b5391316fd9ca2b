"""How much memory touches span, and how much of it passes through a cache of some size.

    for k in 64 serial { s add= x[64*i + k] * w[k] }    of 32 points i: 8 KB of x, 256 B of w

A footprint consists of runs: strides, from the smallest up, either lengthen a run or repeat it. A
cache lets through what is touched for the first time, and whatever does not survive from one round
of a loop to the next: a whole loop counts once if the touches of one round fit. Runs whose distance
is a multiple of a power of two share few sets of a cache, and fill it sooner: 512 lines of a column
of f32[512,512] take all of 1 MB.

Invariant: a larger cache never lets more through.
Source: reuse by working sets of loop nests, as in M. Wolf & M. Lam, "A Data Locality Optimizing
Algorithm", 1991.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from rune import dims
from rune.dims import Dim, FloorDiv, Size, Symbol
from rune.dims.factors import Factor, Term, terms_of
from rune.lowering.costs.reading import Block, Touch
from rune.lowering.kernel.nodes import AddressSpace
from rune.lowering.kernelize.cost import estimate

_EVEN: Mapping[str, float] = {}
Extents = Mapping[str, int]  # how many values each loop takes at the same time, or in all


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """`count` places at a distance of `stride` elements, or at random among `among` places."""

    stride: int
    count: int
    among: int = 0


@dataclass(frozen=True, slots=True)
class Room:
    """A cache, or a share of one: its bytes, and its sets, which low bits of an address select.

    sets: 1 if a line may lie anywhere, or if other bits select the set as well
    """

    bytes: float
    sets: int = 1


@dataclass(slots=True)
class _Group:
    """Touches of one block that differ by constants: one of them, and the constants."""

    touch: Touch
    terms: tuple[Term, ...]
    loops: tuple[str, ...]  # on which their index depends
    offsets: set[int] = field(default_factory=set)
    threads: float = 0.0  # the share of threads that touches it


@dataclass(slots=True)
class _Span:
    """Touches that span the same steps; at random, only those at the same random numbers."""

    steps: tuple[Step, ...]
    itemsize: int
    offsets: set[int] = field(default_factory=set)
    threads: float = 0.0  # the share of threads that touches it


@dataclass(slots=True)
class Footprints:
    """Footprints of the blocks of one kernel.

    sizes: bytes of each buffer;  sector_bytes: the smallest transfer
    weights: the time of a byte of each buffer, in bytes of streaming; 1 by default (see `starting`)
    """

    sizes: Mapping[str, int]
    sector_bytes: int
    groups: dict[Block, tuple[_Group, ...]] = field(default_factory=dict)
    steps: dict[tuple, tuple[Step, ...]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def starting(self, block: Block, start_lines: float, registers: int) -> Footprints:
        """The same, with the weight of each buffer, which counts the starts of its runs.

        A processor prefetches along lines, and waits where a walk continues elsewhere: a vector
        times 4 MB of a matrix took 220, 90, 80 and 55 µs by columns of 128, 256, 512 and 1,024
        bytes, and 100 by every other line.

        start_lines: the time to find the next run, in lines;  registers: of a vector
        """
        lines: dict[str, float] = {}
        runs: dict[str, float] = {}
        pending: list[tuple[tuple[Block, ...], float]] = [((block,), 1.0)]
        while pending:
            around, times = pending.pop()
            innermost = around[-1]
            times *= innermost.rounds * innermost.share
            for group in self._groups(innermost):
                length, rounds = self._run(group, around, registers)
                name = group.touch.buffer
                lines[name] = lines.get(name, 0.0) + times / rounds * length
                runs[name] = runs.get(name, 0.0) + times / rounds
            pending += [((*around, inner), times) for inner in innermost.inner]
        return replace(
            self, weights={name: 1 + start_lines * runs[name] / lines[name] for name in lines if lines[name]}
        )

    def _run(self, group: _Group, around: Sequence[Block], registers: int) -> tuple[int, int]:
        """The number of lines touched in a row, and of the rounds of loops that touch them."""
        inside = {b.var: min(b.extent, b.lanes * registers) if b.lanes > 1 else 1 for b in around if b.var}
        runs, rounds = self._runs(group, inside), 1
        length = runs.length
        for block in reversed(around):
            if block.var is None:
                continue
            longer = self._runs(group, {**inside, block.var: block.extent})
            if longer.length <= runs.length and block.var in group.loops:
                break
            inside[block.var], rounds = block.extent, rounds * block.rounds
            if longer.pieces < runs.pieces:
                # Runs side by side, each of which ends where the next one began.
                length = min(longer.length, *(step.stride for step in runs.apart))
                break
            runs, length = longer, longer.length
        return math.ceil(length / self.sector_bytes), rounds

    def _runs(self, group: _Group, extents: Extents) -> Runs:
        return runs_of(self._steps(group, extents), group.touch.itemsize, group.offsets, self.sector_bytes)

    def through(self, block: Block, extents: Extents, room: Room) -> float:
        """The bytes that pass through a cache with this room, for all rounds of a block."""
        rounds = [(block, _over(block, extents))]
        together = self._union(rounds, weights=self.weights)
        # If everything fits, each byte passes once.
        if self._union(rounds, room.sets) <= room.bytes:
            return together
        inside = extents if block.var is None else {**extents, block.var: extents.get(block.var, 1) * block.lanes}
        parts = [(b, _over(b, inside)) for b in block.inner]
        alone = replace(block, inner=())
        self.groups[alone] = self._groups(block)
        # If one round fits, what it has in common with the next one survives until then.
        if self._union([(alone, inside), *parts], room.sets) <= room.bytes:
            return together
        # Else the bytes of a round pass again in every round.
        bytes_per_round = self._union([(alone, inside)], weights=self.weights) + sum(
            self.through(b, inside, room) for b in block.inner
        )
        return max(together, block.rounds * bytes_per_round)

    def _union(
        self, blocks: Iterable[tuple[Block, Extents]], sets: int = 1, weights: Mapping[str, float] = _EVEN
    ) -> float:
        """The bytes that all rounds of these blocks touch together, each with its extents inside.

        sets:    of a cache, for the bytes that they occupy in it
        weights: of buffers, 1 by default
        """
        spans: dict[str, dict[tuple, _Span]] = {}
        pending = list(blocks)
        while pending:
            block, inside = pending.pop()
            for group in self._groups(block):
                self._collect(group, inside, spans.setdefault(group.touch.buffer, {}))
            pending += [(b, _over(b, inside)) for b in block.inner]
        sizes = {name: self._of_buffer(name, buffer_spans, sets) for name, buffer_spans in spans.items()}
        return sum(weights.get(name, 1.0) * size for name, size in sizes.items())

    def _groups(self, block: Block) -> tuple[_Group, ...]:
        """The touches of a block itself; those of shared memory pass through no cache."""
        if block not in self.groups:
            groups: dict[tuple, _Group] = {}
            for touch in block.touches:
                if touch.space is AddressSpace.SHARED or not touch.threads:
                    continue
                terms = tuple(t for t in terms_of(touch.index) if t.factors)
                loops = tuple(sorted(frozenset[str]().union(*touch.origins.values())))
                group = groups.setdefault((touch.buffer, terms), _Group(touch, terms, loops))
                first = sum(t.coefficient for t in terms_of(touch.index) if not t.factors)
                group.offsets.update(range(first, first + touch.count))
                group.threads = max(group.threads, touch.threads)
            self.groups[block] = tuple(groups.values())
        return self.groups[block]

    def _collect(self, group: _Group, extents: Extents, spans: dict[tuple, _Span]) -> None:
        steps = self._steps(group, extents)
        at_random = group.terms if any(s.among for s in steps) else ()
        span = spans.setdefault((steps, at_random), _Span(steps, group.touch.itemsize))
        span.offsets |= group.offsets
        span.threads = max(span.threads, group.threads)

    def _steps(self, group: _Group, extents: Extents) -> tuple[Step, ...]:
        """The steps of an index while each loop takes its number of values."""
        touch = group.touch
        if touch.space is AddressSpace.LOCAL:
            # All of the array, for every thread at the same time.
            threads = math.prod(extents.values())
            return (Step(1, self.sizes[touch.buffer] // touch.itemsize * threads),)
        key = (group.terms, *(extents.get(n, 1) for n in group.loops))
        if key not in self.steps:
            self.steps[key] = tuple(sorted(s for t in group.terms for s in _steps(t, extents, touch)))
        return self.steps[key]

    def _of_buffer(self, name: str, spans: Mapping[tuple, _Span], sets: int) -> float:
        """The bytes of a buffer in spans of different forms, at most all of it."""
        runs = [(s.threads, runs_of(s.steps, s.itemsize, s.offsets, self.sector_bytes)) for s in spans.values()]
        parts = [threads * r.bytes(self.sector_bytes) for threads, r in runs]
        share = min(1.0, (self.sizes.get(name, math.inf) + self.sector_bytes) / max(1.0, sum(parts)))
        return share * sum(size * r.crowding(self.sector_bytes, sets) for size, (_, r) in zip(parts, runs, strict=True))


def _over(block: Block, extents: Extents) -> Extents:
    """The extents over all rounds of a block."""
    if block.var is None:
        return extents
    return {**extents, block.var: block.extent}


def _steps(term: Term, extents: Extents, touch: Touch) -> Iterator[Step]:
    """The step of a term; a product of loop variables reaches as far as its parts."""
    count, points, among = 1, 1, 0
    for factor in term.factors:
        names = {s.name for s in _symbols(factor)}
        loops = frozenset[str]().union(*(touch.origins[n] for n in names if n in touch.origins))
        values = math.prod(extents.get(n, 1) for n in loops)
        # A number from memory takes no more values than there are places where it is read.
        points *= min(values, *(_reach_of(touch.sources.get(n, values), extents, values) for n in names))
        if names <= loops:
            count *= _values(factor, extents)
        else:
            among = max(among, *(_range(s) for s in _symbols(factor)))
    if among:
        yield Step(abs(term.coefficient), points, among)
    elif min(count, points) > 1:
        yield Step(abs(term.coefficient), min(count, points))


def _symbols(factor: Factor) -> Iterable[Symbol]:
    return (factor,) if isinstance(factor, Symbol) else dims.symbols(factor.numerator)


def _range(symbol: Symbol) -> int:
    high = symbol.low if symbol.high is None else symbol.high
    return estimate(high) - estimate(symbol.low) + 1


def _reach_of(index: Size, extents: Extents, most: int) -> int:
    """The most places that an index reaches; `most` for a number."""
    if not isinstance(index, Dim):
        return most
    return 1 + sum(abs(t.coefficient) * (_reach(t, extents) - 1) for t in terms_of(index) if t.factors)


def _values(factor: Factor, extents: Extents) -> int:
    """How many values a factor takes."""
    if isinstance(factor, Symbol):
        return extents.get(factor.name, 1)
    reach = _reach_of(factor.numerator, extents, 1)
    divisor = max(1, estimate(factor.denominator))
    return (reach - 1) // divisor + 1 if isinstance(factor, FloorDiv) else min(reach, divisor)


def _reach(term: Term, extents: Extents) -> int:
    return math.prod(_values(f, extents) for f in term.factors)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of bytes without gaps, all of one length.

    apart:     steps from run to run, in bytes
    at_random: steps from run to run at random
    """

    length: float
    apart: tuple[Step, ...]
    at_random: tuple[Step, ...]

    @property
    def pieces(self) -> int:
        """How many runs there are, apart from those at random."""
        return math.prod(step.count for step in self.apart)

    def bytes(self, sector_bytes: int) -> float:
        """The bytes of the sectors that they touch."""
        # A run that does not fill whole sectors may begin anywhere in the first.
        sectors = math.ceil(self.length / sector_bytes)
        pieces = math.prod(float(s.count) for s in self.apart)
        for step in self.at_random:
            among = max(1.0, step.among * step.stride / (sector_bytes * sectors))
            pieces *= among * -math.expm1(-step.count / among)
        return pieces * sectors * sector_bytes

    def crowding(self, line_bytes: int, sets: int) -> float:
        """Lines of a cache that they occupy per line that they touch, since they share few sets.

        >>> [runs_of([Step(512, count)], 4).crowding(64, 1024) for count in (8, 512)]
        [1.0, 32.0]
        """
        lines = math.ceil(self.length / line_bytes)
        distance = math.gcd(sets, *(max(1, s.stride // line_bytes) for s in self.apart))
        reachable_sets = min(sets, sets // distance * min(lines, distance))
        return sets / reachable_sets if lines * math.prod(s.count for s in self.apart) > reachable_sets else 1.0


def runs_of(steps: Iterable[Step], itemsize: int, offsets: Iterable[int] = (0,), least: int = 32) -> Runs:
    """The runs that some steps form, from each of some offsets.

    least: bytes up to which a stride does not separate two runs
    >>> runs_of([Step(1, 64), Step(4096, 8)], 4).bytes(32)
    2048.0
    >>> runs_of([Step(4096, 64)], 4, {0, 1}).bytes(32)
    2048.0
    """
    length, apart, at_random = float(itemsize), [], []
    for step in sorted((*steps, *_between(sorted(offsets), least // itemsize))):
        byte_step = replace(step, stride=step.stride * itemsize)
        if step.among:
            at_random.append(byte_step)
        elif byte_step.stride <= max(length, least):
            length += byte_step.stride * (step.count - 1)
        else:
            apart.append(byte_step)
    return Runs(length, tuple(apart), tuple(at_random))


def _between(offsets: list[int], near: int) -> list[Step]:
    """Offsets as steps of mean distances: within clusters of near offsets, and between clusters.

    >>> _between([0, 1, 2, 3, 256, 257, 258, 259], 16)
    [Step(stride=1, count=4, among=0), Step(stride=256, count=2, among=0)]
    """
    gaps = [b - a for a, b in pairwise(offsets)]
    wide = [gap for gap in gaps if gap > near]
    clusters, inside = 1 + len(wide), len(gaps) - len(wide)
    within = max(1, (sum(gaps) - sum(wide)) // max(1, inside))
    gaps_per_cluster = -(-inside // clusters)
    steps = [Step(within, 1 + gaps_per_cluster)] if inside else []
    return [*steps, Step((sum(wide) // len(wide)) + within * gaps_per_cluster, clusters)] if wide else steps


__all__ = ["Extents", "Footprints", "Room", "Step", "runs_of"]
