"""Order: put the steps in an order that keeps few bytes alive.

Before   a = f x;  b = f y;  c = sum a;  d = sum b        peak: a and b
After    a = f x;  c = sum a;  b = f y;  d = sum b        peak: a or b

Of the steps whose operands are ready, the one that frees most and allocates least comes next; among
equals, the first in the program. A change in place counts the copy that other readers still need.
This is greedy, so not optimal, and deterministic.

Invariant: every step comes after those that write what it reads.
Cost: O(s log s) in the number of steps and uses s.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from rune.lowering.kernelize import cost
from rune.lowering.kernels import Choose, Invoke, KernelProgram, KernelStep, Repeat, Value
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class _Step:
    """The numbers of a step's results, operands, and operands that it changes in place."""

    results: tuple[int, ...]
    operands: frozenset[int]
    changes: tuple[int, ...]


@dataclass(slots=True)
class _State:
    """The state of values, by number, and steps while steps are put in order.

    sizes: the bytes of each value. arena_sizes: 0 for inputs and results, which lie elsewhere
    """

    steps: tuple[_Step, ...]
    sizes: Mapping[int, int]
    arena_sizes: Mapping[int, int]
    readers: dict[int, list[int]] = field(default_factory=dict)
    writers: dict[int, list[int]] = field(default_factory=dict)
    unread: dict[int, int] = field(default_factory=dict)  # readers that are still to come
    unwritten: dict[int, int] = field(default_factory=dict)
    allocations: set[int] = field(default_factory=set)


def with_steps_ordered(program: KernelProgram) -> KernelProgram:
    """The same steps in a better order, in the programs of loops and branches as well."""
    program = replace(program, steps=tuple(map(_ordered_within, program.steps)))
    state = _prepare(program)
    # The number of pending writes to the operands; several steps may write parts of one value.
    waiting = [sum(state.unwritten.get(v, 0) for v in step.operands) for step in state.steps]
    # (bytes that the step adds, its number): the number decides between equals.
    ready: list[tuple[int, int]] = []
    for number, count in enumerate(waiting):
        if count == 0:
            heapq.heappush(ready, (_growth(state, number), number))
    order: list[int] = []
    positions: set[int] = set()
    while ready:
        growth, number = heapq.heappop(ready)
        # A heap cannot update entries, so a step may be in it several times with outdated growths.
        if number in positions:
            continue
        # What a step frees changes as other readers of its operands finish.
        current_growth = _growth(state, number)
        if current_growth != growth:
            heapq.heappush(ready, (current_growth, number))
            continue
        order.append(number)
        positions.add(number)
        for affected_step in _finish(state, number, waiting):
            if waiting[affected_step] == 0 and affected_step not in positions:
                heapq.heappush(ready, (_growth(state, affected_step), affected_step))
    assert len(order) == len(state.steps), "the steps of a kernel program form no cycle"
    return replace(program, steps=tuple(program.steps[n] for n in order))


def _ordered_within(step: KernelStep) -> KernelStep:
    match step:
        case Repeat(body=body, condition=condition):
            condition = None if condition is None else with_steps_ordered(condition)
            return replace(step, body=with_steps_ordered(body), condition=condition)
        case Choose(branches=branches):
            return replace(step, branches=tuple(map(with_steps_ordered, branches)))
        case _:
            return step


def _prepare(program: KernelProgram) -> _State:
    steps = tuple([_numbered(program, step) for step in program.steps])
    values = {v.number: v for step in program.steps for v in (*step.results, *step.operands)}
    sizes = {number: _bytes(v) for number, v in values.items()}
    outside = dict.fromkeys(_numbers((*program.inputs, *program.outputs)), 0)
    state = _State(steps, sizes, sizes | outside)
    for number, step in enumerate(steps):
        for value in step.operands:
            state.readers.setdefault(value, []).append(number)
        for value in step.results:
            state.writers.setdefault(value, []).append(number)
    state.unread = {v: len(steps) for v, steps in state.readers.items()}
    state.unwritten = {v: len(steps) for v, steps in state.writers.items()}
    return state


def _numbered(program: KernelProgram, step: KernelStep) -> _Step:
    return _Step(_numbers(step.results), frozenset(_numbers(step.operands)), _numbers(_changes(program, step)))


def _numbers(values: Iterable[Value]) -> tuple[int, ...]:
    return tuple([v.number for v in values])


def _growth(state: _State, number: int) -> int:
    """Bytes that running a step adds to the live values."""
    step = state.steps[number]
    new_bytes = sum([state.arena_sizes[v] for v in step.results if v not in state.allocations])
    freed_bytes = sum([state.arena_sizes[v] for v in step.operands if state.unread[v] == 1])
    copied_bytes = sum([state.sizes[v] for v in step.changes if state.unread[v] > 1])
    return new_bytes + copied_bytes - freed_bytes


def _changes(program: KernelProgram, step: KernelStep) -> list[Value]:
    """The operands that a kernel changes in place."""
    if not isinstance(step, Invoke):
        return []
    kernel = program.kernels[step.kernel]
    names = [buffer.name for buffer in kernel.inputs]
    return [step.operands[names.index(source)] for source, _ in kernel.in_place]


def _bytes(value: Value) -> int:
    # Symbolic sizes are estimated, because the order must be fixed at compile time.
    return cost.count(value.type.shape) * value.type.dtype.itemsize


def _finish(state: _State, number: int, waiting: list[int]) -> Iterable[int]:
    """Record that a step has run. Returns the steps that this affects."""
    affected_steps: set[int] = set()
    step = state.steps[number]
    for value in step.results:
        state.allocations.add(value)
        state.unwritten[value] -= 1
        for reader in state.readers.get(value, ()):
            waiting[reader] -= 1
            affected_steps.add(reader)
        # Now that it is allocated, its other writers have become cheaper.
        affected_steps.update(state.writers[value])
    for value in step.operands:
        state.unread[value] -= 1
        # The one remaining reader now frees the value, and so has become cheaper.
        if state.unread[value] == 1:
            affected_steps.update(state.readers[value])
    return affected_steps
