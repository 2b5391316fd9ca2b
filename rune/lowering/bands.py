"""Bands: steps of one batch that run entry by entry, so that what passes between them stays cached.

Before   s = a @ b;  e = exp(s);  c = e @ d          each step walks through 16 entries of memory
After    for entry in 16 { s = a @ b;  e = exp(s);  c = e @ d }

A product is divided by its batch, a kernel by the leading axes of its grid. Steps form a band if
each entry that one of them writes is read for the same entry alone, and if it pays: the memory that
passes between them fits a cache for one entry, and does not for all.

Invariant: memory that a band writes is accessed entry by entry, or by no other step of the band.
So memory.py gives the values of a band memory of their own for all of its steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from rune import dims
from rune.dims import Size
from rune.lowering.arena import type_bytes
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Param, Store
from rune.lowering.kernel.rewrite import expressions, loads, perfect_nest, walk
from rune.lowering.kernelize.walks import ROLES, SIZES, digits_of
from rune.lowering.kernels import Invoke, KernelProgram, Routine, Value
from rune.lowering.plan import Call, Launch, Plan, Slot, Space, Step
from rune.records import dataclass

# Bytes that pass between the steps of one entry: two second-level caches, as more stays in none.
MOST_BYTES = 4 << 20
# The same for all entries: less stays cached without a band.
LEAST_BYTES = 1 << 18
LEAST_OPERATIONS = 1 << 15  # of one product of a batch: many more than its call takes
MOST_STEPS = 24  # of one band, which becomes one function
ROUTINES = ("dot", "strided_dot")

Ranges = dict[Value, tuple[int, int]]  # the first and the last step of a value


@dataclass(frozen=True, slots=True)
class Band:
    """The steps from `first` on and before `end`, in so many entries."""

    first: int
    end: int
    entries: int


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of a space, which no other space overlaps."""

    space: str
    number: int
    start: int  # [B]
    bytes: int

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.start + self.bytes

    def meets(self, other: Extent) -> bool:
        """Whether both share a byte."""
        is_one_space = (self.space, self.number) == (other.space, other.number)
        return is_one_space and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Part:
    """A kernel or product, and its memory: of a kernel's parameters, or of C, A and B."""

    work: KernelCode | Mapping[str, object]
    memory: tuple[Extent, ...]

    @property
    def batch(self) -> int:
        """Products of the batch; 0 for a kernel, or if each is very small."""
        if isinstance(self.work, KernelCode):
            return 0
        # The code of a band does not compute symbolic steps or offsets.
        if not all(isinstance(n, int) for n in self.work.values()):
            return 0
        batch, *others = (n for n in map(self.work.get, SIZES) if isinstance(n, int))
        return batch if math.prod(others) >= LEAST_OPERATIONS else 0


@dataclass(frozen=True, slots=True)
class Use:
    """How a divided step uses memory."""

    memory: Extent
    is_written: bool
    by_entry: bool


# --- where bands are --------------------------------------------------------------------------


def bands_of_program(program: KernelProgram, codes: Mapping[str, KernelCode]) -> list[Band]:
    """The bands of a program whose steps are in order."""
    return find_bands([_part_of_program(step, codes) for step in program.steps])


def bands_of_plan(plan: Plan) -> list[Band]:
    """The bands of a plan, by the memory of its slots."""
    donors = {result: argument for argument, result in plan.donations}
    return find_bands([_part_of_plan(step, plan.kernels, donors) for step in plan.steps])


def find_bands(parts: Sequence[Part | None]) -> list[Band]:
    """The bands, each as long as possible. None: a step that cannot be divided."""
    bands: list[Band] = []
    number = 0
    while number < len(parts):
        band = _band_from(parts, number)
        if band is not None:
            bands.append(band)
        number = number + 1 if band is None else band.end
    return bands


def _band_from(parts: Sequence[Part | None], first: int) -> Band | None:
    part = parts[first]
    entries = 0 if part is None else part.batch
    if entries < 2:
        return None
    uses: list[list[Use]] = []
    for part in parts[first : first + MOST_STEPS]:
        more = None if part is None else divided(part, entries)
        if more is None or not _fit([use for step in uses for use in step], more):
            break
        uses.append(more)
    while uses and not _reads_any(uses[-1], _written(uses[:-1])):
        uses.pop()
    passed = {use.memory for k, step in enumerate(uses) for use in _reading(step, _written(uses[:k]))}
    total = sum(memory.bytes for memory in passed)
    pays = LEAST_BYTES <= total <= MOST_BYTES * entries
    return Band(first, first + len(uses), entries) if uses and pays else None


def _fit(uses: Iterable[Use], more: Sequence[Use]) -> bool:
    """Whether a step can follow others in a band: the entries that it writes do not overlap."""
    pairs = (*product(more, uses), *product(more, more))
    return all(use.by_entry for use in more if use.is_written) and all(
        a.memory == b.memory and a.by_entry and b.by_entry
        for a, b in pairs
        if (a.is_written or b.is_written) and a.memory.meets(b.memory)
    )


def _written(uses: Iterable[Sequence[Use]]) -> set[Extent]:
    return {use.memory for step in uses for use in step if use.is_written}


def _reading(step: Iterable[Use], written: set[Extent]) -> list[Use]:
    return [use for use in step if not use.is_written and use.memory in written]


def _reads_any(step: Iterable[Use], written: set[Extent]) -> bool:
    return bool(_reading(step, written))


# --- steps ------------------------------------------------------------------------------------


def _part_of_program(step: object, codes: Mapping[str, KernelCode]) -> Part | None:
    match step:
        case Invoke(kernel=kernel):
            return _part(codes[kernel], [_value(v) for v in (*step.operands, *step.results)])
        case Routine(routine=routine, parameters=parameters) if routine in ROUTINES:
            return _part(dict(parameters), [_value(v) for v in (*step.results, *step.operands)])
        case _:
            return None


def _part_of_plan(step: Step, kernels: Mapping[str, KernelCode], donors: Mapping[int, int]) -> Part | None:
    match step:
        case Launch(kernel=kernel, slots=slots):
            return _part(kernels[kernel], [extent_of(s, donors) for s in slots])
        case Call(routine=routine, parameters=parameters) if routine in ROUTINES:
            return _part(dict(parameters), [extent_of(s, donors) for s in (*step.outputs, *step.inputs)])
        case _:
            return None


def _part(work: KernelCode | Mapping[str, object], memory: Sequence[Extent | None]) -> Part | None:
    known = tuple(extent for extent in memory if extent is not None)
    return Part(work, known) if len(known) == len(memory) else None


def _value(value: Value) -> Extent | None:
    count = type_bytes(value.type)
    return Extent("value", value.number, 0, count) if isinstance(count, int) else None


def extent_of(slot: Slot, donors: Mapping[int, int]) -> Extent | None:
    """The bytes of a slot, None if they are symbolic. donors: arguments that results take over."""
    count = type_bytes(slot.type)
    if not isinstance(count, int) or not isinstance(slot.offset, int):
        return None
    if slot.space is Space.RESULT and slot.number in donors:
        return Extent(Space.ARGUMENT, donors[slot.number], 0, count)
    return Extent(slot.space, slot.number, slot.offset, count)


# --- divided steps ----------------------------------------------------------------------------


def divided(part: Part, entries: int) -> list[Use] | None:
    """The uses of memory of a step in so many entries; None if it cannot be divided."""
    if isinstance(part.work, KernelCode):
        return _uses_of_kernel(part.work, part.memory, entries)
    c, a, b = part.memory
    if part.batch != entries or not c.bytes:
        return None
    sizes = {name: n for name, n in part.work.items() if isinstance(n, int)}
    # Of elements, which are as large as those of C.
    counts = [x.bytes * entries * sizes["m"] * sizes["n"] // c.bytes for x in (a, b)]
    flags = [_is_by_batch(sizes, count, side) for count, side in zip(counts, ROLES, strict=True)]
    return [Use(c, True, True), Use(a, False, flags[0]), Use(b, False, flags[1])]


def _is_by_batch(parameters: Mapping[str, int], count: int, side: str) -> bool:
    """Whether each product of a batch reads its own entry of an operand of so many elements."""
    batch, *roles = (digits_of(parameters, role) for role in ROLES[side])
    if not batch:  # dense
        return True
    offset = parameters["a_offset" if side == "left" else "b_offset"]
    numbers = [n for digits in (batch, *roles) for digit in digits for n in digit]
    if not all(isinstance(n, int) and n >= 0 for n in (*numbers, offset)):
        return False
    entries, reach = parameters["batch"], sum((size - 1) * step for digits in roles for size, step in digits)
    return batch == ((entries, count // entries),) and count % entries == 0 and offset + reach < count // entries


def _uses_of_kernel(code: KernelCode, memory: Sequence[Extent], entries: int) -> list[Use] | None:
    grid, _ = perfect_nest(code.body, Kind.GRID)
    leading = _leading(grid, entries)
    if leading is None or code.sizes or any(p.access is Access.READ_WRITE for p in code.params):
        return None
    number, values = leading
    indices = {p.name: list(_indices(code, p.name)) for p in code.params}

    def is_by_entry(param: Param, extent: Extent) -> bool:
        size = param.size
        if not isinstance(size, int) or size % entries or size * param.dtype.itemsize != extent.bytes:
            return False
        stride = size // entries
        return all(
            _is_within(dims.substitute(x, values) - number * stride, stride, values) for x in indices[param.name]
        )

    return [Use(x, p.access is Access.WRITE, is_by_entry(p, x)) for p, x in zip(code.params, memory, strict=True)]


def _leading(grid: Sequence[For], entries: int) -> tuple[Size, dict[str, Size]] | None:
    """The number of the entry at a point of the grid, and the variables of the grid by new ones."""
    number: Size = 0
    values: dict[str, Size] = {}
    count = entries
    for loop in grid:
        if count == 1:
            break
        extent = loop.extent
        if not isinstance(extent, int) or extent == 0:
            return None
        if count % extent == 0:
            count //= extent
            number, values[loop.var] = number + count * _outer(loop, extent), _outer(loop, extent)
        elif extent % count == 0:
            inner, outer = dims.symbol(f"{loop.var}_inner", 0, extent // count - 1), _outer(loop, count)
            number, values[loop.var] = number + outer, outer * (extent // count) + inner
            count = 1
        else:
            return None
    return (number, values) if count == 1 else None


def _outer(loop: For, extent: int) -> dims.Dim:
    return dims.symbol(f"{loop.var}_outer", 0, extent - 1)


def _is_within(place: Size, stride: int, values: Mapping[str, Size]) -> bool:
    """Whether a place relative to its entry lies in it, and is the same for every entry."""
    outer = {f"{name}_outer" for name in values}
    is_apart = outer.isdisjoint(dims.symbol_names(place))
    return is_apart and dims.at_most(0, place) is True and dims.less(place, stride) is True


def _indices(code: KernelCode, name: str) -> Iterator[Size]:
    """The indices of all accesses to a parameter."""
    for stmt in walk(code.body):
        if isinstance(stmt, Store) and stmt.buffer == name:
            yield stmt.index
        yield from (x.indices[0] for x in loads(expressions(stmt)) if x.buffer == name)


# --- memory -----------------------------------------------------------------------------------


def widened(ranges: Mapping[Value, tuple[int, int]], bands: Iterable[Band]) -> Ranges:
    """Live ranges in which a value of a band lives as long as all of its steps."""
    starts = {number: band.first for band in bands for number in range(band.first, band.end)}
    ends = {number: band.end - 1 for band in bands for number in range(band.first, band.end)}
    return {v: (starts.get(first, first), ends.get(last, last)) for v, (first, last) in ranges.items()}


def in_turn(ranges: Mapping[Value, tuple[int, int]], bands: Sequence[Band]) -> Ranges:
    """Live ranges by which a step may take over the memory of a value that dies there.

    In a band only that of a value of this band: all others are needed until the band ends.
    """
    band_of = {number: band for band in bands for number in range(band.first, band.end)}
    turns: Ranges = {}
    for value, (first, last) in ranges.items():
        band = band_of.get(last)
        turns[value] = (first, last) if band is None or band_of.get(first) is band else (first, band.end)
    return turns
