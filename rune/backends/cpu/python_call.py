"""Calls of Python functions from native code through CPython's API, which loses no error.

    call(ptr function, ptr words)    calls a Python object with the address of words; true if it
                                     returned another number than 0, or raised an error, which stays
                                     set in the interpreter as those of signals do (pulse.py)

ctypes's callbacks are not used: they print errors and drop them, and a signal handler may raise in
one before the first line of the function has run.
"""

from __future__ import annotations

import ctypes

from rune.backends.cpu import compiler
from rune.backends.cpu.host_abi import address_of
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value


@compiler.lasting
def _code() -> compiler.Code:
    return compiler.compile_module("python_call", define(("i1", "call", "ptr function, ptr words"), _call, ""))


def _call(code: Code, function: Value, words: Value) -> Value:
    """Take the interpreter's lock, call, and release the lock."""
    api = ctypes.pythonapi
    take, give, number, call, value, drop = (
        code.at(address_of(f))
        for f in (
            api.PyGILState_Ensure,
            api.PyGILState_Release,
            api.PyLong_FromVoidPtr,
            api.PyObject_CallOneArg,
            api.PyLong_AsVoidPtr,
            api.Py_DecRef,
        )
    )
    # True at first: it stays so if a function returns null, with its error set.
    null, has_failed = Value(code, "ptr", "null"), code.variable("i1", 1)
    state = code.ask("i32", take)
    argument = code.ask("ptr", number, words)

    def ask() -> None:
        result = code.ask("ptr", call, function, argument)
        code.tell("void", drop, argument)
        code.either(result.compare("ne", null), lambda: read(result))

    def read(result: Value) -> None:
        code.store(code.ask("ptr", value, result).compare("ne", null), has_failed)
        code.tell("void", drop, result)

    # Null where memory is short: called with it, a Python function ends the process.
    code.either(argument.compare("ne", null), ask)
    code.tell("void", give, state)
    return code.load("i1", has_failed)


def address() -> int:
    """The address of `call`."""
    return _code().address("call")
