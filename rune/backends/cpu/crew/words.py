"""Reads and writes records in native code, and waits for other threads' writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rune.backends.cpu.routines import Code
from rune.backends.cpu.threads_code import poll
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Spin:
    """A waiting thread's pause instruction, and the number of its polls before it sleeps."""

    pause: str
    looks: int


def at(code: Code, record: Value, names: Mapping[str, int], name: str) -> Value:
    return code.item(record, "i64", names[name])


def get(code: Code, record: Value, names: Mapping[str, int], name: str, type: str = "i64") -> Value:
    return code.load(type, at(code, record, names, name))


def put(code: Code, record: Value, names: Mapping[str, int], name: str, value: Value) -> None:
    code.store(value, at(code, record, names, name))


def word(code: Code, record: Value, names: Mapping[str, int], name: str) -> Value:
    """The value of a word that other threads change."""
    return code.word("i64", at(code, record, names, name))


def entry(code: Code, row: Value, number: Value, type: str = "ptr") -> Value:
    return code.load(type, code.item(row, "i64", number))


def byte(code: Code, pointer: Value, bytes: Value | int) -> Value:
    """The address that lies so many bytes further on."""
    return code.item(pointer, "i8", bytes)


def lock(code: Code, owner: Value) -> None:
    """Take the mutex of a table or a thread, which is its first field."""
    code.tell("i32", "pthread_mutex_lock", owner)


def unlock(code: Code, owner: Value) -> None:
    code.tell("i32", "pthread_mutex_unlock", owner)


def broadcast(code: Code, wake: Value) -> None:
    code.tell("i32", "pthread_cond_broadcast", wake)


def wait(spin: Spin, code: Code, wake: Value, mutex: Value, is_over: Callable[[], Value]) -> None:
    """Poll until it is over; after `spin.looks` polls, sleep."""

    def sleep() -> None:
        lock(code, mutex)
        # What ends a wait changes under this mutex, so no wake-up is missed after the look.
        code.loop(lambda: (is_over().invert(),), lambda: code.tell("i32", "pthread_cond_wait", wake, mutex))
        unlock(code, mutex)

    code.either(poll(code, spin.pause, spin.looks, is_over).invert(), sleep)
