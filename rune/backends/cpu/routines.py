"""Writes native code other than kernels: shared words, loops, calls.

code.loop(head, body)    while the first value of `head` is true, `body` of its other values
code.ask("i32", "f", x)  call a function of the C library, or one of this module
code.ask("i32", p, x)    call the function that a pointer points to, as code.at(address) does
word, swap_if, ...       memory that several threads read and write, sequentially consistent
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from rune.lowering.codegen.llvm.ir.text import Number, Value, Writer
from rune.records import dataclass

_BYTES = {"i32": 4, "i64": 8}


@dataclass(slots=True)
class Code(Writer):
    """The body of one function."""

    def symbol(self, name: str) -> Value:
        """The address of a global, or of a function."""
        return Value(self, "ptr", f"@{name}")

    def ask(self, type: str, function: str | Value, *args: Value) -> Value:
        """Call a function, given by name or pointer, and return its result."""
        return self.effect(type, f"call {type} {_callee(function)}({_listed(args)})")

    def tell(self, type: str, function: str | Value, *args: Value) -> None:
        """Call a function for its effect, and ignore its result, which has this type."""
        self.do(f"call {type} {_callee(function)}({_listed(args)})")

    def word(self, type: str, pointer: Value) -> Value:
        """The value of a shared word."""
        # Sequentially consistent: who goes to sleep writes one word and then reads another, and who
        # wakes it does so in the other order (threads_code.py).
        at = f"ptr {pointer.text} seq_cst, align {_BYTES[type]}"
        return self.effect(type, f"load atomic {type}, {at}")

    def set_word(self, type: str, pointer: Value, value: Value | Number) -> None:
        """Store a value in a shared word."""
        text = value.text if isinstance(value, Value) else str(value)
        at = f"ptr {pointer.text} seq_cst, align {_BYTES[type]}"
        self.do(f"store atomic {type} {text}, {at}")

    def add_to_word(self, pointer: Value, number: int) -> None:
        """Add to a shared word of 64 bits."""
        self.effect("i64", f"atomicrmw add ptr {pointer.text}, i64 {number} seq_cst")

    def swap_if(self, pointer: Value, before: Value, after: Value) -> Value:
        """Compare-and-swap: store `after` if the shared word is `before`; whether it was."""
        words = f"{before.type} {before.text}, {after.type} {after.text}"
        pair = self.effect(f"{{ {before.type}, i1 }}", f"cmpxchg ptr {pointer.text}, {words} seq_cst seq_cst")
        return self.effect("i1", f"extractvalue {pair.type} {pair.text}, 1")

    def variable(self, type: str, value: Number) -> Value:
        """A stack slot of this function with an initial value."""
        pointer = self.allocate(type)
        self.store(self.constant(type, value), pointer)
        return pointer

    def row(self, type: str, count: Value) -> Value:
        """Uninitialised memory on the stack for `count` values. Not in a loop: it stays
        allocated."""
        return self.effect("ptr", f"alloca {type}, i64 {count.text}")

    def switch(self, number: Value, cases: Mapping[int, Callable[[], Value]], orelse: Callable[[], Value]) -> Value:
        """cases[number](), or orelse() if there is no such case."""
        default, labels = self.name("else"), {case: self.name("case") for case in cases}
        table = " ".join(f"{number.type} {case}, label %{label}" for case, label in labels.items())
        self.do(f"switch {number.type} {number.text}, label %{default} [ {table} ]")
        return self.value_of_blocks([*((labels[case], write) for case, write in cases.items()), (default, orelse)])

    def loop(self, head: Callable[[], tuple[Value, ...]], body: Callable[..., None]) -> tuple[Value, ...]:
        """while (condition) body(*values), where head() gives the condition and the values.

        Returns the values of the last round, in which the condition was false.
        """
        head_label, inside, after = self.name("again"), self.name("inside"), self.name("after")
        self.jump(head_label)
        self.label(head_label)
        condition, *values = head()
        self.branch(condition, inside, after)
        with self.region(inside):
            body(*values)
            self.jump(head_label)
        self.label(after)
        return tuple(values)

    def leading(self, count: Value, holds: Callable[[Value], Value]) -> Value:
        """The first k of 0, 1, ..., count - 1 for which holds(k) is false; `count` if there is
        none."""
        head_label, inside, after = self.name("again"), self.name("inside"), self.name("after")
        number = self.variable("i64", 0)
        self.jump(head_label)
        self.label(head_label)
        k = self.load("i64", number)
        self.branch(k < count, inside, after)
        with self.region(inside):
            condition = holds(k)
            self.store(k + 1, number)
            self.branch(condition, head_label, after)
        self.label(after)
        return k

    def text(self, linkage: str, result: str, name: str, parameters: Sequence[Value]) -> str:
        """The function as a definition."""
        head = f"define {linkage}{result} @{name}({_listed(parameters)}) #0 {{"
        return "\n".join([head, "entry:", *self.entry, *self.lines, "}"])


def parameters(code: Code, words: str) -> list[Value]:
    """Values of parameters: "ptr task, i64 total"."""
    pairs = [word.split() for word in words.split(", ") if word]
    return [Value(code, type, f"%{name}") for type, name in pairs]


def define(signature: tuple[str, str, str], write: Callable[..., Value | None], linkage: str = "internal ") -> str:
    """A function of this signature (result, name, parameters) whose body `write` writes.

    write: takes the Code and a Value for each parameter; returns the result, None for void
    """
    result, name, words = signature
    code = Code()
    values = parameters(code, words)
    answer = write(code, *values)
    code.do("ret void" if answer is None else f"ret {result} {answer.text}")
    declarations = sorted(code.declarations)
    return "\n".join([*declarations, code.text(linkage, result, name, values)])


def definitions(
    functions: Iterable[tuple[tuple[str, str, str], Callable[..., Value | None]]],
    *context: object,
    exported: Collection[str] = (),
) -> str:
    """Functions after one another, each of a signature and of what writes its body.

    context: the first arguments of all writers. exported: names that are seen outside the module
    """
    return "\n\n".join(
        define(signature, partial(write, *context), "" if signature[1] in exported else "internal ")
        for signature, write in functions
    )


def null(code: Code) -> Value:
    """The null pointer, which Python's functions return after they have set an error."""
    return Value(code, "ptr", "null")


def is_null(object: Value) -> Value:
    """Whether a pointer is null."""
    return object.compare("eq", Value(object.writer, "ptr", "null"))


def true(code: Code) -> Value:
    """The constant true."""
    return Value(code, "i1", "true")


def false(code: Code) -> Value:
    """The constant false."""
    return Value(code, "i1", "false")


def monotonic_ns(code: Code, clock_gettime: str | Value) -> Value:
    """Nanoseconds of the monotonic clock, read by this function of the C library."""
    return clock_ns(code, clock_gettime, time.CLOCK_MONOTONIC)


def clock_ns(code: Code, clock_gettime: str | Value, clock: int) -> Value:
    """Nanoseconds of one of the system's clocks."""
    # Seconds and nanoseconds, both of 64 bits on 64-bit systems.
    timespec = code.allocate("[2 x i64]")
    code.tell("i32", clock_gettime, code.constant("i32", clock), timespec)
    seconds = code.load("i64", timespec)
    nanoseconds = code.load("i64", code.item(timespec, "i64", 1))
    return seconds * 1_000_000_000 + nanoseconds


def _callee(function: str | Value) -> str:
    return f"@{function}" if isinstance(function, str) else function.text


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(f"{v.type} {v.text}" for v in values)
