"""The machine code of guards (wgpu/guard.py): builtin functions, which take some C calls
instead of 40 lines of Python.

    @enter    replaces the handlers of signals, and puts a slot for errors on wgpu-py's stack
    @leave    takes the slot back, and restores the handlers: None, or True if there is an error
    @put_off  one signal                @restore   one signal's handler, despite handlers that raise

Each of the first two returns null if Python has set an error.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from rune.backends.cpu import compiler, conventions, host_abi
from rune.backends.cpu.calls import describe
from rune.backends.cpu.calls.process import Process, item
from rune.backends.cpu.routines import Code, definitions, is_null, null, true
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value

HEAD = "MAIN SIGNALS GET SET NOTE STACKS SLOT MESSAGE APPEND POP CAME TELL STACK".split()
_TRIES = 100  # to restore a handler: each fails only if a handler of another signal has raised


def compiled() -> compiler.Code | None:
    """The code; None if this interpreter is not a known one. Errors: CompileError."""
    return None if describe.host() is None else _code()


@compiler.lasting
def _code() -> compiler.Code:
    host = describe.host()
    assert host is not None
    words = {f"W_{name}": number for number, name in enumerate(HEAD)}
    objects = {"NONE": pointer_to(id(None)), "TRUE": pointer_to(id(True))}
    process = Process({**host.pointers, **objects}, {**host.numbers, **words})
    functions = [
        (("ptr", "enter", "ptr self, ptr argv, i64 count"), _enter),
        (("ptr", "leave", "ptr self, ptr argv, i64 count"), _leave),
        (("i1", "put_off", "ptr words, i64 signal"), _put_off),
        (("void", "restore", "ptr words, i64 signal, ptr errors"), _restore),
        (("void", "keep", "ptr errors"), _keep),
    ]
    text = definitions(functions, process, exported=("enter", "leave"))
    return compiler.compile_module("guard", text, conventions.LITTLE)


def functions(
    code: compiler.Code, words: array[int], owners: object
) -> tuple[Callable[[], object], Callable[[], object]]:
    """`@enter` and `@leave` as functions of Python, for a guard of these words."""

    def function(name: str) -> Callable[[], object]:
        start, _ = words.buffer_info()
        return host_abi.native_function(name, code.address(name), start, words, owners, code).call

    return function("enter"), function("leave")


def _call(process: Process, code: Code, function: Value, *args: Value) -> Value:
    return process.ask(code, "ptr", "VECTORCALL", function, *_row(code, *args), null(code))


def _method(process: Process, code: Code, name: Value, *args: Value) -> Value:
    return process.ask(code, "ptr", "CALL_METHOD", name, *_row(code, *args), null(code))


def _row(code: Code, *args: Value) -> tuple[Value, Value]:
    """The arguments in memory, and their number."""
    row = code.allocate("ptr", max(1, len(args)))
    for k, x in enumerate(args):
        code.store(x, code.item(row, "ptr", k))
    return row, code.constant("i64", len(args))


def _object(process: Process, code: Code, words: Value, word: str) -> Value:
    return process.word(code, words, f"W_{word}", "ptr")


def _number(code: Code, words: Value, signal: Value) -> Value:
    """A signal's number, an object."""
    return item(code, words, signal + len(HEAD), "ptr")


def _handler_at(process: Process, code: Code, words: Value, signal: Value) -> Value:
    """Where a signal's handler is, as long as it is replaced."""
    return code.item(words, "ptr", process.word(code, words, "W_SIGNALS") + signal + len(HEAD))


def _new(process: Process, code: Code, word: str) -> Value:
    """A new reference to an object."""
    process.count_reference(code, process.object(code, word))
    return process.object(code, word)


# --- in ---------------------------------------------------------------------------------------


def _enter(process: Process, code: Code, instance: Value, argv: Value, total: Value) -> Value:
    words = process.ask(code, "i64", "INT_BITS", instance).cast("inttoptr", "ptr")
    count = process.word(code, words, "W_SIGNALS")
    # Handlers run in the main thread alone.
    is_main = process.ask(code, "i64", "THREAD").equals(process.word(code, words, "W_MAIN"))

    def are_put_off() -> Value:
        return code.leading(count, lambda k: code.ask("i1", "put_off", words, k)).equals(count)

    def has_slot() -> Value:
        stack = _call(process, code, _object(process, code, words, "STACKS"))
        code.store(stack, code.item(words, "ptr", process.numbers["W_STACK"]))
        return code.where(is_null(stack).invert(), lambda: code.where(is_clean(), lambda: is_pushed(stack)))

    def is_clean() -> Value:
        # There may be a message if a handler has raised when the guard was left last.
        slot, name = (_object(process, code, words, word) for word in ("SLOT", "MESSAGE"))
        status = process.ask(code, "i32", "SET_ATTRIBUTE", slot, name, process.object(code, "NONE"))
        return status.equals(0)

    def is_pushed(stack: Value) -> Value:
        name, slot = (_object(process, code, words, word) for word in ("APPEND", "SLOT"))
        answer = _method(process, code, name, stack, slot)
        process.drop_reference(code, answer)
        return is_null(answer).invert()

    def back() -> Value:
        errors = _no_errors(code)
        code.tell("void", "keep", errors)
        _restore_all(process, code, words, errors)
        return _end(process, code, errors, lambda: null(code))

    is_deferred = code.choose(is_main, are_put_off, lambda: true(code))
    return code.choose(code.where(is_deferred, has_slot), lambda: _new(process, code, "NONE"), back)


def _put_off(process: Process, code: Code, words: Value, signal: Value) -> Value:
    """Replace the handler of a signal, unless it is not a function of Python's."""
    number = _number(code, words, signal)
    handler = _call(process, code, _object(process, code, words, "GET"), number)
    at = _handler_at(process, code, words, signal)

    def is_replaced() -> Value:
        is_function = process.ask(code, "i32", "IS_CALLABLE", handler).compare("ne", 0)
        return code.choose(is_function, replace, ignore)

    def replace() -> Value:
        before = _call(
            process, code, _object(process, code, words, "SET"), number, _object(process, code, words, "NOTE")
        )
        code.either(is_null(before), lambda: process.drop_reference(code, handler), lambda: code.store(handler, at))
        process.drop_reference(code, before)
        return is_null(before).invert()

    def ignore() -> Value:
        process.drop_reference(code, handler)
        return true(code)

    return code.where(is_null(handler).invert(), is_replaced)


# --- out --------------------------------------------------------------------------------------


def _leave(process: Process, code: Code, instance: Value, argv: Value, total: Value) -> Value:
    words = process.ask(code, "i64", "INT_BITS", instance).cast("inttoptr", "ptr")
    errors, stack_at = _no_errors(code), code.item(words, "ptr", process.numbers["W_STACK"])
    stack = code.load("ptr", stack_at)
    slot = _method(process, code, _object(process, code, words, "POP"), stack)
    code.either(is_null(slot), lambda: code.tell("void", "keep", errors))
    for reference in (slot, stack):
        process.drop_reference(code, reference)
    code.store(null(code), stack_at)
    _restore_all(process, code, words, errors)

    def tell() -> None:
        answer = _call(process, code, _object(process, code, words, "TELL"))
        code.either(is_null(answer), lambda: code.tell("void", "keep", errors))
        process.drop_reference(code, answer)

    came = process.field(code, _object(process, code, words, "CAME"), "SIZE", "i64")
    code.either(came.compare("ne", 0), tell)
    return _end(process, code, errors, partial(_report, process, code, words))


def _report(process: Process, code: Code, words: Value) -> Value:
    """None, or True if the slot has a message."""
    slot, name = (_object(process, code, words, word) for word in ("SLOT", "MESSAGE"))
    message = process.ask(code, "ptr", "ATTRIBUTE", slot, name)
    process.drop_reference(code, message)  # the slot has it still
    is_none = message.equals(process.object(code, "NONE"))

    def answer() -> Value:
        return code.choose(is_none, lambda: _new(process, code, "NONE"), lambda: _new(process, code, "TRUE"))

    return code.choose(is_null(message), lambda: null(code), answer)


def _restore_all(process: Process, code: Code, words: Value, errors: Value) -> None:
    count = process.word(code, words, "W_SIGNALS")
    code.count_up(code.constant("i64", 0), count, 1, lambda k: code.tell("void", "restore", words, k, errors))


def _restore(process: Process, code: Code, words: Value, signal: Value, errors: Value) -> None:
    """Restore a handler that was replaced. One that is restored already may raise meanwhile."""
    at = _handler_at(process, code, words, signal)
    handler, function = code.load("ptr", at), _object(process, code, words, "SET")

    def is_raised(_: Value) -> Value:
        before = _call(process, code, function, _number(code, words, signal), handler)
        process.drop_reference(code, before)
        code.either(is_null(before), lambda: code.tell("void", "keep", errors))
        return is_null(before)

    def restore() -> None:
        code.leading(code.constant("i64", _TRIES), is_raised)
        code.store(null(code), at)
        process.drop_reference(code, handler)

    code.either(is_null(handler).invert(), restore)


# --- errors -----------------------------------------------------------------------------------


def _no_errors(code: Code) -> Value:
    """Room for Python's error, which is set again at the end."""
    errors = code.allocate("ptr", 3)
    for k in range(3):
        code.store(null(code), code.item(errors, "ptr", k))
    return errors


def _keep(process: Process, code: Code, errors: Value) -> None:
    """Take Python's error away; only the first one stays in the list."""
    slots = [code.item(errors, "ptr", k) for k in range(3)]
    is_first = is_null(code.load("ptr", slots[0]))
    code.either(
        is_first,
        lambda: code.tell("void", process.object(code, "FETCH_ERROR"), *slots),
        lambda: process.clear_error(code),
    )


def _end(process: Process, code: Code, errors: Value, answer: Callable[[], Value]) -> Value:
    """The answer; null with the first error set, if there is one."""
    words = [code.load("ptr", code.item(errors, "ptr", k)) for k in range(3)]

    def raised() -> Value:
        code.tell("void", process.object(code, "RESTORE_ERROR"), *words)
        return null(code)

    return code.choose(is_null(words[0]), answer, raised)
