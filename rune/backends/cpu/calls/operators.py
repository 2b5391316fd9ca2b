"""Operators of arrays as native functions, which make cached calls (call.py).

An operator has one table of cached calls for all arrays. The address of the left operand's type,
which is a unique object, says which entry of the table holds the calls to try. If none of them
fits, a Python function is called, which makes every call.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.calls.describe import CallCode, CallRecord, new_method
from rune.backends.cpu.calls.process import Process, item
from rune.backends.cpu.routines import Code, define, null
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value

_ENTRIES = 64  # of a table
_ALIGNMENT = 16  # of Python's objects
_MOST_CALLS = 4  # in an entry: each takes some 20 ns to try
_METH_NOARGS, _METH_O = 0x0004, 0x0008


class Table:
    """The cached calls of an operator, by the type of its left operand.

    Native code reads the addresses of the tuples in `words`; 0 stands for none.
    """

    def __init__(self) -> None:
        self.words = array("Q", [0] * _ENTRIES)
        self._tuples: list[tuple[CallRecord, ...]] = [()] * _ENTRIES

    def add(self, type: object, records: Sequence[CallRecord]) -> bool:
        """Add calls whose left operand has this type; false if their entry is full."""
        entry = id(type) // _ALIGNMENT % _ENTRIES
        calls = (*self._tuples[entry], *records)
        if len(calls) > _MOST_CALLS:
            return False
        before, self._tuples[entry] = self._tuples[entry], calls
        # Native code counts a reference to the tuple that it reads, and holds the lock until then.
        self.words[entry] = id(calls)
        del before
        return True


def native_operator(
    known: CallCode, cls: type, name: str, general: Callable[..., object], operands: int, table: Table
) -> Callable[..., object]:
    """A function of `operands` arrays of this class or other values; `general` and the table must
    outlive it.
    """
    parameters = "ptr self, ptr other"
    write = partial(_operator, known, general, table, operands)
    # The name keeps its text apart from that of other operators in a profile.
    code = compiler.compile_module(name, define(("ptr", "operator", parameters), write, ""), conventions.LITTLE)
    compiler.LASTING.append(code)
    flags = _METH_O if operands == 2 else _METH_NOARGS
    return new_method(cls, name, code.address("operator"), flags, f"The native {name}.")


def _operator(
    known: CallCode, general: Callable[..., object], table: Table, operands: int, code: Code, self: Value, other: Value
) -> Value:
    process = known.process
    argv = code.row("ptr", code.constant("i64", operands))
    for number, operand in enumerate((self, other)[:operands]):
        code.store(operand, code.item(argv, "ptr", number))
    calls = _calls_for(process, code, table, self)
    function = Value(code, "ptr", pointer_to(id(general)))
    call_by = code.at(known.code.address("call_by"))
    return code.ask("ptr", call_by, calls, function, argv, code.constant("i64", operands), null(code))


def _calls_for(process: Process, code: Code, table: Table, array: Value) -> Value:
    """The calls to try, borrowed, or null."""
    type = process.field(code, array, "SLOT_TYPE", "i64")
    entry = (type.binary("udiv", _ALIGNMENT)).binary("urem", _ENTRIES)
    words = code.at(table.words.buffer_info()[0])
    return item(code, words, entry, "ptr")
