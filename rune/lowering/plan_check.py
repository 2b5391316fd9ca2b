"""Check a plan: no two live values share a byte, and nothing is read before it is written.

Every size has a source, which agrees with the type of the argument that it is read from.

The check uses only the finished plan. A value lives in a slot from the first step that writes it to
the last that reads it; a slot that is written again after it was read has another value. Two values
may share memory in one step only if the kernel's `aliases` name the pair, or if every branch takes
one as a donation to the other.

Cost: quadratic in the number of values. Offsets of symbolic sizes must be provably apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.errors import CheckError
from rune.lowering.arena import type_bytes
from rune.lowering.kernel.nodes import Access, For, If, KernelCode, Stmt, Store
from rune.lowering.plan import (
    Branch,
    Call,
    Copy,
    Launch,
    Loop,
    Plan,
    Slot,
    Space,
    Step,
    inner_plans,
    shared_donations,
    slots_of,
)
from rune.lowering.source_calls import is_source, kernel_of
from rune.records import dataclass


def check_sizes(plan: Plan) -> None:
    """Verify that the plan's sizes can be read from its arguments.

    Errors: CheckError "plan f: cannot read the size n (axis 0 of argument 0 is m, not n)".
    """
    # The order matters: a size may be read with a factor that mentions earlier ones.
    known: set[str] = set()
    for s in plan.size_sources:
        if not 0 <= s.argument < len(plan.arguments):
            _unreadable(plan, s.name, f"there is no argument {s.argument}")
        shape = plan.arguments[s.argument].shape
        if not 0 <= s.axis < len(shape):
            _unreadable(plan, s.name, f"argument {s.argument} has no axis {s.axis}")
        if shape[s.axis] != s.dim:
            place = f"axis {s.axis} of argument {s.argument}"
            _unreadable(plan, s.name, f"{place} is {shape[s.axis]}, not {s.dim}")
        # Reading a size divides by its factor; None means that the factor could be 0.
        if dims.equal(s.factor, 0) is not False:
            _unreadable(plan, s.name, f"the factor {s.factor} may be 0")
        parts = s.offset, s.factor, s.low, 0 if s.high is None else s.high
        unknown = dims.symbols_within(*parts).keys() - known
        if unknown:
            _unreadable(plan, s.name, f"{', '.join(sorted(unknown))} is not known before")
        known.add(s.name)
    missing = _sizes_used(plan) - known
    if missing:
        _unreadable(plan, ", ".join(sorted(missing)), "no argument has it")


def _unreadable(plan: Plan, name: str, why: str) -> NoReturn:
    raise CheckError(f"plan {plan.name}: cannot read the size {name} ({why})")


def _sizes_used(plan: Plan) -> set[str]:
    sizes: list[Size] = [plan.arena_bytes]
    for type in (*plan.arguments, *plan.results):
        sizes += type.shape
    within: set[str] = set()
    for step in plan.steps:
        # Sizes of inner plans also have to be read from the outer arguments.
        within |= {name for inner in inner_plans(step) for name in _sizes_used(inner)}
        sizes += [x for s in slots_of(step) for x in (s.offset, *s.type.shape)]
        if isinstance(step, Call):
            sizes += [v for _, v in step.parameters if isinstance(v, Dim)]
            within.update(kernel_of(step).sizes if is_source(step) else ())
    of_kernels = {name for code in plan.kernels.values() for name in code.sizes}
    return within | of_kernels | {s.name for x in sizes for s in dims.symbols(x)}


@dataclass(slots=True)
class _Life:
    """The live range of one value in the arena or in a result."""

    slot: Slot
    first: int
    last: int


def check_overlap(plan: Plan) -> None:
    """Verify the invariant above on a finished plan, using only its steps.

    Errors: CheckError "check_overlap: cannot keep arena[0]:f32[8] and arena[16]:f32[8] apart ...".
    """
    for step in plan.steps:
        _check_within(plan, step)
    lives = _lives(plan)
    # All pairs, because a check should be simpler than the code it checks.
    for n, a in enumerate(lives):
        if a.slot.space is Space.ARENA:
            _check_inside(plan, a, lives)
        for b in lives[n + 1 :]:
            # Results do not lie in the arena, and arguments are never written.
            if a.slot.space is not b.slot.space:
                continue
            if a.first <= b.last and b.first <= a.last and not _is_handed_over(plan, a, b):
                if not _are_apart(a.slot, b.slot):
                    raise CheckError(
                        f"check_overlap: cannot keep {_name(a.slot)} and {_name(b.slot)} apart "
                        f"(steps {a.first}..{a.last} and {b.first}..{b.last} of {plan.name})"
                    )


def _check_within(plan: Plan, step: Step) -> None:
    """Check the inner plans of a step, and that their arenas lie within that of the plan."""
    if not isinstance(step, (Loop, Branch)):
        return
    for inner in inner_plans(step):
        check_overlap(inner)
        if not dims.at_most(step.offset + inner.arena_bytes, plan.arena_bytes):
            raise CheckError(
                f"check_overlap: cannot place the arena of {inner.name} "
                f"({step.offset} + {inner.arena_bytes} of {plan.arena_bytes} bytes)"
            )
    if isinstance(step, Loop):
        # The step number and the constants precede the state.
        first = len(step.arguments) - len(step.results)
        for k, (carry, next_value) in enumerate(zip(step.state, step.results)):
            is_same = _bytes(carry) == _bytes(next_value)
            if is_same != ((first + k, k) in step.body.donations):
                raise CheckError(
                    f"check_overlap: cannot give {_name(carry)} and {_name(next_value)} to a loop "
                    f"(argument {first + k} of {step.body.name} is not updated in place)"
                )


def _is_empty(slot: Slot) -> bool:
    """Whether the slot has no elements, so that no step writes it."""
    return any(isinstance(d, int) and d == 0 for d in slot.type.shape)


def _lives(plan: Plan) -> list[_Life]:
    lives: list[_Life] = []
    current: dict[Slot, _Life] = {}
    # A slot written again after it was read has another value.
    was_read: set[Slot] = set()
    for number, step in enumerate(plan.steps):
        reads, writes = accesses(plan, step)
        # Compared as bytes, because steps may use them as different types.
        read_bytes = {_bytes(s) for s in reads}
        for slot in (s for s in reads if s.space is not Space.ARGUMENT):
            if _is_empty(slot):
                continue
            place = _bytes(slot)
            # A value must be read back with exactly the range that was written.
            if place not in current:
                raise CheckError(
                    f"check_overlap: cannot read {_name(slot)} (step {number} of {plan.name}; "
                    "nothing was written there)"
                )
            current[place].last = number
            was_read.add(place)
        for slot in (s for s in writes if s.space is not Space.ARGUMENT):
            place = _bytes(slot)
            goes_on = isinstance(step, Loop) and place in read_bytes  # a carry
            if place not in current or (place in was_read and not goes_on):
                current[place] = _Life(slot, number, number)
                lives.append(current[place])
                was_read.discard(place)
            current[place].last = number
        if isinstance(step, (Loop, Branch, Call)):
            # They write whole values, so the next write there begins another value even if nobody
            # has read these. A kernel may write a part of a value and leave the others to the next.
            was_read.update(map(_bytes, writes))
        elif isinstance(step, Launch):
            was_read.update(map(_bytes, _written_whole(plan.kernels[step.kernel], step.slots)))
    return lives


def _written_whole(code: KernelCode, slots: Sequence[Slot]) -> Iterator[Slot]:
    """The slots in which a kernel stores as many elements as they have."""
    for param, slot in zip(code.params, slots):
        if param.access is not Access.READ and dims.at_most(param.size, _stores(code.body, param.name)):
            yield slot


def _stores(body: Sequence[Stmt], buffer: str) -> Size:
    """The most often that statements may store into a buffer."""
    count: Size = 0
    for stmt in body:
        match stmt:
            case Store(buffer=name):
                count += name == buffer
            case For(extent=extent, body=inner):
                count += extent * _stores(inner, buffer)
            case If(body=inner, orelse=orelse):
                count += _stores(inner, buffer) + _stores(orelse, buffer)
    return count


def _bytes(slot: Slot) -> Slot:
    """The slot as bytes, since a copy uses the program's dtype and a kernel that of the storage."""
    return replace(slot, type=ArrayType((type_bytes(slot.type),), dtypes.u8))


def _internal_slots(step: Loop | Branch) -> tuple[Slot, ...]:
    """The slots that only the loop or branch itself uses: step number, condition, arena."""
    if isinstance(step, Branch):
        return _arena(step)
    holds = () if step.holds is None else (step.holds,)
    return (step.arguments[0], *holds, *_arena(step))


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
        case Branch(number=branch_number, arguments=arguments, results=results):
            return (branch_number, *arguments), (*results, *_internal_slots(step))
        case Loop():
            return _slots_read(step), (*step.state, *step.results, *_internal_slots(step))


def _slots_read(step: Loop) -> tuple[Slot, ...]:
    """The slots that a loop reads before it writes them: constants and carries, but not arrays."""
    # Argument 0 is the step number, which the executor writes.
    return step.arguments[1 : len(step.arguments) - step.arrays]


def _arena(step: Loop | Branch) -> tuple[Slot, ...]:
    """The part of the arena that the inner plans use, one at a time."""
    sizes = [inner.arena_bytes for inner in inner_plans(step) if inner.arena_bytes != 0]
    # Symbolic sizes may have no single maximum; then several candidates are kept.
    largest = [s for s in dict.fromkeys(sizes) if not _is_covered(s, sizes)]
    return tuple(Slot(Space.ARENA, ArrayType((size,), dtypes.u8), offset=step.offset) for size in largest)


def _is_covered(size: Size, sizes: list[Size]) -> bool:
    return any(other != size and dims.at_most(size, other) for other in sizes)


def _check_inside(plan: Plan, life: _Life, lives: Sequence[_Life]) -> None:
    """Check that a value ends within the arena, or before the begin of another: easier to prove."""
    end, arena = life.slot.offset + type_bytes(life.slot.type), plan.arena_bytes
    begins = (other.slot.offset for other in lives if other.slot.space is Space.ARENA)
    if not any(dims.at_most(end, x) and dims.at_most(x, arena) for x in (arena, *begins)):
        raise CheckError(
            f"check_overlap: cannot place {_name(life.slot)} (it ends at {end}, the arena at {plan.arena_bytes})"
        )


def _are_apart(a: Slot, b: Slot) -> bool:
    if a.space is Space.RESULT:
        return a.number != b.number
    # None, which means that the sizes leave it open, counts as an overlap.
    before = dims.at_most(a.offset + type_bytes(a.type), b.offset)
    after = dims.at_most(b.offset + type_bytes(b.type), a.offset)
    return bool(before or after)


def _is_handed_over(plan: Plan, a: _Life, b: _Life) -> bool:
    """Whether the later value takes the earlier one's memory in a step that allows it."""
    early, late = (a, b) if a.first <= b.first else (b, a)
    # Memory is handed over in the step that reads one value and writes the other.
    step = plan.steps[late.first] if early.last == late.first else None
    same = (early.slot.offset, early.slot.number) == (late.slot.offset, late.slot.number)
    if not isinstance(step, Launch | Branch) or not same:
        return False
    pair = _bytes(early.slot), _bytes(late.slot)
    if isinstance(step, Branch):
        donations = shared_donations(step.branches)
        return any((_bytes(step.arguments[a]), _bytes(step.results[r])) == pair for a, r in donations)
    code = plan.kernels[step.kernel]
    slots = dict(zip((p.name for p in code.params), map(_bytes, step.slots)))
    return any((slots[x], slots[y]) == pair for x, y in code.aliases)


def _name(slot: Slot) -> str:
    if slot.space is Space.ARENA:
        return f"arena[{slot.offset}]:{slot.type}"
    return f"{slot.space.value} {slot.number}"
