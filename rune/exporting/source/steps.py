"""The steps of a plan as lines of C, whatever device they drive.

    launch, copy  ->  lines of the interface
    loop 3        ->  for (; t0 != 3; t0++) { ... }
    branch        ->  switch (...) { case 0: ... }

How launches, calls, copies, stores and loads are written is the interface's (`Interface`); loops
and branches are C's own. Bodies whose carries take turns are written out for even and odd steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Protocol

from rune.backends.shared.executor import ConcreteBranch, ConcreteLoop, ConcreteStep, Place, Steps
from rune.dims import Size
from rune.errors import ArgumentError
from rune.lowering.codegen.infix import index_text
from rune.lowering.plan import Call, Copy, Launch, Space
from rune.records import dataclass

INDENT = "  "


def in_c(x: Size) -> str:
    """A number as C has it, in terms of the sizes, which are arguments of the entry.

    >>> from rune import dims
    >>> in_c(4 * dims.symbol("n", 1) + 64), in_c(7)
    ('4 * size_n + 64', '7')
    """
    return index_text(x, size_name).replace("rune_", "host_")


def size_name(name: str) -> str:
    """The argument of the entry that has a size."""
    return "size_" + re.sub(r"[^A-Za-z0-9_]", "_", name)


# What `in_c` may call.
ROUNDING = """static inline int64_t host_floordiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t host_mod(int64_t a, int64_t b) { return a - b * host_floordiv(a, b); }
static inline int64_t host_divisor(int64_t b) { return b ? b : 1; }"""


class Interface(Protocol):
    """How a device is driven, in lines of C."""

    def number(self, x: Size) -> str:
        """A number in terms of the sizes."""
        ...

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """Run a kernel on these places, in the order of its parameters."""
        ...

    def call(self, step: Call, places: Sequence[Place]) -> list[str]:
        """Run what a user wrote on these places: the results, then the operands."""
        ...

    def copy(self, target: Place, source: Place) -> list[str]:
        """Copy bytes."""
        ...

    def write(self, place: Place, number: str) -> str:
        """Store an i32."""
        ...

    def read(self, place: Place) -> str:
        """An expression: the i32 or bool there, when all before is done."""
        ...


class InC:
    """Numbers as C has them, and no call of anything."""

    def number(self, x: Size) -> str:
        """A number in terms of the sizes, which are arguments of the entry."""
        return in_c(x)

    def call(self, step: Call, places: Sequence[Place]) -> list[str]:
        """Errors: ArgumentError."""
        del places
        function = dict(step.parameters).get("function", step.routine)
        raise ArgumentError(
            f"source: cannot write {function} (the host computes it, in Python)",
            hint="leave it out of the function, or write it in operations that devices have",
        )


class BufferCommands(InC):
    """Copies, stores and loads of buffers with handles, by functions of the host."""

    def copy(self, target: Place, source: Place) -> list[str]:
        """Buffer to buffer."""
        at, to, count = map(self.number, (source.offset, target.offset, target.bytes))
        return [f"copy({memory(source)}, {at}, {memory(target)}, {to}, {count});"]

    def write(self, place: Place, number: str) -> str:
        """One word."""
        return f"store({memory(place)}, {self.number(place.offset)}, {number});"

    def read(self, place: Place) -> str:
        """A read that waits for all before it."""
        return f"load({memory(place)}, {self.number(place.offset)}, {place.bytes})"


@dataclass(slots=True)
class Writer:
    """Lines, and how many loops there were. counter: what declares the number of a step."""

    interface: Interface
    counter: str = "int32_t"
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    loops: int = 0

    def steps(self, steps: Steps) -> None:
        """Write steps in order."""
        for step in steps:
            match step:
                case ConcreteStep():
                    self.step(step)
                case ConcreteLoop():
                    self.loop(step)
                case ConcreteBranch():
                    self.branch(step)

    def step(self, step: ConcreteStep) -> None:
        """Write a launch, a call or a copy."""
        match step.step:
            case Launch() as launch:
                self.emit(*self.interface.launch(launch, step.places))
            case Copy() if step.places[0].bytes != 0:
                self.emit(*self.interface.copy(*step.places))
            case Call() as call:
                self.emit(*self.interface.call(call, step.places))

    def loop(self, loop: ConcreteLoop) -> None:
        """Write a loop: so many times, or as long as its condition holds."""
        t, self.loops = f"t{self.loops}", self.loops + 1
        turns = len(loop.bodies)
        self.emit(f"{self.counter} {t} = 0;")
        test = "" if loop.count is None else f" {t} != {self.interface.number(loop.count)}"
        with self.block(f"for (;{test or ' '}; {t}++) {{"):
            self.emit(self.interface.write(loop.counter, t))
            if loop.holds is not None:
                self.in_turns(t, loop.conditions)
                self.emit(f"if (!{self.interface.read(loop.holds)}) break;")
            self.in_turns(t, loop.bodies)
        if turns > 1 and loop.settle:
            with self.block(f"if ({t} % 2) {{"):
                self.steps(loop.settle)

    def in_turns(self, t: str, bodies: Sequence[Steps]) -> None:
        """Write what even steps do, and what odd ones do if that is another thing."""
        if len(bodies) == 1:
            self.steps(bodies[0])
            return
        with self.block(f"if ({t} % 2 == 0) {{"):
            self.steps(bodies[0])
        with self.block("else {"):
            self.steps(bodies[1])

    def branch(self, branch: ConcreteBranch) -> None:
        """Write a branch: a number out of range selects the nearest."""
        last = len(branch.branches) - 1
        number = self.interface.read(branch.number) if last else "0"
        with self.block(f"switch (rune_nearest({number}, {last})) {{"):
            for k, steps in enumerate(branch.branches):
                with self.block(f"case {k}: {{"):
                    self.steps(steps)
                    self.emit("break;")

    def emit(self, *lines: str) -> None:
        """Write lines."""
        self.lines += [INDENT * self.depth + line for line in lines]

    def block(self, head: str) -> _Block:
        """Write a head, what the block emits one step further in, and a closing brace."""
        return _Block(self, head)


@dataclass(frozen=True, slots=True)
class _Block:
    writer: Writer
    head: str

    def __enter__(self) -> None:
        self.writer.emit(self.head)
        self.writer.depth += 1

    def __exit__(self, *_: object) -> None:
        self.writer.depth -= 1
        self.writer.emit("}")


def written(steps: Steps, interface: Interface, counter: str = "int32_t") -> str:
    """All steps as lines of C, or of a language that has its statements."""
    writer = Writer(interface, counter)
    writer.steps(steps)
    return "\n".join(writer.lines)


def memory(place: Place) -> str:
    """The buffer that a place is in: arguments a, results r, arena m."""
    match place.space:
        case Space.ARGUMENT:
            return f"a[{place.number}]"
        case Space.RESULT:
            return f"r[{place.number}]"
        case Space.ARENA:
            return "m"


def memories(places: Sequence[Place]) -> Iterator[str]:
    """The buffers that places are in."""
    return map(memory, places)


def pointer(place: Place) -> str:
    """The address of a place, where the host has it."""
    return f"({memory(place)} + {in_c(place.offset)})"


NEAREST = """static int32_t rune_nearest(int32_t number, int32_t last) {
  return number < 0 ? 0 : number > last ? last : number;
}"""
