"""Index maps evaluated at some subgroups of a launch: which sectors and banks a request touches.

    x[4096*i + j] of lanes j = 32, 33, ... 63     32 elements of f32 are 128 bytes: 4 sectors
    x[i + 4096*j]                                 32 sectors

Loop variables are arrays of a row for each sampled subgroup and a column for each lane. The sampled
subgroups are spread over the launch, those of loops over their rounds, always in the same way. A
number that comes from memory (an index of a gather) is taken for random, within its bounds, and
for the same number where it was read at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rune import dims
from rune.dims import Dim, Size, Symbol
from rune.lowering.costs.launch import Axis, Launch
from rune.lowering.costs.records import DeviceRecord
from rune.lowering.kernel.expr import Const, Expr, Index, Local, Op
from rune.lowering.kernel.memory import size_of
from rune.lowering.kernel.rewrite import expr_sizes, walk_expr
from rune.lowering.kernelize.cost import estimate

SAMPLES = 8  # subgroups: a power of two, so that they meet no period of a loop by accident
_ODD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: multiples of it are spread evenly


@dataclass(frozen=True, slots=True)
class Requests:
    """What one request of a subgroup touches, the mean of the sampled ones."""

    sectors: float
    lines: float
    conflicts: float  # words of the busiest bank


@dataclass(slots=True)
class Samples:
    """Values of the names that an index may mention, of `lanes` lanes."""

    values: dict[str, np.ndarray]
    sizes: Mapping[str, int]
    lanes: int
    lets: dict[str, Expr] = field(default_factory=dict)
    memo: dict[tuple, Requests] = field(default_factory=dict)

    def inside(self, name: str, extent: int, lanes: int = 1) -> Samples:
        """The samples within a loop, of which so many rounds are lanes."""
        steps = np.arange(1, SAMPLES + 1, dtype=np.uint64).reshape(-1, 1)
        salt = np.uint64(2 * len(self.values) + 1)
        with np.errstate(over="ignore"):
            spread = (steps * salt * np.uint64(_ODD)) >> np.uint64(11)
        first = (spread % np.uint64(max(1, extent // lanes))).astype(np.int64) * lanes
        values = {**self.values, name: first + np.arange(lanes)}
        return replace(self, values=values, lanes=max(self.lanes, lanes), memo={})

    def value(self, size: Size) -> np.ndarray:
        """A dimension at all samples."""
        if not isinstance(size, Dim):
            return np.asarray(size)
        names = {s.name: s for s in dims.symbols(size)}
        return np.asarray(size_of(size, {name: self._named(s) for name, s in names.items()}))

    def _named(self, symbol: Symbol) -> np.ndarray | int:
        if symbol.name in self.values:
            return self.values[symbol.name]
        if symbol.name in self.sizes:
            return self.sizes[symbol.name]
        low, high = estimate(symbol.low), estimate(symbol.low if symbol.high is None else symbol.high)
        drawn = low + self._drawn(symbol.name) % max(1, high - low + 1)
        self.values[symbol.name] = drawn
        return drawn

    def _drawn(self, name: str) -> np.ndarray:
        """A number for each place from which the value of a local comes."""
        let = self.lets.get(name)
        if isinstance(let, Index):
            return self.value(let.dim)
        places = np.zeros((1, 1), np.uint64)
        with np.errstate(over="ignore"):
            for size in _origins(let, self.lets):
                places = places * np.uint64(3) + self.value(size).astype(np.uint64)
            mixed = (places + np.uint64(1)) * np.uint64(_ODD)
        return (mixed >> np.uint64(17)).astype(np.int64)

    def share(self, condition: Expr) -> float:
        """The share of the samples at which a condition holds; 1 where memory decides."""
        holds = self._holds(condition)
        return 1.0 if holds is None else float(np.mean(holds))

    def _holds(self, condition: Expr) -> np.ndarray | None:
        match condition:
            case Local(name=name) if name in self.lets:
                return self._holds(self.lets[name])
            case Op(name="lt", args=(a, b)):
                ends = self._number(a), self._number(b)
                return None if ends[0] is None or ends[1] is None else ends[0] < ends[1]
            case Op(name="and", args=(a, b)):
                sides = self._holds(a), self._holds(b)
                return None if sides[0] is None or sides[1] is None else sides[0] & sides[1]
        return None

    def _number(self, expr: Expr) -> np.ndarray | None:
        match expr:
            case Index(dim=dim) if all(s.name in self.values or s.name in self.sizes for s in dims.symbols(dim)):
                return self.value(dim)
            case Const():
                return np.asarray(expr.value)
        return None

    def requests(self, index: Size, itemsize: int, record: DeviceRecord) -> Requests:
        """What the lanes touch at an index.

        Indices that differ by a number of whole lines are asked once.
        """
        key = (*_pattern(index, record.line_bytes // itemsize), itemsize)
        if key not in self.memo:
            self.memo[key] = self._requests(index, itemsize, record)
        return self.memo[key]

    def _requests(self, index: Size, itemsize: int, record: DeviceRecord) -> Requests:
        # Elements are aligned and no wider than a sector, so the first byte of each is enough.
        first = np.broadcast_to(self.value(index) * itemsize, (SAMPLES, self.lanes))
        sectors, lines = _distinct(first // record.sector_bytes), _distinct(first // record.line_bytes)
        return Requests(sectors, lines, _busiest(first // 4, record.banks))


def _pattern(index: Size, line: int) -> tuple:
    if not isinstance(index, Dim):
        return (index % line,)
    return tuple(t if t.factors else t.coefficient % line for t in index.terms)


def _origins(let: Expr | None, lets: Mapping[str, Expr]) -> Iterator[Size]:
    """The indices from which a value follows: of what it loads, and of what it mentions."""
    pending = [let] if let is not None else []
    known: set[str] = set()
    while pending:
        for part in walk_expr(pending.pop()):
            yield from expr_sizes(part)
            if isinstance(part, Local) and part.name in lets and part.name not in known:
                known.add(part.name)
                pending.append(lets[part.name])


def _distinct(places: np.ndarray) -> float:
    """How many different numbers a row has, on average."""
    ordered = np.sort(places, axis=1)
    return float(np.mean(1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)))


def _busiest(words: np.ndarray, banks: int) -> float:
    """Different words of the bank that has most of them, on average."""
    most = [max(np.bincount(np.unique(row) % banks)) for row in words]
    return float(np.mean(most))


def of_launch(launch: Launch, lanes: int, sizes: Mapping[str, int]) -> Samples:
    """Samples of subgroups of `lanes` threads."""
    lanes = min(lanes, launch.group_threads)
    width = launch.group_threads
    subgroups = -(-width // lanes)
    # As many of each subgroup of a group, since conditions tell these apart.
    place = np.arange(SAMPLES) % subgroups * lanes
    group = np.arange(SAMPLES) * max(0, launch.groups - 1) // (SAMPLES - 1)
    thread = np.minimum(place.reshape(-1, 1) + np.arange(lanes), width - 1)
    if launch.threads:
        values = {**_unfolded(launch.grid, group.reshape(-1, 1)), **_unfolded(launch.threads, thread)}
    else:
        values = _unfolded(launch.grid, group.reshape(-1, 1) * width + thread)
    return Samples(values, sizes, lanes)


def _unfolded(axes: Sequence[Axis], position: np.ndarray) -> dict[str, np.ndarray]:
    """Where on each axis these positions are, the last axis fastest; those beyond stay on it."""
    values: dict[str, np.ndarray] = {}
    for axis in reversed(axes):
        extent = max(1, axis.extent)
        values[axis.name] = position % extent
        position = position // extent
    return values


def processor_samples(sizes: Mapping[str, int]) -> Samples:
    """Samples before any loop of a processor."""
    return Samples({}, sizes, 1)


__all__ = ["Requests", "Samples", "of_launch", "processor_samples"]
