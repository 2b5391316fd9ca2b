"""The code of routine_calls.py."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.array_checks_code import field
from rune.backends.cpu.host_abi import Abi
from rune.backends.cpu.routine_calls import HEAD, JOB
from rune.backends.cpu.routines import Code, define
from rune.backends.cpu.scratch import LINE
from rune.lowering.codegen.llvm.ir.text import Value

# Writes what the call does, with the words of a routine, and its operands.
_Run = Callable[[Code, Value, list[Value]], None]


def text(abi: Abi) -> str:
    """The module of calls by one core."""

    def alone(code: Code, words: Value, arrays: list[Value]) -> None:
        _call(code, words, arrays, code.constant("i64", 0), _word(code, words, 1))

    return _enter(abi, alone)


def shared_text(abi: Abi, parallel: int) -> str:
    """The module of calls whose units all cores share. parallel: the address of threads.py's
    function"""

    def shared(code: Code, words: Value, arrays: list[Value]) -> None:
        job = code.allocate(f"[{JOB} x ptr]")
        for k, value in enumerate((words, *arrays, code.constant("i64", 0))):
            code.store(value, code.item(job, "ptr", k))
        counts = (_word(code, words, k) for k in (1, 2))
        code.tell("void", code.at(parallel), code.symbol("share"), job, *counts)

    return "\n\n".join([share_text(), _enter(abi, shared)])


def share_text() -> str:
    """The module of a share."""
    return define(("void", "share", "ptr job, i64 first, i64 last"), _share, "")


def _share(code: Code, job: Value, first: Value, last: Value) -> None:
    """Some units, in work memory that no other share has."""
    words, source, target, memory = (code.load("ptr", code.item(job, "ptr", k)) for k in range(JOB - 1))
    before = code.load("i64", code.item(job, "i64", JOB - 1))
    number = first.binary("udiv", _word(code, words, 2))
    room = code.item(memory, "i8", number * _word(code, words, 3))
    _call(code, words, [source, target, room], first + before, last + before)


def _enter(abi: Abi, run: _Run) -> str:
    def enter(code: Code, words: Value, argv: Value, count: Value) -> Value:
        table = field(code, "ptr", words, abi.data)
        objects = [code.load("ptr", code.item(argv, "ptr", k)) for k in range(3)]
        source, target, memory = (field(code, "ptr", array, abi.data) for array in objects)
        state = code.ask("ptr", code.at(abi.save_thread))
        run(code, table, [source, target, _aligned(code, memory)])
        code.tell("void", code.at(abi.restore_thread), state)
        return code.ask("ptr", code.at(abi.from_long), count.like(0))

    return define(("ptr", "enter", "ptr self, ptr argv, i64 count"), enter, "")


def _call(code: Code, words: Value, arrays: list[Value], first: Value, last: Value) -> None:
    """A call of the routine."""
    code.tell("void", code.load("ptr", words), code.item(words, "i64", HEAD), *arrays, first, last)


def _word(code: Code, words: Value, number: int) -> Value:
    return code.load("i64", code.item(words, "i64", number))


def _aligned(code: Code, memory: Value) -> Value:
    """The next address that is a multiple of a line of the cache."""
    number = code.emit("i64", f"ptrtoint ptr {memory.text} to i64")
    return code.emit("ptr", f"inttoptr i64 {((number + (LINE - 1)) & -LINE).text} to ptr")
