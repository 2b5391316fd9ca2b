"""Watches: memory through which a step of a plan learns that it must end (pulse.py).

%w = (address of @is_over, 0)         before a routine that may take long, which gets %w
if %w[1] then return                  after it
if @is_over(%w) then return           after a kernel, or a part of one
"""

from __future__ import annotations

from collections.abc import Callable

from rune import dims
from rune.backends.cpu import pulse
from rune.backends.cpu.frames import in_memory, read
from rune.backends.cpu.gemm.shape import WATCHED_OPERATIONS
from rune.dims import Size
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Watch:
    """Memory that a routine polls, or null. return_if: ends the function if a condition holds."""

    pointer: Value
    return_if: Callable[[Value], None]

    def close(self) -> None:
        """After the routine: return if a signal handler has raised an error meanwhile."""
        if self.pointer.text != "null":
            self.return_if(read(self.pointer, "i64", pulse.OVER).compare("ne", 0))


def is_long(operations: Size) -> bool:
    """Whether a routine of this many operations may take long, and needs a watch."""
    # Of symbolic sizes `less` may not know: they may be large.
    return pulse.is_available() and dims.less(operations, WATCHED_OPERATIONS) is not True


def new_watch(writer: Writer) -> Value:
    """The memory of a new watch."""
    function = Value(writer, "ptr", pointer_to(pulse.watch_address()))
    return in_memory(writer, [function, writer.constant("i64", 0)])


def is_over(writer: Writer) -> Value:
    """Check for signals if it is time to; whether all is over."""
    return writer.effect("i1", f"call i1 {pointer_to(pulse.watch_address())}(ptr {new_watch(writer).text})")
