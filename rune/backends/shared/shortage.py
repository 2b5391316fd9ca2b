"""Out of memory inside a plan: the plan, the size of its arena, and its largest live values.

f: cannot run on opencl:0 (its arena takes 8192 B, its results 64 B; most is alive at sum_1:
f32[32,32] of sin_0 (4096 B, demo.py:3), ...; alloc: cannot allocate 8192 B ...)
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from rune.backends.shared.executor import concrete_type, evaluate, size_bytes
from rune.backends.shared.pool import SHOWN, Use
from rune.errors import OutOfMemory
from rune.lowering.plan import Plan, Space, Step, inner_plans
from rune.lowering.steps import memory, slots_read, slots_written, step_name
from rune.records import dataclass

Sizes = Mapping[str, int]


@dataclass(slots=True)
class _Value:
    """A value in the arena, from the step that writes it to the last that reads it."""

    use: Use
    first: int
    last: int


def of_plan(error: OutOfMemory, plan: Plan, sizes: Sizes, device: str) -> OutOfMemory:
    """The error, with the plan that needed the memory."""
    arena = evaluate(plan.arena_bytes, sizes)
    results = sum(size_bytes(concrete_type(t, sizes)) for t in plan.results)
    return OutOfMemory(
        f"{plan.name}: cannot run on {device} (its arena takes {arena} B, its results {results} B"
        f"{_alive_text(plan, sizes)}; {error.message})",
        hint=error.hint,
        frame=error.frame,
    )


def _alive_text(plan: Plan, sizes: Sizes) -> str:
    step, uses = alive_at_once(plan, sizes)
    if not uses:
        return ""
    largest_uses = heapq.nlargest(SHOWN, uses, key=lambda use: use.bytes)
    return f"; most is alive at {step}: {', '.join(map(str, largest_uses))}"


def alive_at_once(plan: Plan, sizes: Sizes) -> tuple[str, list[Use]]:
    """The step during which most of the arena is in use, and the values in it then."""
    values = _values(plan, sizes)
    best: list[Use] = []
    at = ""
    for number, step in enumerate(plan.steps):
        # Quadratic, but plans are short and this only runs to word an error.
        alive = [v.use for v in values if v.first <= number <= v.last]
        if sum(u.bytes for u in alive) > sum(u.bytes for u in best):
            best, at = alive, step_name(step)
    return at, best


def _values(plan: Plan, sizes: Sizes) -> list[_Value]:
    values: list[_Value] = []
    occupants: dict[object, _Value] = {}  # by place in the arena
    for number, step in enumerate(plan.steps):
        read = {memory(s) for s in slots_read(plan, step)}
        for slot in (*slots_read(plan, step), *slots_written(plan, step)):
            if slot.space is not Space.ARENA:
                continue
            place, known = memory(slot), occupants.get(memory(slot))
            # A step that writes the place without reading it puts another value there.
            if known is None or (place not in read and known.first != number):
                type_ = concrete_type(slot.type, sizes)
                known = occupants[place] = _value(step, number, size_bytes(type_), type_)
                values.append(known)
            known.last = number
        # Inner plans run one at a time in the same memory, so the largest arena counts.
        inside = max((evaluate(p.arena_bytes, sizes) for p in inner_plans(step)), default=0)
        if inside:
            values.append(_value(step, number, inside, "intermediates"))
    return values


def _value(step: Step, number: int, nbytes: int, content: object) -> _Value:
    use = Use(nbytes, (content, step_name(step)), getattr(step, "frame", None))
    return _Value(use, number, number)
