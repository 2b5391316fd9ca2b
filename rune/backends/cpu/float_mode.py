"""How a thread treats denormal numbers of f32 and f64: the processor's mode, in native code.

Intel's processors take some hundred cycles for an operation on a denormal number, others a few.
Code that flushes takes operands and results below the smallest normal number for 0.

    @run(ptr words)    sets the mode, calls the steps, and restores the caller's mode
    @help              the pool's workers compute in the mode of the thread that shares a task

Python functions that a plan calls see denormal numbers as usual.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3 (MXCSR); Arm
Architecture Reference Manual, FPCR.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

from rune.lowering.codegen.llvm.ir.text import Value, Writer

_IS_ARM = platform.machine().lower() in ("arm64", "aarch64")
_FLUSHES = 1 << 24 if _IS_ARM else 0x8040  # operands and results, which are two bits of MXCSR


def mode(writer: Writer) -> Value:
    """The mode of this thread, of 64 bits."""
    if _IS_ARM:
        writer.declarations.add("declare i64 @llvm.aarch64.get.fpcr()")
        return writer.effect("i64", "call i64 @llvm.aarch64.get.fpcr()")
    word = writer.allocate("i32")
    writer.run("@llvm.x86.sse.stmxcsr", word)
    return writer.load("i32", word).cast("zext", "i64")


def set_mode(writer: Writer, value: Value) -> None:
    """Change the mode of this thread."""
    if _IS_ARM:
        return writer.run("@llvm.aarch64.set.fpcr", value)
    word = writer.allocate("i32")
    writer.store(value.cast("trunc", "i32"), word)
    return writer.run("@llvm.x86.sse.ldmxcsr", word)


def flushes(writer: Writer) -> Value:
    """Whether this thread takes denormal numbers for 0."""
    return (mode(writer) & _FLUSHES).compare("ne", 0)


@contextmanager
def denormals_flushed(writer: Writer) -> Iterator[None]:
    """Code in which denormal numbers are 0; after it the mode is that of before."""
    before = mode(writer)
    set_mode(writer, before | _FLUSHES)
    yield
    set_mode(writer, before)


@contextmanager
def denormals_kept(writer: Writer) -> Iterator[None]:
    """Code in which denormal numbers are numbers; after it the mode is that of before."""
    before = mode(writer)
    set_mode(writer, before & ~_FLUSHES)
    yield
    set_mode(writer, before)


def flushing_call(function: str) -> Writer:
    """The body of a function of words: a call of another one, while denormal numbers are 0."""
    writer = Writer(block="start")
    with denormals_flushed(writer):
        writer.do(f"call void @{function}(ptr %words)")
    writer.do("ret void")
    return writer
