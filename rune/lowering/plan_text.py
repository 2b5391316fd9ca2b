"""Plans as text, and back: parse(to_text(p)) == p.

    plan  := block {code}
    block := "plan" name "on" target "{" {fact} {number ":" step} "}"
    fact  := "size" name "=" source "in" dim ".." [dim]
           | "argument" number ":" type  |  "result" number ":" type
           | "arena" dim "bytes, at least" dim
           | "donate" "argument" number "->" "result" number
           | "limit" dim "to" number
    source := axis | "(" axis "-" dim ")" "/" dim
    axis  := "argument" number "axis" number
    step  := "launch" name slots "<-" slots  |  "call" name parameters slots "<-" slots
           | "copy" slot "<-" slot
           | "loop" (dim | "while" slot) "arrays" number "at" dim slots "<-" slots "{" {block} "}"
           | "branch" slot "at" dim slots "<-" slots "{" {block} "}"
    slots := [slot {"," slot}]
    slot  := ("argument" number | "result" number) [":" type] | "arena" "[" dim "]" ":" type

A slot without a type has the type of the argument or result. The function of a callback prints as
its name, and is not read back. Kernel code follows in its own language (kernel/text.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from rune import dims, dtypes
from rune.core.reading import next_line, reading
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.errors import CheckError
from rune.lowering.kernel import text as code_text
from rune.lowering.kernel.nodes import Access, KernelCode
from rune.lowering.plan import (
    Branch,
    Call,
    Copy,
    Launch,
    Loop,
    Plan,
    SizeSource,
    Slot,
    Space,
    Step,
    buffer_type,
    inner_plans,
    kernel_names,
)


def to_text(plan: Plan, *, codes: bool = True) -> str:
    """The plan in the grammar above; with `codes`, its kernels too."""
    kernels = [code_text.to_text(c) for c in plan.kernels.values()] if codes else []
    return "\n".join([*_block(plan), *kernels])


def _block(plan: Plan) -> Iterator[str]:
    """The steps, and those of inner plans."""
    yield f"plan {plan.name} on {plan.target} {{"
    yield from (f"  size {_source(s)}" for s in plan.size_sources)
    yield from (f"  argument {n}: {t}" for n, t in enumerate(plan.arguments))
    yield from (f"  result {n}: {t}" for n, t in enumerate(plan.results))
    yield f"  arena {plan.arena_bytes} bytes, at least {plan.live_peak_bytes}"
    yield from (f"  donate argument {a} -> result {r}" for a, r in plan.donations)
    yield from (f"  limit {size} to {most}" for size, most in plan.limits)
    for number, step in enumerate(plan.steps):
        yield f"  {number}: {_step(plan, step)}"
        inner = inner_plans(step)
        for within in inner:
            yield from ("    " + line for line in _block(within))
        if inner:
            yield "  }"
    yield "}"


def _source(s: SizeSource) -> str:
    axis = f"argument {s.argument} axis {s.axis}"
    if (s.offset, s.factor) != (0, 1):
        axis = f"({axis} - {_operand(s.offset)})/{_operand(s.factor)}"
    return f"{s.name} = {axis} in {s.low}..{'' if s.high is None else s.high}"


def _operand(x: Size) -> str:
    # Parenthesised, because "a - n - 1" is not "a - (n - 1)".
    text = str(x)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def slot_text(plan: Plan, slot: Slot) -> str:
    """`argument 0`, `result 1:f32[2,3]`, `arena[4096]:f32[512]`."""
    if slot.space is Space.ARENA:
        return f"arena[{slot.offset}]:{slot.type}"
    # Types are interned, so `is` is equality.
    type = f":{slot.type}" if slot.type is not buffer_type(plan, slot) else ""
    return f"{slot.space.value} {slot.number}{type}"


def _step(plan: Plan, step: Step) -> str:
    slots = partial(_slots, plan)
    match step:
        case Launch(kernel=kernel):
            reads, writes = _sides(plan.kernels[kernel], step.slots)
            return f"launch {kernel} {slots(writes)} <- {slots(reads)}".rstrip()
        case Call(routine=routine, outputs=outputs, inputs=inputs, parameters=parameters):
            pairs = ", ".join(f"{k}={v}" for k, v in parameters)
            return f"call {routine} {{{pairs}}} {slots(outputs)} <- {slots(inputs)}"
        case Copy(target=target, source=source):
            return f"copy {slots([target])} <- {slots([source])}"
        case Loop(count=count, holds=holds, offset=offset):
            times = str(count) if holds is None else f"while {slots([holds])}"
            sides = f"{slots(step.results)} <- {slots(step.arguments)}"
            return f"loop {times} arrays {step.arrays} at {offset} {sides} {{"
        case Branch(number=number, offset=offset):
            sides = f"{slots(step.results)} <- {slots(step.arguments)}"
            return f"branch {slots([number])} at {offset} {sides} {{"


def _slots(plan: Plan, slots: Iterable[Slot]) -> str:
    return ", ".join(slot_text(plan, slot) for slot in slots)


def _sides(code: KernelCode, slots: Iterable[Slot]) -> tuple[list[Slot], list[Slot]]:
    reads: list[Slot] = []
    writes: list[Slot] = []
    for param, slot in zip(code.params, slots):
        (reads if param.access is Access.READ else writes).append(slot)
    return reads, writes


# --- parse ------------------------------------------------------------------------------------

# Each line is one fact, so one pattern per kind of line is enough.
_SIZE = re.compile(r"size (\w+) = \(?argument (\d+) axis (\d+)(?: - (.+)\)/(.+))? in (.+)\.\.(.*)$")
_TYPED = re.compile(r"(argument|result) (\d+): (.+)$")
_ARENA = re.compile(r"arena (.+) bytes, at least (.+)$")
_DONATE = re.compile(r"donate argument (\d+) -> result (\d+)$")
_LIMIT = re.compile(r"limit (.+) to (\d+)$")
_LAUNCH = re.compile(r"\d+: launch (\w+) (.*?) ?<- ?(.*)$")
_CALL = re.compile(r"\d+: call (\w+) \{(.*?)\} (.*?) <- (.*)$")
_LOOP = re.compile(r"\d+: loop (while .*?|.*?) arrays (\d+) at (\S+) (.*?) ?<- ?(.*?) \{$")
_BRANCH = re.compile(r"\d+: branch (.*?) at (\S+) (.*?) ?<- ?(.*?) \{$")
_COPY = re.compile(r"\d+: copy (.*?) <- (.*)$")
# Types contain commas, so slots are matched rather than split.
_SLOT = re.compile(r"(?:(argument|result) (\d+)|arena\[([^\]]*)\])(?::(\w+\*?\[[^\]]*\]))?(?:, |$)")
_TYPE = re.compile(r"(\w+(?:<\w+>)?)(\*?)\[(.*)\]$")


class _Reader:
    """The parts of a plan from the lines that have been read."""

    def __init__(self, lines: Iterator[str], kernels: Mapping[str, KernelCode]) -> None:
        self.lines = lines
        self.kernels = kernels
        self.sizes: list[SizeSource] = []
        self.symbols: dict[str, Dim] = {}
        self.types: dict[str, list[ArrayType]] = {"argument": [], "result": []}
        self.arena: tuple[Size, Size] = (0, 0)
        self.donations: list[tuple[int, int]] = []
        self.limits: list[tuple[Size, int]] = []
        self.steps: list[Step] = []

    def line(self, text: str) -> None:
        """Read one line of the plan's body."""
        if match := _SIZE.match(text):
            name, argument, axis, offset, factor, low, high = match.groups()
            bounds = self.dim(low), self.dim(high) if high else None
            affine = self.dim(offset or "0"), self.dim(factor or "1")
            self.sizes.append(SizeSource(name, int(argument), int(axis), *bounds, *affine))
            # Lines after this one may mention the size.
            self.symbols[name] = dims.symbol(name, *bounds)
        elif match := _TYPED.match(text):
            self.types[match[1]].append(self.type(match[3]))
        elif match := _ARENA.match(text):
            self.arena = self.dim(match[1]), self.dim(match[2])
        elif match := _DONATE.match(text):
            self.donations.append((int(match[1]), int(match[2])))
        elif match := _LIMIT.match(text):
            self.limits.append((self.dim(match[1]), int(match[2])))
        else:
            self.steps.append(self.step(text))

    def step(self, text: str) -> Step:
        """Read one step."""
        if match := _LAUNCH.match(text):
            return self.launch(*match.groups())
        if match := _CALL.match(text):
            pairs = (p.split("=") for p in match[2].split(", ") if p)
            parameters = tuple((k, self.parameter(v)) for k, v in pairs)
            return Call(match[1], self.slots(match[3]), self.slots(match[4]), parameters)
        if match := _LOOP.match(text):
            return self.loop(*match.groups())
        if match := _BRANCH.match(text):
            (number,), sides = self.slots(match[1]), (self.slots(match[4]), self.slots(match[3]))
            return Branch(number, *sides, tuple(self.blocks()), self.dim(match[2]))
        if match := _COPY.match(text):
            return Copy(*self.slots(match[1]), *self.slots(match[2]))
        raise CheckError(f"parse: cannot read a plan (the line {text!r})")

    def launch(self, kernel: str, results: str, operands: str) -> Launch:
        """Read a launch: its slots, in the order of the kernel's parameters."""
        writes, reads = list(self.slots(results)), list(self.slots(operands))
        params = self.kernels[kernel].params
        # The text lists reads and writes separately; a launch has them in parameter order.
        are_read = [p.access is Access.READ for p in params]
        if (sum(are_read), len(params)) != (len(reads), len(reads) + len(writes)):
            slots = f"reads {sum(are_read)} and writes {len(params) - sum(are_read)} slots"
            difference = f"{kernel} {slots}, not {len(reads)} and {len(writes)}"
            raise CheckError(f"parse: cannot read a plan ({difference})")
        return Launch(kernel, tuple((reads if is_read else writes).pop(0) for is_read in are_read))

    def loop(self, times: str, arrays: str, offset: str, results: str, arguments: str) -> Loop:
        """Read a loop."""
        sides = self.slots(arguments), self.slots(results), int(arrays)
        # A condition comes before its body.
        *conditions, body = self.blocks()
        if not conditions:
            return Loop(*sides, body, None, None, self.dim(times), self.dim(offset))
        (holds,) = self.slots(times.removeprefix("while "))
        return Loop(*sides, body, conditions[0], holds, None, self.dim(offset))

    def blocks(self) -> Iterator[Plan]:
        """Read the plans of a step, and the bracket after them."""
        while (line := next_line(self.lines)) != "}":
            yield _read_block(line, self.lines, self.kernels, self.symbols)

    def slots(self, text: str) -> tuple[Slot, ...]:
        """Read slots between commas."""
        slots = []
        for space, number, offset, type in _SLOT.findall(text):
            if space:
                kind = self.type(type) if type else self.types[space][int(number)]
                slots.append(Slot(Space(space), kind, int(number)))
            else:
                slots.append(Slot(Space.ARENA, self.type(type), offset=self.dim(offset)))
        return tuple(slots)

    def parameter(self, text: str) -> Size:
        """True, False, or a size."""
        return text == "True" if text in ("True", "False") else self.dim(text)

    def dim(self, text: str) -> Size:
        """A size."""
        return dims.parse(text, self.symbols)

    def type(self, text: str) -> ArrayType:
        """An array type."""
        match = _TYPE.match(text)
        if match is None or match[1] not in dtypes.FROM_SHORT:
            raise CheckError(f"parse: cannot read a plan (the type {text!r})")
        shape = tuple(map(self.dim, match[3].split(","))) if match[3] else ()
        return ArrayType(shape, dtypes.FROM_SHORT[match[1]], bool(match[2]))


def parse(text: str) -> Plan:
    """The plan that `to_text` printed.

    Errors: CheckError "parse: cannot read a plan (the line ...)".
    """
    # Kernels follow the plan in the text but are read first, because steps look them up.
    body, *tail = re.split(r"^code ", text.strip(), flags=re.MULTILINE)
    with reading("a plan"):
        kernels = {c.name: c for c in (code_text.parse(f"code {chunk}") for chunk in tail)}
        lines = iter([line.strip() for line in body.splitlines() if line.strip()])
        return _read_block(next_line(lines), lines, kernels, {})


def _read_block(head: str, lines: Iterator[str], kernels: Mapping[str, KernelCode], symbols: Mapping[str, Dim]) -> Plan:
    words = head.split()
    if len(words) != 5 or words[0] != "plan":
        raise CheckError(f"parse: cannot read a plan (the line {head!r})")
    reader = _Reader(lines, kernels)
    # Inner plans mention sizes of the outer plan.
    reader.symbols.update(symbols)
    while (line := next_line(lines)) != "}":
        reader.line(line)
    names = {name for step in reader.steps for name in kernel_names(step)}
    return Plan(
        words[1],
        words[3],
        tuple(reader.types["argument"]),
        tuple(reader.types["result"]),
        tuple(reader.steps),
        {n: c for n, c in kernels.items() if n in names},
        reader.arena[0],
        tuple(reader.sizes),
        tuple(reader.donations),
        reader.arena[1],
        tuple(reader.limits),
    )
