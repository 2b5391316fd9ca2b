"""The code of routine_calls.py."""

from __future__ import annotations

from rune.backends.cpu.array_checks_code import field
from rune.backends.cpu.host_abi import Abi
from rune.backends.cpu.routines import Code, define
from rune.backends.cpu.scratch import LINE
from rune.lowering.codegen.llvm.ir.text import Value


def text(abi: Abi) -> str:
    """The module."""

    def enter(code: Code, words: Value, argv: Value, count: Value) -> Value:
        table = field(code, "ptr", words, abi.data)
        arrays = [code.load("ptr", code.item(argv, "ptr", k)) for k in range(3)]
        source, target, memory = (field(code, "ptr", array, abi.data) for array in arrays)
        state = code.ask("ptr", code.at(abi.save_thread))
        code.tell("void", code.load("ptr", table), table, source, target, _aligned(code, memory))
        code.tell("void", code.at(abi.restore_thread), state)
        return code.ask("ptr", code.at(abi.from_long), count.like(0))

    return define(("ptr", "enter", "ptr self, ptr argv, i64 count"), enter, "")


def _aligned(code: Code, memory: Value) -> Value:
    """The next address that is a multiple of a line of the cache."""
    number = code.emit("i64", f"ptrtoint ptr {memory.text} to i64")
    return code.emit("ptr", f"inttoptr i64 {((number + (LINE - 1)) & -LINE).text} to ptr")
