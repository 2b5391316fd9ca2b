"""What a step of a plan looks at while it runs, to hear that all is over (pulse.py).

%w = (address of @is_over, 0)         before a routine that may take long, which is given %w
if %w[1] then return                  behind it
if @is_over(%w) then return           behind a kernel, or a part of one
"""

from __future__ import annotations

from collections.abc import Callable

from rune import dims
from rune.backends.cpu import pulse
from rune.backends.cpu.entry import function_at
from rune.backends.cpu.frames import in_memory, read
from rune.backends.cpu.gemm.shape import WATCHED_OPERATIONS
from rune.dims import Size
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Watch:
    """Memory that a routine looks at, or null; `return_if` ends the function."""

    pointer: Value
    return_if: Callable[[Value], None]

    def close(self) -> None:
        """Behind the routine: return where a handler of signals has raised an error meanwhile."""
        if self.pointer.text != "null":
            self.return_if(read(self.pointer, "i64", pulse.OVER).compare("ne", 0))


def is_long(operations: Size) -> bool:
    """Whether a routine of so many operations may take long, and be told to end."""
    return pulse.is_available() and dims.less(operations, WATCHED_OPERATIONS) is not True


def new_watch(writer: Writer) -> Value:
    """Memory that says that nothing is over yet."""
    function = Value(writer, "ptr", function_at(pulse.watch_address()))
    return in_memory(writer, [function, writer.constant("i64", 0)])


def is_over(writer: Writer) -> Value:
    """Ask."""
    return writer.effect("i1", f"call i1 {function_at(pulse.watch_address())}(ptr {new_watch(writer).text})")
