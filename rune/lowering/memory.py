"""Plan memory: give every intermediate value an offset in one arena.

Before   %1 = launch @a;  %2 = launch @b %1;  %3 = launch @c %2     3 buffers of 4 KiB
After    %1 @ 0,  %2 @ 4096,  %3 @ 0                                arena 8 KiB

Arguments and results are memory of their own. A value whose last reader may write its result in
place (the kernel's `aliases`) lends it its memory, and so does a donated argument to a result.

Invariant: two values alive at the same step never share a byte, but for such pairs
(`check_overlap` follows the finished plan and verifies it).
Cost:      O(n^2) in the number of intermediate values n, at compile time only.
Source:    greedy by size, best fit: Pisarchyk & Lee 2020, arXiv:2001.03288.
Not done:  values of symbolic size share memory only with values that are never larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rune import dims
from rune.core.types import ArrayType
from rune.dims import Dim, Size, product
from rune.errors import CheckError, DimensionError
from rune.lowering.kernel.nodes import Access, KernelCode
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Invoke, KernelProgram, KernelStep, Value
from rune.lowering.kernels_text import program_sizes
from rune.lowering.plan import Call, Copy, Launch, Plan, SizeSource, Slot, Space, Step

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that some values use in turn, from step `first` to step `last` inclusive."""

    values: tuple[Value, ...]
    first: int
    last: int
    bytes: Size


@dataclass(frozen=True, slots=True)
class Placed:
    """A block with its offset."""

    block: Block
    offset: Size


def type_bytes(type: ArrayType) -> Size:
    """Bytes of an array."""
    return product(type.shape) * type.dtype.itemsize


def aligned(size: Size) -> Size:
    """The size rounded up to whole cache lines.

    >>> aligned(1), aligned(64), aligned(65)
    (64, 64, 128)
    """
    return -(-size // ALIGNMENT) * ALIGNMENT


def plan_memory(
    program: KernelProgram, codes: Mapping[str, KernelCode], target: str, donated: Sequence[int] = ()
) -> Plan:
    """The plan of a scheduled kernel program.

    Errors: DimensionError when a symbolic size is no axis of any argument.
    """
    ranges = live_ranges(program)
    pairs = _in_place(program, codes, ranges)
    placed, total = place(_blocks(program, ranges, pairs))
    slots = _slots(program, placed)
    steps = [_step(step, slots) for step in program.steps]
    steps += _copies(program, slots)
    return Plan(
        program.name,
        target,
        tuple(v.type for v in program.inputs),
        program.output_types,
        tuple(steps),
        dict(codes),
        total,
        _size_sources(program),
        _donations(program, ranges, pairs, donated),
        live_peak(placed),
    )


# --- live ranges ------------------------------------------------------------------------------


def live_ranges(program: KernelProgram) -> dict[Value, tuple[int, int]]:
    """For every value, the first step that writes it (-1: an input) and the last that uses it."""
    found = {v: (-1, -1) for v in program.inputs}
    for number, step in enumerate(program.steps):
        for value in (*step.results, *step.operands):
            found[value] = (found.get(value, (number, 0))[0], number)
    end = len(program.steps)
    for value in program.outputs:
        found[value] = (found.get(value, (end, 0))[0], end)
    return found


def _in_place(
    program: KernelProgram, codes: Mapping[str, KernelCode], ranges: Mapping
) -> dict[Value, Value]:
    """{result: operand} where the result may take over the memory of an operand that dies."""
    writers: dict[Value, int] = {}
    for step in program.steps:
        for value in step.results:
            writers[value] = writers.get(value, 0) + 1
    found: dict[Value, Value] = {}
    for number, step in enumerate(program.steps):
        if isinstance(step, Invoke):
            for operand, result in _alias_values(step, codes[step.kernel]):
                dies = ranges[operand][1] == number and step.operands.count(operand) == 1
                if dies and writers[result] == 1 and operand not in found.values():
                    found[result] = operand
    return found


def _alias_values(step: Invoke, code: KernelCode) -> list[tuple[Value, Value]]:
    names = [p.name for p in code.params]
    values = dict(zip(names, (*step.operands, *step.results)))
    return [(values[a], values[b]) for a, b in code.aliases]


def _blocks(program: KernelProgram, ranges: Mapping, pairs: Mapping[Value, Value]) -> list[Block]:
    """The memory blocks of the arena: values that take over from each other share one."""
    owned = {*program.inputs, *program.outputs}
    chains: dict[Value, list[Value]] = {}
    for value in ranges:
        if value in owned:
            continue
        before = pairs.get(value)
        chain = chains.get(before) if before is not None and before not in owned else None
        if chain is None:
            chains[value] = [value]
        else:
            chain.append(value)
            chains[value] = chain
    distinct = {id(chain): chain for chain in chains.values()}
    return [
        Block(
            tuple(chain), ranges[chain[0]][0], ranges[chain[-1]][1],
            aligned(type_bytes(chain[0].type)),
        )
        for chain in distinct.values()
    ]  # fmt: skip


# --- placement --------------------------------------------------------------------------------


def place(blocks: Iterable[Block]) -> tuple[list[Placed], Size]:
    """Offsets for all blocks, and the bytes of all: known sizes by best fit, then symbolic ones."""
    blocks = list(blocks)
    static = [b for b in blocks if isinstance(b.bytes, int)]
    placed: list[Placed] = []
    for block in sorted(static, key=lambda b: (-_known(b.bytes), b.first)):
        placed.append(Placed(block, _best_fit(block, placed)))
    end = max((_known(p.offset) + _known(p.block.bytes) for p in placed), default=0)
    symbolic = [b for b in blocks if not isinstance(b.bytes, int)]
    more, total = _place_symbolic(symbolic, end)
    return placed + more, total


def _known(size: Size) -> int:
    assert isinstance(size, int)
    return size


def _best_fit(block: Block, placed: Sequence[Placed]) -> int:
    """The start of the smallest gap, between blocks alive at the same time, that is enough."""
    alive = sorted(
        (_known(p.offset), _known(p.block.bytes)) for p in placed if _meet(p.block, block)
    )
    best: tuple[int, int] | None = None
    end = 0
    for offset, size in alive:
        gap = offset - end
        if gap >= _known(block.bytes) and (best is None or gap < best[0]):
            best = (gap, end)
        end = max(end, offset + size)
    return best[1] if best is not None else end


def _meet(a: Block, b: Block) -> bool:
    return a.first <= b.last and b.first <= a.last


def _place_symbolic(blocks: Iterable[Block], start: Size) -> tuple[list[Placed], Size]:
    """Slots one after the other; a block takes a free slot that is surely large enough."""
    slots: list[list[Placed]] = []
    for block in sorted(blocks, key=lambda b: (-cost.estimate(b.bytes), b.first)):
        for slot in slots:
            fits = dims.at_most(block.bytes, slot[0].block.bytes)
            if fits and not any(_meet(p.block, block) for p in slot):
                slot.append(Placed(block, slot[0].offset))
                break
        else:
            slots.append([Placed(block, start)])
            start = start + block.bytes
    return [p for slot in slots for p in slot], start


def live_peak(placed: Iterable[Placed]) -> Size:
    """The largest sum of bytes alive at one step: no arena can be smaller."""
    changes: dict[int, list[Size]] = {}
    for block in (p.block for p in placed):
        changes.setdefault(block.first, []).append(block.bytes)
        changes.setdefault(block.last + 1, []).append(-block.bytes)
    peak: Size = 0
    alive: Size = 0
    for step in sorted(changes):
        for change in changes[step]:
            alive = alive + change
        if cost.estimate(alive) > cost.estimate(peak):
            peak = alive
    return peak


# --- the plan ---------------------------------------------------------------------------------


def _slots(program: KernelProgram, placed: Iterable[Placed]) -> dict[Value, Slot]:
    slots = {
        v: Slot(Space.ARENA, v.type, offset=p.offset) for p in placed for v in p.block.values
    }
    for number, (value, type) in enumerate(zip(program.outputs, program.output_types)):
        slots.setdefault(value, Slot(Space.RESULT, type, number))
    for number, value in enumerate(program.inputs):
        slots[value] = Slot(Space.ARGUMENT, value.type, number)
    return slots


def _step(step: KernelStep, slots: Mapping[Value, Slot]) -> Step:
    operands = tuple(slots[v] for v in step.operands)
    results = tuple(slots[v] for v in step.results)
    if isinstance(step, Invoke):
        return Launch(step.kernel, (*operands, *results))
    return Call(step.routine, results, operands, step.parameters)


def _copies(program: KernelProgram, slots: Mapping[Value, Slot]) -> list[Copy]:
    """Results that are arguments, or other results."""
    found = []
    for number, (value, type) in enumerate(zip(program.outputs, program.output_types)):
        own = Slot(Space.RESULT, type, number)
        empty = any(isinstance(d, int) and d == 0 for d in type.shape)
        if slots[value] != own and not empty:
            found.append(Copy(own, slots[value]))
    return found


def _donations(
    program: KernelProgram, ranges: Mapping, pairs: Mapping[Value, Value], donated: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """(argument, result) pairs of one type whose lives do not meet."""
    found: list[tuple[int, int]] = []
    taken: set[int] = set()
    for argument in donated:
        given = program.inputs[argument]
        if given in program.outputs:
            continue
        for number, result in enumerate(program.outputs):
            fits = given.type.strong() is program.output_types[number].strong()
            first = program.outputs.index(result) == number and result not in program.inputs
            if number in taken or not fits or not first:
                continue
            last, start = ranges[given][1], ranges[result][0]
            if last < start or (last == start and pairs.get(result) == given):
                found.append((argument, number))
                taken.add(number)
                break
    return tuple(found)


def _size_sources(program: KernelProgram) -> tuple[SizeSource, ...]:
    """Where each symbolic size is read off the arguments."""
    found: dict[str, SizeSource] = {}
    for argument, value in enumerate(program.inputs):
        for axis, size in enumerate(value.type.shape):
            if isinstance(size, Dim) and str(size).isidentifier():
                (s,) = dims.symbols(size)
                low, high = dims.bounds(size)
                found.setdefault(s.name, SizeSource(s.name, argument, axis, low or 0, high))
    missing = program_sizes(program).keys() - found.keys()
    if missing:
        raise DimensionError(
            f"plan_memory: cannot find the size {', '.join(sorted(missing))} "
            f"(no axis of an argument of {program.name} is exactly that)"
        )
    return tuple(found.values())


# --- check ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Life:
    """One value in the arena, as the finished plan shows it."""

    slot: Slot
    first: int
    last: int


def check_overlap(plan: Plan) -> None:
    """Verify the invariant above on a finished plan, from its steps alone.

    Errors: CheckError "check_overlap: cannot keep arena[0]:f32[8] and arena[16]:f32[8] apart ...".
    """
    lives = _lives(plan)
    for n, a in enumerate(lives):
        _check_inside(plan, a)
        for b in lives[n + 1 :]:
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
        for slot in (s for s in reads if s.space is Space.ARENA):
            if slot not in current:
                raise CheckError(
                    f"check_overlap: cannot read {_name(slot)} (step {number} of {plan.name}; "
                    "nothing was written there)"
                )
            current[slot].last = number
            was_read.add(slot)
        for slot in (s for s in writes if s.space is Space.ARENA):
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
    before = dims.at_most(a.offset + type_bytes(a.type), b.offset)
    after = dims.at_most(b.offset + type_bytes(b.type), a.offset)
    return bool(before or after)


def _is_handed_over(plan: Plan, a: _Life, b: _Life) -> bool:
    """Whether the later value takes the earlier one's memory in a kernel that allows it."""
    early, late = (a, b) if a.first <= b.first else (b, a)
    step = plan.steps[late.first] if early.last == late.first else None
    if not isinstance(step, Launch) or early.slot.offset != late.slot.offset:
        return False
    code = plan.kernels[step.kernel]
    slots = dict(zip((p.name for p in code.params), step.slots))
    return any((slots[x], slots[y]) == (early.slot, late.slot) for x, y in code.aliases)


def _name(slot: Slot) -> str:
    return f"arena[{slot.offset}]:{slot.type}"
