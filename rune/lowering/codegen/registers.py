"""Registers for the values of a program, and memory for those that do not fit: linear scan.

    %a = load                  a: r0    loop
    loop                       b: r1    each value has the lowest register that no value
      %b = load           ->   a: r0    alive at the same time has; a is alive in all of the
      %a = add %a, %b                   loop, because every turn needs what the last one left

A program is a list of Steps, over as many Values as it likes; loops are marked in it, and there are
no other jumps back. Nothing here knows an assembly: an instruction is text with places for its
operands, and a Kind says what takes a register of it to memory and back.

Invariant: no two values that are alive at once share a register, and no step needs more of a file
           than its limit. Registers of a kind are numbered from 0, without gaps; where there is no
           limit they are as many as values of the kind are ever alive at once, which is the least.
           A value in memory is loaded before each step that reads it, but for what the step before
           has written, and stored after each that writes it.
Cost:      steps times live values, for each round; a round that finds values without a register is
           followed by one in which they are in memory.
Not here:  copies merged, constants computed again instead of loaded, values that live in a register
           for a part of their life, pairs of registers side by side.
Source:    Poletto & Sarkar 1999, Linear scan register allocation, TOPLAS 21(5); Chaitin 1982,
           Register allocation and spilling via graph coloring, for the cost of memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from rune.errors import CompileError

_TURNS = 10  # that a loop is thought to make


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A class of registers.

    file, width: the limit that a register counts against, and by how much
    bytes:       of a value in memory
    load, store: instructions with {0} for the register and {1} for the place in memory [B]
    via:         the kind by way of which a value reaches memory, if not directly: `load` then makes
                 the value {0} of one of those {1}, and `store` one of those {0} of the value {1}
    """

    name: str
    file: str
    width: int
    bytes: int
    load: str
    store: str
    via: Kind | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """What a register holds; no other value has its number."""

    number: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: `code` has places {0}, {1}, ... for its writes, then reads, then numbers.

    A value that is written under a condition is read as well: it may stay what it was.
    nests: 1 where a loop begins (a label, without operands), -1 where it goes back there
    """

    code: str
    writes: tuple[Value, ...] = ()
    reads: tuple[Value, ...] = ()
    numbers: tuple[int, ...] = ()
    nests: int = 0


@dataclass(frozen=True, slots=True)
class LiveRange:
    """From where a value is first written to where it is last needed.

    Step n reads at 2n and writes at 2n + 1, so that a result may take its operand's register.
    cost: of having the value in memory: its uses, those in loops many times; infinite where that
          would not free a register anywhere
    """

    value: Value
    start: int
    end: int
    cost: float


@dataclass(frozen=True, slots=True)
class Allocation:
    """Steps with loads and stores, the register of each value in them, and how many of each kind.

    places: of each kind in memory, of `kind.bytes` each
    """

    steps: tuple[Step, ...]
    registers: Mapping[Value, int]
    used: Mapping[Kind, int]
    places: Mapping[Kind, int]


def allocate(steps: Sequence[Step], limits: Mapping[str, int]) -> Allocation:
    """Give every value a register, or memory. `limits`: units of each file that has a limit.

    Errors: CompileError "registers: cannot allocate words (one step needs 6, there are 4)".
    """
    ranges = live_ranges(steps)
    costs = {r.value: r.cost for r in ranges}
    homeless: set[Value] = set()
    while True:
        stored = (replace(r, value=_stored(r.value)) for r in ranges if r.value in homeless)
        places, _ = scan(stored, {})
        at = {v: places[_stored(v)] for v in homeless}
        made = tuple(_with_memory(steps, at)) if at else tuple(steps)
        # What is between a value in memory and one step cannot go there itself.
        found = (replace(r, cost=costs.get(r.value, math.inf)) for r in live_ranges(made))
        registers, more = scan(found, limits)
        if not more:
            return Allocation(made, registers, _counts(registers), _counts(places))
        homeless |= more


def _stored(value: Value) -> Value:
    """The value as it is in memory."""
    return replace(value, kind=value.kind.via or value.kind)


def _counts(numbers: Mapping[Value, int]) -> dict[Kind, int]:
    """How many numbers each kind uses, which begin at 0; kinds in their order of use."""
    return dict(Counter(kind for kind, _ in dict.fromkeys((v.kind, n) for v, n in numbers.items())))


# --- live ranges ------------------------------------------------------------------------------


def live_ranges(steps: Sequence[Step]) -> list[LiveRange]:
    """The ranges of all values, in order of their starts.

    What a loop finds written and touches is alive until its end: the next turn may need it.
    Errors: CompileError for a value that is read before it is written.
    """
    starts: dict[Value, int] = {}
    last: dict[Value, tuple[int, int | None]] = {}  # where, and the loop that holds it
    costs: Counter[Value] = Counter()
    loops: list[int] = []  # that are open: where they began
    ends: dict[int, int] = {}

    def touch(value: Value, at: int) -> None:
        start = starts[value]
        last[value] = at, next((loop for loop in loops if loop > start), None)
        costs[value] += _TURNS ** len(loops)

    for number, step in enumerate(steps):
        if step.nests > 0:
            loops.append(2 * number)
        for value in step.reads:
            if value not in starts:
                raise CompileError(f"registers: cannot allocate {value} (read before written)")
            touch(value, 2 * number)
        for value in step.writes:
            starts.setdefault(value, 2 * number + 1)
            touch(value, 2 * number + 1)
        if step.nests < 0:
            ends[loops.pop()] = 2 * number + 1
    found = []
    for value, start in starts.items():
        at, loop = last[value]
        end = at if loop is None else ends[loop]
        found.append(LiveRange(value, start, end, costs[value] if end > start + 1 else math.inf))
    return found


def scan(
    ranges: Iterable[LiveRange], limits: Mapping[str, int]
) -> tuple[dict[Value, int], set[Value]]:
    """A register for each value, by its kind; and the values that are to be in memory instead.

    Where a file is full, the cheapest value alive goes, of several the one needed longest.
    """
    registers: dict[Value, int] = {}
    homeless: set[Value] = set()
    alive: list[LiveRange] = []
    for new in sorted(ranges, key=lambda r: r.start):
        alive = [r for r in alive if r.end >= new.start] + [new]
        for given_up in _beyond(alive, new.value.kind.file, limits):
            alive.remove(given_up)
            registers.pop(given_up.value, None)
            homeless.add(given_up.value)
        if new.value not in homeless:
            kind = new.value.kind
            taken = {registers[r.value] for r in alive if r is not new and r.value.kind is kind}
            registers[new.value] = next(n for n in count() if n not in taken)
    return registers, homeless


def _beyond(
    alive: Sequence[LiveRange], file: str, limits: Mapping[str, int]
) -> Iterator[LiveRange]:
    """The ranges that have to go so that the others fit into the file, cheapest first."""
    here = [r for r in alive if r.value.kind.file == file]
    needed, limit = sum(r.value.kind.width for r in here), limits.get(file, math.inf)
    for given_up in sorted(here, key=lambda r: (r.cost, -r.end)):
        if needed <= limit:
            return
        if given_up.cost == math.inf:
            raise CompileError(
                f"registers: cannot allocate {file} (one step needs {needed}, there are {limit})"
            )
        needed -= given_up.value.kind.width
        yield given_up


# --- memory -----------------------------------------------------------------------------------


def _with_memory(steps: Sequence[Step], places: Mapping[Value, int]) -> Iterator[Step]:
    """The steps with loads and stores of the values that have a place in memory."""
    fresh = count(1 + max(v.number for step in steps for v in step.writes))
    written: dict[Value, Value] = {}  # by the step before, from a register that is still there
    for step in steps:
        kept = {v: written[v] for v in step.reads if v in written}
        here = {
            v: kept.get(v) or Value(next(fresh), v.kind)
            for v in dict.fromkeys((*step.reads, *step.writes))
            if v in places
        }
        for value in dict.fromkeys(step.reads):
            if value in places and value not in kept:
                yield from _load(here[value], places[value], fresh)
        reads, writes = (tuple(here.get(v, v) for v in vs) for vs in (step.reads, step.writes))
        yield replace(step, writes=writes, reads=reads) if here else step
        written = {v: here[v] for v in step.writes if v in places}
        for value in written:
            yield from _store(here[value], places[value], fresh)


def _load(value: Value, place: int, fresh: Iterator[int]) -> Iterator[Step]:
    kind, via = value.kind, value.kind.via
    if via is None:
        yield Step(kind.load, writes=(value,), numbers=(place * kind.bytes,))
        return
    between = Value(next(fresh), via)
    yield from _load(between, place, fresh)
    yield Step(kind.load, writes=(value,), reads=(between,))


def _store(value: Value, place: int, fresh: Iterator[int]) -> Iterator[Step]:
    kind, via = value.kind, value.kind.via
    if via is None:
        yield Step(kind.store, reads=(value,), numbers=(place * kind.bytes,))
        return
    between = Value(next(fresh), via)
    yield Step(kind.store, writes=(between,), reads=(value,))
    yield from _store(between, place, fresh)
