"""Registers and memory for the values of random programs, held against machines of the tests' own.

An abstract assembly has three kinds of registers: narrow and wide ones, of one file, and flags,
which reach memory by way of a narrow one. What a program computes is a trace of what each of its
steps reads; liveness is found a second time, by data flow over every jump.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import CompileError
from rune.lowering.codegen.registers import (
    Allocation,
    Kind,
    LiveRange,
    Step,
    Value,
    allocate,
    live_ranges,
    scan,
)

NARROW = Kind("n", "data", 1, 4, "load n {0} {1}", "store n {1} {0}")
WIDE = Kind("w", "data", 2, 8, "load w {0} {1}", "store w {1} {0}")
FLAG = Kind("f", "flags", 1, 4, "unpack {0} {1}", "pack {0} {1}", via=NARROW)
KINDS = (NARROW, WIDE, FLAG)
TURNS, DEEPEST = 2, 3  # of loops

Steps = Sequence[Step]
Case = tuple[list[Step], dict[str, int]]


# --- random programs --------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Steps that write values, new or old, from those that are written; loops nest.

    new: a new value; two: of which one is; old: written again; kept: may stay what it was
    """
    steps: list[Step] = []
    values: list[Value] = []
    depth = 0
    what = st.sampled_from(("new", "new", "new", "two", "old", "old", "kept", "loop", "back"))
    for n, chosen in enumerate(draw(st.lists(what, min_size=draw(st.sampled_from((0, 9, 40)))))):
        if chosen in ("loop", "back"):
            nests = 1 if chosen == "loop" and depth < DEEPEST else -min(depth, 1)
            steps.append(Step(chosen, nests=nests))
            depth += nests
            continue
        reads = draw(st.lists(st.sampled_from(values), max_size=2)) if values else []
        new = chosen in ("new", "two") or not values
        old = [] if (new and chosen != "two") or not values else [draw(st.sampled_from(values))]
        reads += old if chosen == "kept" else []
        values += [Value(n, draw(st.sampled_from(KINDS)))] if new else []
        steps.append(Step(f"op{n}", (*old, *values[-1:][:new]), tuple(reads)))
    return steps + [Step("back", nests=-1)] * depth


@st.composite
def limited(draw: st.DrawFn) -> tuple[list[Step], dict[str, int]]:
    """A program, and registers for its greediest step or a few more."""
    steps, least = draw(programs()), Counter({"data": 1, "flags": 1})
    for step in steps:
        for values in (step.writes, step.reads):
            needed = Counter[str]()
            for value in set(values):
                needed[value.kind.file] += value.kind.width
            # One of the flags may be on its way from memory.
            least |= needed + Counter({"data": min(1, needed["flags"])})
    return steps, {file: n + draw(st.integers(0, 3)) for file, n in least.items()}


def loops(steps: Steps) -> dict[int, int]:
    """By the end of each loop: where it begins."""
    open_, found = [], {}
    for at, step in enumerate(steps):
        if step.nests > 0:
            open_.append(at)
        elif step.nests < 0:
            found[at] = open_.pop()
    return found


# --- what a program computes ------------------------------------------------------------------


def order(steps: Steps) -> Iterator[Step]:
    """The steps as a machine comes to them."""
    start, left, at = loops(steps), Counter[int](), 0
    while at < len(steps):
        yield steps[at]
        if at in start:
            left[at] += 1
            if left[at] % TURNS:
                at = start[at]
                continue
        at += 1


def trace(steps: Steps, place: Any) -> list[tuple[str, ...]]:
    """What each step of the program reads, where `place(value)` is where values are kept."""
    held: dict[Any, Any] = {}
    memory: dict[tuple[str, int], Any] = {}
    seen = []
    for step in order(steps):
        reads = [held[place(v)] for v in step.reads]
        match step.code.split(), step.numbers:
            case ["load", name, *_], (at,):
                (made,) = (memory[name, at],)
            case ["store", name, *_], (at,):
                memory[name, at], made = reads[0], None
            case [("pack" | "unpack"), *_], _:
                made = reads[0]
            case _:
                made = f"{step.code}/{hash(tuple(reads)) % 10**6}"
                seen.append((step.code, *reads))
        for number, value in enumerate(step.writes):
            held[place(value)] = made if len(step.writes) == 1 else f"{made}.{number}"
    return seen


def in_registers(made: Allocation) -> list[tuple[str, ...]]:
    return trace(made.steps, lambda v: (v.kind.name, made.registers[v]))


@given(limited())
def test_a_program_computes_the_same_in_few_registers(case: Case):
    assert in_registers(allocate(*case)) == trace(case[0], lambda v: v)


@given(programs())
def test_a_program_computes_the_same_without_a_limit(steps: list[Step]):
    made = allocate(steps, {})

    assert in_registers(made) == trace(steps, lambda v: v)
    assert made.steps == tuple(steps)


# --- what is alive ----------------------------------------------------------------------------


def alive_behind(steps: Steps) -> list[set[Value]]:
    """By step: the values that something later may read, by data flow over all jumps."""
    back = loops(steps)
    behind: list[set[Value]] = [set() for _ in steps]
    before: list[set[Value]] = [set() for _ in (*steps, None)]
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(steps))):
            after = before[at + 1] | (before[back[at]] if at in back else set())
            found = (after - set(steps[at].writes)) | set(steps[at].reads)
            changed |= found != before[at]
            behind[at], before[at] = after, found
    return behind


@given(limited())
def test_values_alive_at_once_have_different_registers(case: Case):
    made = allocate(*case)

    for step, behind in zip(made.steps, alive_behind(made.steps), strict=True):
        together = behind | set(step.writes)
        assert len({(v.kind, made.registers[v]) for v in together}) == len(together)


@given(limited())
def test_no_step_needs_more_than_the_limit(case: Case):
    steps, limit = case
    made = allocate(steps, limit)

    for step, behind in zip(made.steps, alive_behind(made.steps), strict=True):
        needed = Counter[str]()
        for value in behind | set(step.writes):
            needed[value.kind.file] += value.kind.width
        assert all(needed[file] <= limit[file] for file in limit)
    assert all(n * kind.width <= limit[kind.file] for kind, n in made.used.items())


@given(limited())
def test_numbers_of_registers_begin_at_0_and_have_no_gaps(case: Case):
    made = allocate(*case)

    for kind in KINDS:
        numbers = {n for v, n in made.registers.items() if v.kind is kind}
        assert numbers == set(range(made.used.get(kind, 0)))


def most_at_once(ranges: Sequence[LiveRange], kind: Kind) -> int:
    """How many ranges of the kind share a point."""
    here = [r for r in ranges if r.value.kind is kind]
    return max((sum(r.start <= x.start <= r.end for r in here) for x in here), default=0)


@given(programs())
def test_without_a_limit_there_are_as_many_registers_as_values_are_alive_at_once(
    steps: list[Step],
):
    ranges = live_ranges(steps)

    used = allocate(steps, {}).used
    assert all(used.get(kind, 0) == most_at_once(ranges, kind) for kind in KINDS)


@given(programs())
def test_a_range_holds_every_point_where_the_value_is_alive(steps: list[Step]):
    ranges = {r.value: r for r in live_ranges(steps)}

    for at, behind in enumerate(alive_behind(steps)):
        assert all(ranges[v].start <= 2 * at + 1 <= ranges[v].end for v in behind)


@given(limited())
def test_values_in_memory_share_places_as_those_in_registers_do(case: Case):
    steps, limit = case
    made = allocate(steps, limit)

    gone = {r.value for r in live_ranges(steps)} - set(made.registers)
    ranges = [r for r in live_ranges(steps) if r.value in gone and r.value.kind is WIDE]
    assert made.places.get(WIDE, 0) == most_at_once(ranges, WIDE)


# --- by example -------------------------------------------------------------------------------


def value(number: int, kind: Kind = NARROW) -> Value:
    return Value(number, kind)


A, B, C, D = map(value, range(4))
LOOP, BACK = Step("loop", nests=1), Step("back", nests=-1)


def ends(steps: Steps) -> dict[Value, tuple[int, int]]:
    return {r.value: (r.start, r.end) for r in live_ranges(steps)}


def test_a_result_may_take_the_register_of_an_operand():
    steps = [Step("a", (A,)), Step("b", (B,)), Step("c", (C,), (A, B))]

    assert ends(steps) == {A: (1, 4), B: (3, 4), C: (5, 5)}
    assert allocate(steps, {}).registers == {A: 0, B: 1, C: 0}


def test_what_nothing_reads_still_has_a_register_beside_the_other_result():
    made = allocate([Step("a", (A,)), Step("b", (A, B))], {})

    assert made.registers == {A: 0, B: 1}


def test_what_a_loop_reads_is_alive_to_its_end_and_what_it_makes_is_not():
    steps = [Step("a", (A,)), LOOP, Step("b", (B,), (A,)), Step("c", (C,), (B,)), BACK]

    assert ends(steps) == {A: (1, 9), B: (5, 6), C: (7, 7)}


def test_a_value_carried_around_an_inner_loop_is_alive_to_the_end_of_the_outermost_it_enters():
    steps = [Step("a", (A,)), LOOP, LOOP, Step("b", (A,), (A,)), BACK, Step("x"), BACK, Step("y")]

    assert ends(steps) == {A: (1, 13)}


def test_the_cheapest_goes_to_memory_where_uses_in_loops_count_ten_times():
    steps = [
        Step("a", (A,)), Step("b", (B,)), LOOP, Step("c", (C,), (A,)), Step("s", (), (A, C)), BACK,
        Step("d", (), (B,)), Step("d", (), (B,)), Step("e", (), (B,)),
    ]  # fmt: skip

    assert {r.value: r.cost for r in live_ranges(steps)} == {A: 21, B: 4, C: math.inf}
    made = allocate(steps, {"data": 2})
    assert B not in made.registers
    assert [s.code for s in made.steps].count(NARROW.load) == 3


def test_what_the_step_before_has_written_is_not_loaded():
    beside = [Step("c", (C,)), Step("d", (D,)), *[Step("e", (), (C, D))] * 2]
    steps = [Step("a", (A,)), Step("b", (B,), (A,)), *beside, Step("f", (), (A, B))]

    codes = [s.code.split()[0] for s in allocate(steps, {"data": 2}).steps]
    assert codes == "a store b store c d e e load load f".split()


def test_of_equal_cost_the_one_needed_longest_goes():
    ranges = [LiveRange(A, 1, 8, 2), LiveRange(B, 3, 20, 2), LiveRange(C, 5, 12, 2)]

    assert scan(ranges, {"data": 2}) == ({A: 0, C: 1}, {B})


def test_a_flag_goes_to_memory_by_way_of_a_narrow_register():
    flags = [value(n, FLAG) for n in range(3)]
    steps = [*(Step("f", (f,)) for f in flags), *(Step("u", (), (f,)) for f in flags)]

    made = allocate(steps, {"flags": 2, "data": 1})

    codes = [s.code for s in made.steps]
    assert codes.index(FLAG.store) + 1 == codes.index(NARROW.store)
    assert codes.index(NARROW.load) + 1 == codes.index(FLAG.load)
    assert made.places == {NARROW: 2}


def test_a_step_that_needs_more_than_there_is_is_refused():
    steps = [*(Step("a", (x,)) for x in (A, B, C)), Step("c", (D,), (A, B, C))]

    with pytest.raises(CompileError, match=r"cannot allocate data \(one step needs 3, there are 2"):
        allocate(steps, {"data": 2})


def test_a_value_that_is_read_before_it_is_written_is_refused():
    with pytest.raises(CompileError, match="read before written"):
        allocate([LOOP, Step("a", (), (A,)), Step("b", (A,)), BACK], {})


def test_ten_thousand_steps_are_no_matter():
    chain = [Step("a", (value(0),))]
    chain += [Step("n", (value(n),), (value(n - 1),)) for n in range(1, 10_000)]

    assert allocate(chain, {}).used == {NARROW: 1}
