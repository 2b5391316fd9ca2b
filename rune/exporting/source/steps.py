"""The steps of a plan as lines of C, for any device.

    launch, copy  ->  lines of the interface
    loop 3        ->  for (; t0 != 3; t0++) { ... }
    branch        ->  switch (...) { case 0: ... }

An `Interface` writes launches, calls, copies, stores and loads; loops and branches are plain C. A
loop whose carries alternate between two buffers has one body for even steps and one for odd steps.
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
    """A number as a C expression of the sizes, which are arguments of the entry.

    >>> from rune import dims
    >>> in_c(4 * dims.symbol("n", 1) + 64), in_c(7)
    ('4 * size_n + 64', '7')
    """
    return index_text(x, size_name).replace("rune_", "host_")


def size_name(name: str) -> str:
    """The name of the argument of the entry for a size."""
    return "size_" + re.sub(r"[^A-Za-z0-9_]", "_", name)


# The functions that expressions of `in_c` may call.
ROUNDING = """static inline int64_t host_floordiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t host_mod(int64_t a, int64_t b) { return a - b * host_floordiv(a, b); }
static inline int64_t host_divisor(int64_t b) { return b ? b : 1; }"""


class Interface(Protocol):
    """How to write steps for a device, in lines of C."""

    def number(self, x: Size) -> str:
        """A number as an expression of the sizes."""
        ...

    def launch(self, step: Launch, places: Sequence[Place]) -> list[str]:
        """Run a kernel on these places, in the order of its parameters."""
        ...

    def call(self, step: Call, places: Sequence[Place]) -> list[str]:
        """Run a user's function on these places: the results, then the operands."""
        ...

    def copy(self, target: Place, source: Place) -> list[str]:
        """Copy bytes."""
        ...

    def write(self, place: Place, number: str) -> str:
        """Store an i32."""
        ...

    def read(self, place: Place) -> str:
        """An expression for the i32 or bool at a place, once all earlier work is done."""
        ...


class InC:
    """Numbers in C; calls are refused."""

    def number(self, x: Size) -> str:
        """A number as an expression of the sizes."""
        return in_c(x)

    def call(self, step: Call, places: Sequence[Place]) -> list[str]:
        """Errors: ArgumentError, because the function runs in Python on the host."""
        del places
        function = dict(step.parameters).get("function", step.routine)
        raise ArgumentError(
            f"source: cannot write {function} (Python computes it on the host)",
            hint="leave it out of the function, or write it with operations that devices support",
        )


class BufferCommands(InC):
    """Copies, stores and loads of buffers with handles, as calls of the host's functions."""

    def copy(self, target: Place, source: Place) -> list[str]:
        """A copy between buffers."""
        at, to, count = map(self.number, (source.offset, target.offset, target.bytes))
        return [f"copy({memory(source)}, {at}, {memory(target)}, {to}, {count});"]

    def write(self, place: Place, number: str) -> str:
        """A store of one word."""
        return f"store({memory(place)}, {self.number(place.offset)}, {number});"

    def read(self, place: Place) -> str:
        """A read that waits for all earlier work."""
        return f"load({memory(place)}, {self.number(place.offset)}, {place.bytes})"


@dataclass(slots=True)
class Writer:
    """Lines, and the number of loops so far. counter: the declaration of a step's number."""

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
        """Write a loop with a number of steps, or one that runs while its condition holds."""
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
        if turns > 1 and loop.settle:  # after an odd number of steps the carry is in the other buffer
            with self.block(f"if ({t} % 2) {{"):
                self.steps(loop.settle)

    def in_turns(self, t: str, bodies: Sequence[Steps]) -> None:
        """Write the body; of two bodies the first for even steps and the second for odd ones."""
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
        """A context that writes a head, indents the lines inside, and writes a closing brace."""
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


def step_lines(steps: Steps, interface: Interface, counter: str = "int32_t") -> str:
    """All steps as lines of C, or of a language with the same statements, as JavaScript."""
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
    """The address of a place in the host's memory."""
    return f"({memory(place)} + {in_c(place.offset)})"


NEAREST = """static int32_t rune_nearest(int32_t number, int32_t last) {
  return number < 0 ? 0 : number > last ? last : number;
}"""
