"""Plan memory: give every intermediate value an offset in one arena.

Before   %1 = launch @a;  %2 = launch @b %1;  %3 = launch @c %2     3 buffers of 4 KiB
After    %1 @ 0,  %2 @ 4096,  %3 @ 0                                arena 8 KiB

Arguments and results have their own memory. If the last reader of a value may write its result in
place (the kernel's `aliases`, a loop's carries, values that every branch updates or passes on), the
result takes over the value's memory; so does a result that of a donated argument. The programs of a
loop or branch are planned first: their arenas, and the second buffers of carries that are not
updated in place, are values of the step.

Invariant: two values alive at the same step never share a byte, except for such pairs
(plan_check.py verifies it on the finished plan).
Cost:      that of placing the values in the arena (arena.py), at compile time only.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from rune import dims, dtypes
from rune.core.sizes import SizeSource, size_sources
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import DimensionError
from rune.lowering import late_modules
from rune.lowering.arena import Block, Placement, aligned, live_peak, place, type_bytes
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernels import Choose, Invoke, KernelProgram, KernelStep, Repeat, Routine, Value, kernel_names
from rune.lowering.kernels_text import program_sizes
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Space, Step, is_one_place, shared_donations
from rune.lowering.size_values import value_limits
from rune.ops.loop import COUNTER
from rune.records import dataclass

Chain = list[Value]  # values that use one piece of memory in turn
Ranges = dict[Value, tuple[int, int]]  # the first and the last step of a value
PRODUCTS = ("dot", "strided_dot")  # the routines with which bands begin (bands.py)


def plan_memory(
    program: KernelProgram, codes: Mapping[str, KernelCode], target: str, donated: Sequence[int] = ()
) -> Plan:
    """The plan of a kernel program whose steps are in order.

    Errors: DimensionError if a symbolic size is not an axis of any argument.
    """
    anywhere = tuple(range(len(program.outputs)))
    plan = _plan(program, codes, target, dict.fromkeys(donated, anywhere))
    return replace(plan, size_sources=_size_sources(program), limits=value_limits(codes))


Heirs = Mapping[int, tuple[int, ...]]  # per donated argument, the results that may take its memory


def _plan(program: KernelProgram, codes: Mapping[str, KernelCode], target: str, heirs: Heirs) -> Plan:
    """The plan, without the sources of its sizes."""
    within = _all_within(program, codes, target)
    ranges, turns = _ranges(program, codes, live_ranges(program, within))
    pairs = _in_place(program, codes, within, turns, heirs)
    donations = _donations(program, ranges, pairs, heirs)
    chains = _chains(program, ranges, pairs)
    donors = {program.outputs[r]: program.inputs[a] for a, r in donations}
    loans = _lent(
        program,
        chains,
        pairs,
        lambda result, first: result not in donors or _is_free(program, codes, within, ranges, donors[result], first),
    )
    # Chains that use a result's memory need no space in the arena.
    lent_chains = [id(chain) for chain in loans.values()]
    placements, total = place(_block(c, ranges) for c in chains if id(c) not in lent_chains)
    slots = _slots(program, placements, loans)
    steps: list[Step] = []
    for number, step in enumerate(program.steps):
        steps += _steps(program, step, slots, within.get(number))
    steps += _copies(program, slots)
    return Plan(
        program.name,
        target,
        tuple(v.type for v in program.inputs),
        program.output_types,
        tuple(steps),
        {name: codes[name] for step in program.steps for name in kernel_names(step)},
        total,
        (),
        donations,
        live_peak(placements),
    )


# --- programs within --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Within:
    """The plans that a step runs, and the memory that only this step needs while it runs."""

    plans: tuple[Plan, ...]
    arena: Value | None = None
    counter: Value | None = None
    holds: Value | None = None
    seconds: Mapping[int, Value] = field(default_factory=dict)  # second buffers, by result
    in_place: tuple[tuple[int, int], ...] = ()  # (argument, result) that share memory in every branch

    @property
    def values(self) -> tuple[Value, ...]:
        """All values in that memory."""
        alone = (self.arena, self.counter, self.holds)
        return (*(v for v in alone if v is not None), *self.seconds.values())


def _all_within(program: KernelProgram, codes: Mapping[str, KernelCode], target: str) -> dict[int, Within]:
    """The inner plans and extra memory of the steps, by number."""
    numbers_in_use = (v.number for s in program.steps for v in (*s.operands, *s.results))
    first = max((*numbers_in_use, *(v.number for v in program.inputs)), default=0) + 1
    numbers = itertools.count(first)
    plans_within: dict[int, Within] = {}
    for number, step in enumerate(program.steps):
        match step:
            case Repeat():
                plans_within[number] = _within_loop(step, codes, target, numbers)
            case Choose():
                plans = _branch_plans(step, codes, target)
                plans_within[number] = Within(plans, _arena(plans, numbers), in_place=shared_donations(plans))
    return plans_within


def _within_loop(step: Repeat, codes: Mapping[str, KernelCode], target: str, numbers: Iterator[int]) -> Within:
    start = len(step.body.inputs) - len(step.results)
    # For the body a carry is a donated argument: its next value may overwrite it.
    heirs = {start + k: (k,) for k in range(len(step.results))}
    body = _in_position(_plan(step.body, codes, target, heirs), step.body, start)
    donated_results = {result for _, result in body.donations}
    seconds = {k: Value(next(numbers), v.type) for k, v in enumerate(step.results) if k not in donated_results}
    counter = Value(next(numbers), COUNTER)
    if step.condition is None:
        return Within((body,), _arena((body,), numbers), counter, None, seconds)
    plans = (_plan(step.condition, codes, target, {}), body)
    holds = Value(next(numbers), ArrayType((), dtypes.bool_))
    return Within(plans, _arena(plans, numbers), counter, holds, seconds)


def _branch_plans(step: Choose, codes: Mapping[str, KernelCode], target: str) -> tuple[Plan, ...]:
    """The plans of branches.

    An argument is donated to the result as which some branch returns it unchanged, or else to any
    result of its type. Only donations that all branches share are used.
    """
    heirs: dict[int, tuple[int, ...]] = {}
    types = step.branches[0].output_types
    for a, argument in enumerate(step.branches[0].inputs):
        fits = [r for r, type in enumerate(types) if type.strong() is argument.type.strong()]
        passed_on = [r for r in fits if any(b.outputs[r] == b.inputs[a] for b in step.branches)]
        heirs[a] = tuple(passed_on[:1] or fits)
    return tuple(_with_unchanged(_plan(b, codes, target, heirs), b, heirs) for b in step.branches)


def _with_unchanged(plan: Plan, program: KernelProgram, heirs: Heirs) -> Plan:
    """The plan of a branch, which donates each argument that it returns unchanged to its result."""
    passed_arguments = tuple(
        (a, rs[0]) for a, rs in heirs.items() if rs and program.outputs[rs[0]] == program.inputs[a]
    )
    return replace(plan, donations=(*plan.donations, *passed_arguments))


def _in_position(body: Plan, program: KernelProgram, start: int) -> Plan:
    """The plan of a body, which donates each carry that it does not change to its own result.

    Every donation of a body takes place, so the copies between such slots do nothing.
    """
    constant_carries = tuple((start + k, k) for k, v in enumerate(program.outputs) if v == program.inputs[start + k])
    return replace(body, donations=(*body.donations, *constant_carries))


def _arena(plans: Iterable[Plan], numbers: Iterator[int]) -> Value | None:
    """Memory that is large enough for the arena of each plan."""
    total: Size = 0
    for plan in plans:
        # Only one of the plans runs at a time, so the largest arena serves all.
        if dims.at_most(plan.arena_bytes, total):
            continue
        larger = dims.at_most(total, plan.arena_bytes)
        # Symbolic sizes that cannot be compared are added up, which is always enough.
        total = plan.arena_bytes if larger else total + plan.arena_bytes
    return None if total == 0 else Value(next(numbers), ArrayType((total,), dtypes.u8))


# --- live ranges ------------------------------------------------------------------------------


def live_ranges(program: KernelProgram, within: Mapping[int, Within] | None = None) -> Ranges:
    """For every value, the first step that writes it (-1: an input) and the last that uses it."""
    ranges = {v: (-1, -1) for v in program.inputs}
    for number, step in enumerate(program.steps):
        for value in (*step.results, *step.operands):
            ranges[value] = (ranges.get(value, (number, 0))[0], number)
    for number, memory in (within or {}).items():
        # Alive only during their step, so other steps can share the memory.
        ranges |= dict.fromkeys(memory.values, (number, number))
    end = len(program.steps)
    for value in program.outputs:
        # Results live to the end, one step beyond the last.
        ranges[value] = (ranges.get(value, (end, 0))[0], end)
    return ranges


def _ranges(program: KernelProgram, codes: Mapping[str, KernelCode], ranges: Ranges) -> tuple[Ranges, Ranges]:
    """Live ranges for placing values, and for results that take over memory: wider in bands."""
    if not any(isinstance(step, Routine) and step.routine in PRODUCTS for step in program.steps):
        return ranges, ranges
    bands = late_modules.bands()
    known = bands.bands_of_program(program, codes)
    return bands.widened(ranges, known), bands.in_turn(ranges, known)


def _in_place(
    program: KernelProgram, codes: Mapping[str, KernelCode], within: Mapping[int, Within], ranges: Mapping, heirs: Heirs
) -> dict[Value, Value]:
    """{result: operand} where the result may take over the memory of an operand that dies.

    Donated arguments come before other operands, but only results that may have them take them.
    """
    # Only a value written by one step can take memory over; parts of it would come too late.
    writers = Counter(v for step in program.steps for v in step.results)
    heirs_of = {program.inputs[a]: {program.outputs[r] for r in rs} for a, rs in heirs.items()}
    live_inputs = set(program.inputs) - heirs_of.keys()
    in_place: dict[Value, Value] = {}
    reused_operands: set[Value] = set()
    for number, step in enumerate(program.steps):
        pairs, times = _alias_values(step, codes, within.get(number)), Counter(step.operands)
        for operand, result in sorted(pairs, key=lambda pair: pair[0] not in heirs_of):
            # A step that has an operand twice could write it by one name and read it by the other.
            dies = ranges[operand][1] == number and times[operand] == 1
            fits = operand not in live_inputs and result in heirs_of.get(operand, (result,))
            if dies and fits and writers[result] == 1 and operand not in reused_operands:
                if in_place.setdefault(result, operand) is operand:
                    reused_operands.add(operand)
    return in_place


def _alias_values(
    step: KernelStep, codes: Mapping[str, KernelCode], within: Within | None
) -> list[tuple[Value, Value]]:
    """(operand, result) pairs that may share memory."""
    match step:
        case Invoke(kernel=kernel):
            names = [p.name for p in codes[kernel].params]
            values = dict(zip(names, (*step.operands, *step.results)))
            return [(values[a], values[b]) for a, b in codes[kernel].aliases]
        case Repeat(consts=consts):
            # The first values of carries; the arrays after them start empty.
            return list(zip(step.operands[consts:], step.results))
        case Choose() if within is not None:
            return [(step.operands[1 + a], step.results[r]) for a, r in within.in_place]
        case _:
            return []


def _chains(program: KernelProgram, ranges: Mapping, pairs: Mapping[Value, Value]) -> list[Chain]:
    """The values that need memory, in chains of values that take over from each other."""
    # Inputs and outputs are the caller's memory, not the arena's.
    caller_memory = {*program.inputs, *program.outputs}
    chains: dict[Value, Chain] = {}
    for value in ranges:
        if value in caller_memory:
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
    is_free: Callable[[Value, Value], bool],
) -> dict[Value, Chain]:
    """Results whose memory a chain may use before them, because they take over from it.

    is_free: whether nothing else needs a result's memory when a chain's first value is computed
    """
    takers = {operand: result for result, operand in pairs.items()}
    inputs, outputs = set(program.inputs), set(program.outputs)
    loans: dict[Value, Chain] = {}
    for chain in chains:
        result = takers.get(chain[-1])
        if result in outputs and result not in inputs and result not in loans:
            if is_free(result, chain[0]) and all(v.type.dtype == result.type.dtype for v in chain):
                loans[result] = chain
    return loans


def _is_free(
    program: KernelProgram,
    codes: Mapping[str, KernelCode],
    within: Mapping[int, Within],
    ranges: Mapping,
    donor: Value,
    first: Value,
) -> bool:
    """Whether no step reads a donated argument once `first` is computed, perhaps in place."""
    last, birth = ranges[donor][1], ranges[first][0]
    step = program.steps[birth]
    in_place = (donor, first) in _alias_values(step, codes, within.get(birth)) and step.operands.count(donor) == 1
    return last < birth or (last == birth and in_place)


def _block(chain: Chain, ranges: Mapping) -> Block:
    # One piece of memory, alive from the first value's birth to the last one's death.
    first, last = ranges[chain[0]][0], ranges[chain[-1]][1]
    return Block(tuple(chain), first, last, aligned(type_bytes(chain[0].type)))


# --- the plan ---------------------------------------------------------------------------------


def _slots(program: KernelProgram, placements: Iterable[Placement], loans: Mapping[Value, Chain]) -> dict[Value, Slot]:
    slots = {v: Slot(Space.ARENA, v.type, offset=p.offset) for p in placements for v in p.block.values}
    for number, (value, type) in enumerate(zip(program.outputs, program.output_types)):
        for user in (value, *loans.get(value, ())):
            # The type in the steps: a result may have the same elements in another shape.
            slot_type = type if user.type.strong() is type.strong() else user.type
            slots.setdefault(user, Slot(Space.RESULT, slot_type, number))
    for number, value in enumerate(program.inputs):
        # Last and unconditional: a result that is an argument is read from the argument.
        slots[value] = Slot(Space.ARGUMENT, value.type, number)
    return slots


def _steps(
    program: KernelProgram, step: KernelStep, slots: Mapping[Value, Slot], within: Within | None
) -> Iterator[Step]:
    """A step, after copies of the values that it changes in place."""
    results = tuple(slots[v] for v in step.results)
    operands = tuple(slots[v] for v in step.operands)
    match step:
        case Invoke():
            yield from _launch(program, step, operands, results)
        case Routine(routine=routine, parameters=parameters, frame=frame):
            yield Call(routine, results, operands, parameters, frame)
        case Choose():
            assert within is not None
            offset = _offset(within, slots)
            yield Branch(operands[0], operands[1:], results, within.plans, offset)
        case Repeat():
            assert within is not None
            yield from _repeat(step, operands, results, slots, within)


def _launch(program: KernelProgram, step: Invoke, operands: Sequence[Slot], results: Sequence[Slot]) -> Iterator[Step]:
    kernel, slots = program.kernels[step.kernel], list(operands)
    for source, output in kernel.in_place:
        k = [b.name for b in kernel.inputs].index(source)
        result = results[[b.name for b in kernel.outputs].index(output)]
        # The input is still needed, so the output starts as a copy of it.
        if not is_one_place(slots[k], result):
            yield Copy(result, slots[k])
        slots[k] = result
    yield Launch(step.kernel, (*slots, *results), step.frame)


def _repeat(
    step: Repeat, operands: Sequence[Slot], results: Sequence[Slot], slots: Mapping[Value, Slot], within: Within
) -> Iterator[Step]:
    """A loop, after the copies that give each carry its first value."""
    for first, carry in zip(operands[step.consts :], results):
        if not is_one_place(first, carry):
            yield Copy(carry, first)
    assert within.counter is not None
    yield Loop(
        (slots[within.counter], *operands[: step.consts], *results),
        tuple(slots[within.seconds[k]] if k in within.seconds else r for k, r in enumerate(results)),
        len(results) - len(operands) + step.consts,
        within.plans[-1],
        None if within.holds is None else within.plans[0],
        None if within.holds is None else slots[within.holds],
        step.count,
        _offset(within, slots),
    )


def _offset(within: Within, slots: Mapping[Value, Slot]) -> Size:
    return 0 if within.arena is None else slots[within.arena].offset


def _copies(program: KernelProgram, slots: Mapping[Value, Slot]) -> list[Copy]:
    """Copies to results that are arguments, or equal to other results."""
    copies = []
    for number, (value, type) in enumerate(zip(program.outputs, program.output_types)):
        result_slot = Slot(Space.RESULT, type, number)
        empty = any(isinstance(d, int) and d == 0 for d in type.shape)
        if not is_one_place(slots[value], result_slot) and not empty:
            copies.append(Copy(result_slot, slots[value]))
    return copies


def _donations(
    program: KernelProgram, ranges: Mapping, pairs: Mapping[Value, Value], heirs: Heirs
) -> tuple[tuple[int, int], ...]:
    """(argument, result) pairs of one type whose live ranges do not meet."""
    donations: list[tuple[int, int]] = []
    recipients: set[int] = set()
    for argument, numbers in heirs.items():
        donor = program.inputs[argument]
        free = [n for n in numbers if n not in recipients]
        number = _recipient(program, ranges, pairs, donor, free)
        if number is not None:
            donations.append((argument, number))
            recipients.add(number)
    return tuple(donations)


def _recipient(
    program: KernelProgram, ranges: Mapping, pairs: Mapping, donor: Value, free: Iterable[int]
) -> int | None:
    """The result that takes over a donated argument: in place, or one that is written later."""
    last = ranges[donor][1]
    later = []
    for number in free:
        result = program.outputs[number]
        fits = donor.type.strong() is program.output_types[number].strong()
        # An argument that is returned, or a value returned twice, is copied to its result instead.
        owner = program.outputs.index(result) == number and result not in program.inputs
        if not fits or not owner or donor in program.outputs:
            continue
        # A result computed in place is preferred, since both would otherwise be alive at once.
        if pairs.get(result) == donor:
            return number
        if last < ranges[result][0]:
            later.append(number)
    return later[0] if later else None


def _size_sources(program: KernelProgram) -> tuple[SizeSource, ...]:
    """Where each symbolic size is read off the arguments."""
    sources = size_sources(tuple(v.type for v in program.inputs))
    missing = program_sizes(program).keys() - {s.name for s in sources}
    if missing:
        argument_types = ", ".join(str(v.type) for v in program.inputs)
        raise DimensionError(
            f"plan_memory: cannot find the size {', '.join(sorted(missing))} "
            f"(it cannot be read off the arguments of {program.name}: {argument_types})"
        )
    return sources
