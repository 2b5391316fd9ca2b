"""Index maps evaluated at some subgroups of a launch: which sectors and banks a request touches.

    x[4096*i + j] of lanes j = 32, 33, ... 63     32 elements of f32 are 128 bytes: 4 sectors
    x[i + 4096*j]                                 32 sectors

Loop variables are arrays with a row for each sampled subgroup and a column for each lane. The
samples are spread over the launch and over the rounds of loops, always in the same way. A number
that comes from memory (an index of a gather) counts as random, within its bounds, but as the same
number if it is read from the same place. Lanes in which a condition does not hold touch nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rune import dims
from rune.dims import Dim, Size, Symbol
from rune.lowering.costs.launch import Axis, Launch
from rune.lowering.costs.records import DeviceRecord
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.memory import size_of
from rune.lowering.kernel.rewrite import expr_sizes, names_in, walk_expr
from rune.lowering.kernel.scalar import SCALAR_MEANING, bitcast, convert
from rune.lowering.kernelize.cost import estimate
from rune.lowering.lanes.choose import WIDEST
from rune.records import dataclass

SAMPLES = 16  # subgroups
LONGEST = 1 << 12  # the most rounds of a loop that are all evaluated
_DRAWN = 1 << 47  # bound of the random numbers
_ODD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: its multiples are spread evenly
_WORD = 4  # bytes of a bank
# Accesses of a vector of elements a few apart, and as many instructions that move its lanes.
_OF_STEP = {0: 1.0, 1: 1.0, **{step: 4.0 * step for step in range(2, WIDEST + 1)}}
_UNKNOWN = 256  # numbers from memory that all lanes share are assumed to be below it


_Meter = Callable[[np.ndarray, int, DeviceRecord], "Requests"]  # of places and the bytes at each


@dataclass(frozen=True, slots=True)
class Requests:
    """What one request of a subgroup touches, as a mean over the samples."""

    sectors: float
    lines: float
    conflicts: float  # words of the busiest bank


@dataclass(slots=True)
class Samples:
    """Values of the names that an index may mention.

    active: the lanes that run;  lanes_of_all: the share of lanes that run at the start
    lets:   locals bound so far;  known: locals evaluated so far
    """

    values: dict[str, np.ndarray]
    sizes: Mapping[str, int]
    active: np.ndarray
    lanes_of_all: float = 1.0
    lets: dict[str, Expr] = field(default_factory=dict)
    known: dict[str, np.ndarray | None] = field(default_factory=dict)
    memo: dict[tuple, Requests] = field(default_factory=dict)

    @property
    def lanes(self) -> int:
        """Threads of a subgroup."""
        return self.active.shape[1]

    @property
    def threads(self) -> float:
        """The share of the launch's threads that run."""
        return float(self.active.mean()) / self.lanes_of_all

    # --- where ---------------------------------------------------------------------------------

    def inside(self, name: str, extent: int, lanes: int = 1) -> Samples:
        """The samples inside a loop, `lanes` of whose rounds run in step."""
        steps = np.arange(1, SAMPLES + 1, dtype=np.uint64).reshape(-1, 1)
        # A factor for each depth, so that the samples of nested loops are not the same.
        salt = np.uint64(2 * len(self.values) + 1)
        with np.errstate(over="ignore"):
            spread = (steps * salt * np.uint64(_ODD)) >> np.uint64(11)
        first = (spread % np.uint64(max(1, extent // lanes))).astype(np.int64) * lanes
        active = np.broadcast_to(self.active, (SAMPLES, max(self.lanes, lanes)))
        values = {**self.values, name: first + np.arange(lanes)}
        return replace(self, values=values, active=active, lets=dict(self.lets), known={}, memo={})

    def where(self, condition: Expr) -> tuple[tuple[float, Samples], tuple[float, Samples]]:
        """The samples where a condition holds, and those where it does not, each with its share of
        subgroups."""
        holds = self._evaluated(condition)
        if holds is None:
            return (1.0, self), (1.0, self)
        (share, inside), (other, outside) = self._only(holds), self._only(~holds)
        exact = self._of_rounds(condition)
        if exact is None or not share:
            return (share, inside), (other, outside)
        return (exact, inside), (1 - exact if other else 0.0, outside)

    def _of_rounds(self, condition: Expr) -> float | None:
        """The share of a loop's rounds where a condition holds that depends on that loop alone."""
        sizes = [x for e in walk_expr(condition) for x in expr_sizes(e) if isinstance(x, Dim)]
        loops = {s.name: s.high for x in sizes for s in dims.symbols(x) if s.name in self.values}
        if names_in(condition) != loops.keys() or len(loops) != 1 or not self.active.all():
            return None
        ((name, last),) = loops.items()
        if self.values[name].shape[-1] != 1 or not isinstance(last, int) or last > LONGEST:
            return None
        rounds = np.arange(last + 1).reshape(-1, 1)
        holds = replace(self, values={**self.values, name: rounds})._evaluated(condition)
        return None if holds is None else float(np.mean(np.broadcast_to(holds, rounds.shape)))

    def _only(self, lanes: np.ndarray) -> tuple[float, Samples]:
        active = self.active & lanes
        before = np.count_nonzero(self.active.any(axis=1))
        share = np.count_nonzero(active.any(axis=1)) / max(1, before)
        return float(share), replace(self, active=active, lets=dict(self.lets), memo={})

    # --- values --------------------------------------------------------------------------------

    def value(self, size: Size) -> np.ndarray:
        """The values of a dimension at all samples."""
        if not isinstance(size, Dim):
            return np.asarray(size, np.int64)
        return np.asarray(size_of(size, {s.name: self._named(s) for s in dims.symbols(size)}.__getitem__))

    def _named(self, symbol: Symbol) -> np.ndarray | int:
        if symbol.name in self.values:
            return self.values[symbol.name]
        if symbol.name in self.sizes:
            return self.sizes[symbol.name]
        low, high = estimate(symbol.low), estimate(symbol.low if symbol.high is None else symbol.high)
        number = self._local(symbol.name)
        if number is None:
            count = min(max(1, high - low + 1), _DRAWN)  # the full range of an i64 overflows an i64
            number = low + self._drawn(symbol.name) % count
        return np.clip(np.asarray(number).astype(np.int64), low, high)

    def _drawn(self, name: str) -> np.ndarray:
        """A random number for each place from which the value of a local comes."""
        places = np.zeros((1, 1), np.uint64)
        with np.errstate(over="ignore"):
            for size in _origins(name, self.lets):
                places = places * np.uint64(3) + self.value(size).astype(np.uint64)
            hashes = (places + np.uint64(1)) * np.uint64(_ODD)
        return (hashes >> np.uint64(17)).astype(np.int64)

    def _local(self, name: str) -> np.ndarray | None:
        """The value of a local; None if memory decides it for every lane."""
        if name not in self.known:
            self.known[name] = self._evaluated(self.lets[name]) if name in self.lets else None
        return self.known[name]

    def _evaluated(self, expr: Expr) -> np.ndarray | None:
        match expr:
            case Const():
                return np.asarray(expr.value)
            case Index(dim=dim):
                return self.value(dim)
            case Local(name=name):
                return self._local(name)
            case Load(indices=(index,), dtype=dtype):
                place = self.value(index)
                is_common = place.ndim < 2 or place.shape[1] == 1
                return _mixed(place, dtype) if is_common else None
            case Cast(arg=arg, dtype=dtype):
                value = self._evaluated(arg)
                return None if value is None else np.asarray(convert(value, dtype))
            case Op(name=name, args=args, dtype=dtype):
                return self._computed(name, args, dtype)
        return None

    def _computed(self, name: str, args: Sequence[Expr], dtype: np.dtype) -> np.ndarray | None:
        values: list[np.ndarray] = []
        for arg in args:
            value = self._evaluated(arg)
            if value is None:
                return None
            values.append(value)
        if name == "bitcast":
            return np.asarray(bitcast(values[0], dtype))
        return np.asarray(SCALAR_MEANING[name](*values)) if name in SCALAR_MEANING else None

    # --- requests ------------------------------------------------------------------------------

    def requests(self, index: Size, itemsize: int, width: int, record: DeviceRecord) -> Requests:
        """The requests of the lanes to global memory, each of this many bytes from an index on."""
        meter = _in_vector if record.is_processor else _lines
        return self._requests(index, itemsize, width, record, meter)

    def shared_requests(self, index: Size, itemsize: int, width: int, record: DeviceRecord) -> Requests:
        """The requests of the lanes to the memory that a group shares."""
        return self._requests(index, itemsize, width, record, _banks)

    def _requests(self, index: Size, itemsize: int, width: int, record: DeviceRecord, meter: _Meter) -> Requests:
        # Indices that differ by whole lines are evaluated once.
        key = (*_pattern(index, record.line_bytes // itemsize), itemsize, width, meter)
        if key not in self.memo:
            self.memo[key] = meter(self._places(index, itemsize), width, record)
        return self.memo[key]

    def _places(self, index: Size, itemsize: int) -> np.ndarray:
        """The first byte of each lane's element, of the subgroups that run."""
        running = self.active.any(axis=1)
        first = np.broadcast_to(self.value(index) * itemsize, self.active.shape)[running]
        active = self.active[running]
        # A lane that does not run gets the place of the first one that does.
        leader = np.take_along_axis(first, active.argmax(axis=1).reshape(-1, 1), axis=1)
        return np.where(active, first, leader)


def _lines(places: np.ndarray, width: int, record: DeviceRecord) -> Requests:
    # Accesses are aligned and no wider than a sector, so the first byte of each is enough.
    return Requests(_distinct(places // record.sector_bytes), _distinct(places // record.line_bytes), 1.0)


def _in_vector(places: np.ndarray, width: int, record: DeviceRecord) -> Requests:
    """On a processor, neighbours or one element for all lanes are one access.

    Elements a few apart are as many, with an instruction each that moves the lanes. Other elements
    take one access per lane, and as many instructions to form a vector.
    """
    steps = np.diff(places, axis=1)
    accesses = next((n for step, n in _OF_STEP.items() if np.all(steps == step * width)), 2.0 * places.shape[1])
    return Requests(_distinct(places // record.sector_bytes), accesses, 1.0)


def _banks(places: np.ndarray, width: int, record: DeviceRecord) -> Requests:
    words = places[:, :, None] // _WORD + np.arange(-(-width // _WORD))
    busiest = [np.bincount(np.unique(row) % record.banks).max() for row in words]
    return Requests(0.0, 0.0, float(np.mean(busiest)) if busiest else 0.0)


def _mixed(place: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers that memory might contain at some places."""
    with np.errstate(over="ignore"):
        hashes = (place.astype(np.uint64) + np.uint64(1)) * np.uint64(_ODD) >> np.uint64(17)
    return (hashes % np.uint64(_UNKNOWN)).astype(np.int64).astype(dtype)


def _pattern(index: Size, line: int) -> tuple:
    if not isinstance(index, Dim):
        return (index % line,)
    return tuple(t if t.factors else t.coefficient % line for t in index.terms)


def _origins(name: str, lets: Mapping[str, Expr]) -> Iterator[Size]:
    """The indices on which a value depends: those of its loads, and those that it mentions."""
    pending, visited = [name], {name}
    while pending:
        let = lets.get(pending.pop())
        for part in walk_expr(let) if let is not None else ():
            yield from expr_sizes(part)
            if isinstance(part, Local) and part.name not in visited:
                visited.add(part.name)
                pending.append(part.name)


def _distinct(places: np.ndarray) -> float:
    """How many different numbers a row has, on average; 0 without rows."""
    if not len(places):
        return 0.0
    sorted_places = np.sort(places, axis=1)
    return float(np.mean(1 + np.count_nonzero(np.diff(sorted_places, axis=1), axis=1)))


def of_launch(launch: Launch, subgroup: int, sizes: Mapping[str, int]) -> Samples:
    """Samples of subgroups of so many threads."""
    width = launch.group_threads
    lanes = min(subgroup, width)
    # Each subgroup of a group is sampled equally often, since conditions distinguish them.
    first = np.arange(SAMPLES) % -(-width // lanes) * lanes
    group = ((2 * np.arange(SAMPLES) + 1) * launch.groups // (2 * SAMPLES)).reshape(-1, 1)
    thread = first.reshape(-1, 1) + np.arange(lanes)
    active = thread < width
    if launch.threads:
        values = {**_unfolded(launch.grid, group), **_unfolded(launch.threads, thread)}
    else:
        point = group * width + thread
        active = active & (point < launch.points)
        values = _unfolded(launch.grid, point)
    active = np.broadcast_to(active, (SAMPLES, lanes))
    return Samples(values, sizes, active, max(1.0, float(active.sum())) / active.size)


def _unfolded(axes: Sequence[Axis], position: np.ndarray) -> dict[str, np.ndarray]:
    """The index on each axis for these positions; the last axis varies fastest."""
    values: dict[str, np.ndarray] = {}
    for axis in reversed(axes):
        extent = max(1, axis.extent)
        values[axis.name] = position % extent
        position = position // extent
    return values


def of_processor(sizes: Mapping[str, int]) -> Samples:
    """Samples on a processor before any loop."""
    return Samples({}, sizes, np.ones((SAMPLES, 1), np.bool_))


__all__ = ["Requests", "Samples", "of_launch", "of_processor"]
