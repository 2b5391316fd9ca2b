"""Plan memory: give every intermediate value an offset in one arena.

Before   %1 = launch @a;  %2 = launch @b %1;  %3 = launch @c %2     3 buffers of 4 KiB
After    %1 @ 0,  %2 @ 4096,  %3 @ 0                                arena 8 KiB

Arguments and results are memory of their own. A value whose last reader may write its result in
place (the kernel's `aliases`) lends it its memory, and so does a donated argument to a result.

Invariant: two values alive at the same step never share a byte, but for such pairs
(plan_check.py follows the finished plan and verifies it).
Cost:      O(n^2) in the number of intermediate values n, at compile time only.
Source:    greedy by size, best fit: Pisarchyk & Lee 2020, arXiv:2001.03288.
Not done:  values of symbolic size share memory only with values that are never larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rune import dims
from rune.core.types import ArrayType
from rune.dims import Dim, Size, product
from rune.errors import DimensionError
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Invoke, KernelProgram, KernelStep, Value
from rune.lowering.kernels_text import program_sizes
from rune.lowering.plan import Call, Copy, Launch, Plan, SizeSource, Slot, Space, Step

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register


Chain = list[Value]  # values that use one piece of memory in turn


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
    program: KernelProgram,
    codes: Mapping[str, KernelCode],
    target: str,
    donated: Sequence[int] = (),
) -> Plan:
    """The plan of a scheduled kernel program.

    Errors: DimensionError when a symbolic size is no axis of any argument.
    """
    ranges = live_ranges(program)
    given = {program.inputs[a] for a in donated}
    pairs = _in_place(program, codes, ranges, given)
    donations = _donations(program, ranges, pairs, donated)
    chains = _chains(program, ranges, pairs)
    lent = _lent(program, chains, pairs, {program.outputs[r] for _, r in donations})
    moved = [id(chain) for chain in lent.values()]
    placed, total = place(_block(c, ranges) for c in chains if id(c) not in moved)
    slots = _slots(program, placed, lent)
    steps = [made for step in program.steps for made in _steps(program, step, slots)]
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
        donations,
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
    program: KernelProgram, codes: Mapping[str, KernelCode], ranges: Mapping, donated: set[Value]
) -> dict[Value, Value]:
    """{result: operand} where the result may take over the memory of an operand that dies.

    A donated argument is taken before any other operand, but only by a result of the program.
    """
    writers = Counter(v for step in program.steps for v in step.results)
    outputs, kept = set(program.outputs), set(program.inputs) - donated
    found: dict[Value, Value] = {}
    taken: set[Value] = set()
    for number, step in enumerate(program.steps):
        if not isinstance(step, Invoke):
            continue
        pairs = _alias_values(step, codes[step.kernel])
        for operand, result in sorted(pairs, key=lambda pair: pair[0] not in donated):
            dies = ranges[operand][1] == number and step.operands.count(operand) == 1
            fits = operand not in kept and (operand not in donated or result in outputs)
            if dies and fits and writers[result] == 1 and not {operand, result} & taken:
                found[result] = operand
                taken |= {operand, result}
    return found


def _alias_values(step: Invoke, code: KernelCode) -> list[tuple[Value, Value]]:
    names = [p.name for p in code.params]
    values = dict(zip(names, (*step.operands, *step.results)))
    return [(values[a], values[b]) for a, b in code.aliases]


def _chains(program: KernelProgram, ranges: Mapping, pairs: Mapping[Value, Value]) -> list[Chain]:
    """The values that need memory, those together that take over from each other."""
    owned = {*program.inputs, *program.outputs}
    chains: dict[Value, Chain] = {}
    for value in ranges:
        if value in owned:
            continue
        before = pairs.get(value)
        chain = chains.get(before) if before is not None else None
        if chain is None:
            chain = []
        chain.append(value)
        chains[value] = chain
    return list({id(chain): chain for chain in chains.values()}.values())


def _lent(
    program: KernelProgram,
    chains: Iterable[Chain],
    pairs: Mapping[Value, Value],
    donated: set[Value],
) -> dict[Value, Chain]:
    """Results whose memory a chain may use before them, because they take over from it.

    Those in the memory of a `donated` argument may not: it may still be read.
    """
    takers = {operand: result for result, operand in pairs.items()}
    inputs, outputs = {*program.inputs, *donated}, set(program.outputs)
    found: dict[Value, Chain] = {}
    for chain in chains:
        result = takers.get(chain[-1])
        if result in outputs and result not in inputs and result not in found:
            if all(v.type.dtype == result.type.dtype for v in chain):
                found[result] = chain
    return found


def _block(chain: Chain, ranges: Mapping) -> Block:
    first, last = ranges[chain[0]][0], ranges[chain[-1]][1]
    return Block(tuple(chain), first, last, aligned(type_bytes(chain[0].type)))


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


def _slots(
    program: KernelProgram, placed: Iterable[Placed], lent: Mapping[Value, Chain]
) -> dict[Value, Slot]:
    slots = {v: Slot(Space.ARENA, v.type, offset=p.offset) for p in placed for v in p.block.values}
    for number, (value, type) in enumerate(zip(program.outputs, program.output_types)):
        for user in (value, *lent.get(value, ())):
            slots.setdefault(user, Slot(Space.RESULT, type, number))
    for number, value in enumerate(program.inputs):
        slots[value] = Slot(Space.ARGUMENT, value.type, number)
    return slots


def _steps(program: KernelProgram, step: KernelStep, slots: Mapping[Value, Slot]) -> Iterator[Step]:
    """A step, behind the copies that what it makes in place starts out from."""
    operands = [slots[v] for v in step.operands]
    results = tuple(slots[v] for v in step.results)
    if not isinstance(step, Invoke):
        yield Call(step.routine, results, tuple(operands), step.parameters)
        return
    kernel = program.kernels[step.kernel]
    for source, changed in kernel.in_place:
        k = [b.name for b in kernel.inputs].index(source)
        result = results[[b.name for b in kernel.outputs].index(changed)]
        if operands[k] != result:
            yield Copy(result, operands[k])
        operands[k] = result
    yield Launch(step.kernel, (*operands, *results))


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
        number = _recipient(program, ranges, pairs, given, taken)
        if number is not None:
            found.append((argument, number))
            taken.add(number)
    return tuple(found)


def _recipient(
    program: KernelProgram, ranges: Mapping, pairs: Mapping, given: Value, taken: set[int]
) -> int | None:
    """The result that takes over a donated argument: one that does so in place, or a later one."""
    last = ranges[given][1]
    later = []
    for number, result in enumerate(program.outputs):
        fits = given.type.strong() is program.output_types[number].strong()
        owner = program.outputs.index(result) == number and result not in program.inputs
        if number in taken or not fits or not owner or given in program.outputs:
            continue
        if pairs.get(result) == given:
            return number
        if last < ranges[result][0]:
            later.append(number)
    return later[0] if later else None


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
