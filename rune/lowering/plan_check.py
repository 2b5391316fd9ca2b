"""Check a plan: no two live values share a byte, and nothing is read that was not written.

The check knows only the finished plan. A value lives in a slot from the first step that writes it
to the last that reads it; a slot that is written again after it was read holds another value. Two
values may share memory in one step only where the kernel's `aliases` name the pair.

Cost: quadratic in the number of values. Offsets of symbolic sizes must be provably apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from rune import dims
from rune.errors import CheckError
from rune.lowering.kernel.nodes import Access
from rune.lowering.memory import type_bytes
from rune.lowering.plan import Call, Copy, Launch, Plan, Slot, Space, Step


@dataclass(slots=True)
class _Life:
    """One value in the arena or in a result, as the finished plan shows it."""

    slot: Slot
    first: int
    last: int


def check_overlap(plan: Plan) -> None:
    """Verify the invariant above on a finished plan, from its steps alone.

    Errors: CheckError "check_overlap: cannot keep arena[0]:f32[8] and arena[16]:f32[8] apart ...".
    """
    lives = _lives(plan)
    for n, a in enumerate(lives):
        if a.slot.space is Space.ARENA:
            _check_inside(plan, a)
        for b in lives[n + 1 :]:
            if a.slot.space is not b.slot.space:
                continue
            if a.first <= b.last and b.first <= a.last and not _is_handed_over(plan, a, b):
                if not _are_apart(a.slot, b.slot):
                    raise CheckError(
                        f"check_overlap: cannot keep {_name(a.slot)} and {_name(b.slot)} apart "
                        f"(steps {a.first}..{a.last} and {b.first}..{b.last} of {plan.name})"
                    )


def _lives(plan: Plan) -> list[_Life]:
    found: list[_Life] = []
    current: dict[Slot, _Life] = {}
    was_read: set[Slot] = set()
    for number, step in enumerate(plan.steps):
        reads, writes = accesses(plan, step)
        for slot in (s for s in reads if s.space is not Space.ARGUMENT):
            if slot not in current:
                raise CheckError(
                    f"check_overlap: cannot read {_name(slot)} (step {number} of {plan.name}; "
                    "nothing was written there)"
                )
            current[slot].last = number
            was_read.add(slot)
        for slot in (s for s in writes if s.space is not Space.ARGUMENT):
            if slot not in current or slot in was_read:
                current[slot] = _Life(slot, number, number)
                found.append(current[slot])
                was_read.discard(slot)
            current[slot].last = number
    return found


def accesses(plan: Plan, step: Step) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    """The slots that a step reads and those that it writes."""
    match step:
        case Launch(kernel=kernel, slots=slots):
            params = plan.kernels[kernel].params
            reads = tuple(s for p, s in zip(params, slots) if p.access is Access.READ)
            return reads, tuple(s for p, s in zip(params, slots) if p.access is not Access.READ)
        case Call(outputs=outputs, inputs=inputs):
            return inputs, outputs
        case Copy(target=target, source=source):
            return (source,), (target,)


def _check_inside(plan: Plan, life: _Life) -> None:
    end = life.slot.offset + type_bytes(life.slot.type)
    if not dims.at_most(end, plan.arena_bytes):
        raise CheckError(
            f"check_overlap: cannot place {_name(life.slot)} (it ends at {end}, "
            f"the arena at {plan.arena_bytes})"
        )


def _are_apart(a: Slot, b: Slot) -> bool:
    if a.space is Space.RESULT:
        return a.number != b.number
    before = dims.at_most(a.offset + type_bytes(a.type), b.offset)
    after = dims.at_most(b.offset + type_bytes(b.type), a.offset)
    return bool(before or after)


def _is_handed_over(plan: Plan, a: _Life, b: _Life) -> bool:
    """Whether the later value takes the earlier one's memory in a kernel that allows it."""
    early, late = (a, b) if a.first <= b.first else (b, a)
    step = plan.steps[late.first] if early.last == late.first else None
    same = (early.slot.offset, early.slot.number) == (late.slot.offset, late.slot.number)
    if not isinstance(step, Launch) or not same:
        return False
    code = plan.kernels[step.kernel]
    slots = dict(zip((p.name for p in code.params), step.slots))
    return any((slots[x], slots[y]) == (early.slot, late.slot) for x, y in code.aliases)


def _name(slot: Slot) -> str:
    if slot.space is Space.ARENA:
        return f"arena[{slot.offset}]:{slot.type}"
    return f"{slot.space.value} {slot.number}"
