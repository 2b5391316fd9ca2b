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
from rune.lowering.kernels import Choose, Invoke, Kernel, KernelProgram, KernelStep, Repeat, Value
from rune.records import dataclass


@dataclass(slots=True)
class _State:
    """The state of values and steps while steps are put in order."""

    steps: tuple[KernelStep, ...]
    kernels: Mapping[str, Kernel]
    caller_values: frozenset[Value]  # inputs and results, whose memory is not in the arena
    readers: dict[Value, list[int]] = field(default_factory=dict)
    writers: dict[Value, list[int]] = field(default_factory=dict)
    unread: dict[Value, int] = field(default_factory=dict)  # readers that are still to come
    unwritten: dict[Value, int] = field(default_factory=dict)
    allocations: set[Value] = field(default_factory=set)


def with_steps_ordered(program: KernelProgram) -> KernelProgram:
    """The same steps in a better order, in the programs of loops and branches as well."""
    program = replace(program, steps=tuple(map(_ordered_within, program.steps)))
    state = _prepare(program)
    # The number of pending writes to the operands; several steps may write parts of one value.
    waiting = [sum(state.unwritten.get(v, 0) for v in set(step.operands)) for step in state.steps]
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
    return replace(program, steps=tuple(state.steps[n] for n in order))


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
    state = _State(program.steps, program.kernels, frozenset((*program.inputs, *program.outputs)))
    for number, step in enumerate(program.steps):
        for value in set(step.operands):
            state.readers.setdefault(value, []).append(number)
        for value in step.results:
            state.writers.setdefault(value, []).append(number)
    state.unread = {v: len(steps) for v, steps in state.readers.items()}
    state.unwritten = {v: len(steps) for v, steps in state.writers.items()}
    return state


def _growth(state: _State, number: int) -> int:
    """Bytes that running a step adds to the live values."""
    step = state.steps[number]
    new_bytes = sum(_bytes(v) for v in step.results if v not in state.caller_values and v not in state.allocations)
    freed_bytes = sum(_bytes(v) for v in set(step.operands) if v not in state.caller_values and state.unread[v] == 1)
    copied_bytes = sum(_bytes(v) for v in _changed(state, step) if state.unread[v] > 1)
    return new_bytes + copied_bytes - freed_bytes


def _changed(state: _State, step: KernelStep) -> list[Value]:
    """The operands that a kernel changes in place."""
    if not isinstance(step, Invoke):
        return []
    kernel = state.kernels[step.kernel]
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
    for value in set(step.operands):
        state.unread[value] -= 1
        # The one remaining reader now frees the value, and so has become cheaper.
        if state.unread[value] == 1:
            affected_steps.update(state.readers[value])
    return affected_steps
