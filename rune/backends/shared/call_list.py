"""Sequences of calls of C functions, recorded once and replayed by machine code.

    notes = Notes()
    queue, size = notes.word(address), notes.word(0)           arguments
    status = notes.call(enqueue, queue, size, checked=True)    an answer, an argument of later calls
    calls = notes.list()
    calls.words[size] = 64
    calls.play() == calls.count                                all calls were made

Calling a driver's function from Python through a binding costs about a microsecond more than the
function itself; replaying it costs nothing more. Arguments are words of 64 bits, of which a
function reads as many as its parameter has. A checked function returns 0 or an error code: on an
error `play` stops, and returns the number of the call that failed.

    @run     make the calls, without the interpreter's lock, from the one in the word FROM on
    @play    the same as a function of Python
    @renew   kernel, position, value, known: set an argument, unless it still has that value
    @fill    fill a table of words: bases[which[k]] + offsets[k]
    @number  count a submission: numbers of the last and of the next one
    @settle  note that a submission has ended, and all before it, if a status is 0

Invariant: one thread at a time plays a list, under the lock of the object its functions work on.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from dataclasses import field

from rune.backends.cpu import compiler, conventions, host_abi
from rune.backends.cpu.calls.describe import length_at as length_at
from rune.backends.cpu.routines import Code, definitions
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

# clEnqueueNDRangeKernel has most of them.
_MOST_ARGUMENTS = 9
_HEAD = 2  # words: the first call to make, how many calls there are
_CALL = 3 + _MOST_ARGUMENTS  # words: function, whether it is checked, its answer, addresses of arguments
FROM = 0  # the word with the number of the first call to make; `play` resets it to 0
_WORD_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class CallList:
    """A sequence of calls.

    words:   arguments and answers, at the numbers that `Notes` returned
    play:    makes the calls and returns how many have been made; keeps their memory alive
    answers: the word of each call's answer
    starts:  the addresses of the words and of the calls, which `@run` takes
    """

    words: array[int]
    count: int
    answers: tuple[int, ...]
    play: Callable[[], int]
    starts: array[int]

    def address(self, word: int) -> int:
        """The address of a word."""
        return self.words.buffer_info()[0] + _WORD_BYTES * word

    def status(self, call: int) -> int:
        """The i32 that a call returned."""
        low = self.words[self.answers[call]] & 0xFFFF_FFFF
        return low - (1 << 32) if low >> 31 else low


@dataclass(frozen=True, slots=True)
class _Noted:
    function: int
    checked: bool
    answer: int
    arguments: tuple[int, ...]


@dataclass(slots=True)
class Notes:
    """Calls being recorded. The numbers of words count the head, which `list` writes before
    them."""

    values: list[int] = field(default_factory=list)
    calls: list[_Noted] = field(default_factory=list)
    owners: list[object] = field(default_factory=list)
    pointers: dict[int, int] = field(default_factory=dict)  # words that hold the address of a word
    elsewhere: list[int] = field(default_factory=list)  # addresses of words of other lists
    known: dict[int, int] = field(default_factory=dict)

    def word(self, value: int = 0) -> int:
        """A new word, which may be written before each replay."""
        self.values.append(value)
        return _HEAD + len(self.values) - 1

    def constant(self, value: int) -> int:
        """A word with this value, shared by all who ask for it: it must never be written."""
        if value not in self.known:
            self.known[value] = self.word(value)
        return self.known[value]

    def address_of(self, word: int) -> int:
        """A word with the address of another word; the address is known only to `list`."""
        pointer = self.word()
        self.pointers[pointer] = word
        return pointer

    def at(self, address: int) -> int:
        """A word of another list, which `hold` must keep alive; its number is negative."""
        self.elsewhere.append(address)
        return -len(self.elsewhere)

    def row(self, values: list[int]) -> int:
        """Consecutive words; the first of them."""
        self.values += values
        return _HEAD + len(self.values) - len(values)

    def call(self, function: int, *arguments: int, checked: bool = False) -> int:
        """Record a call of the function at this address with these words; return its answer's
        word."""
        assert len(arguments) <= _MOST_ARGUMENTS
        answer = self.word()
        self.calls.append(_Noted(function, checked, answer, arguments))
        return answer

    def hold(self, *objects: object) -> None:
        """Keep the objects to which addresses belong alive as long as the list."""
        self.owners += objects

    def list(self) -> CallList:
        """The calls recorded so far."""
        after = _HEAD + len(self.values)
        words = array("Q", [0] * (after + _CALL * len(self.calls)))
        base = words.buffer_info()[0]
        words[:after] = array("Q", [0, len(self.calls), *(v % (1 << 64) for v in self.values)])
        for pointer, word in self.pointers.items():
            words[pointer] = base + _WORD_BYTES * word
        # Every function gets _MOST_ARGUMENTS words, in registers or on the stack: calling
        # conventions let the caller pass more than the function reads. Any address that can be read
        # will do.
        nothing = base
        for number, record in enumerate(self.calls):
            places = [
                base + _WORD_BYTES * w if w >= 0 else self.elsewhere[-1 - w] for w in (record.answer, *record.arguments)
            ]
            places += [nothing] * (_CALL - 2 - len(places))
            start = after + _CALL * number
            words[start : start + _CALL] = array("Q", [record.function, record.checked, *places])
        starts = array("Q", [base, base + _WORD_BYTES * after])
        owners = words, starts, helpers(), *self.owners
        function = host_abi.native_function("play", helpers().play, starts.buffer_info()[0], *owners)
        answers = tuple(record.answer for record in self.calls)
        return CallList(words, len(self.calls), answers, function.call, starts)


@dataclass(frozen=True, slots=True)
class Helpers:
    """Addresses of our own functions, which lists call like a driver's functions."""

    renew: int
    fill: int
    number: int
    settle: int
    play: int
    run: int
    code: compiler.Code


_EXPORTED = ("renew", "fill", "number", "settle", "play", "run")


@functools.cache
def helpers() -> Helpers:
    """The machine code, compiled once in a process. Errors: CompileError."""
    code = _code()
    renew, fill, number, settle, play, run = map(code.address, _EXPORTED)
    return Helpers(renew, fill, number, settle, play, run, code)


@compiler.lasting
def _code() -> compiler.Code:
    return compiler.compile_module("call list", _text(), conventions.LITTLE)


# --- the machine code ---------------------------------------------------------------------------


def _text() -> str:
    abi = host_abi.abi()
    assert abi is not None  # else the CPU executor could not be opened either
    functions = [
        (("i64", "make", "ptr words, ptr calls"), _make),
        (("i64", "run", "ptr starts"), functools.partial(_run, abi)),
        (("ptr", "play", "ptr self, ptr argv, i64 count"), functools.partial(_play, abi)),
        (("i64", "renew", "ptr set, i64 kernel, i64 position, i64 bytes, ptr value, ptr known"), _renew),
        (("void", "fill", "ptr table, i64 count, ptr which, ptr offsets, ptr bases"), _fill),
        (("void", "number", "ptr numbers"), _number),
        (("void", "settle", "i64 status, i64 number, ptr ended"), _settle),
    ]
    return definitions(functions, exported=_EXPORTED)


def _item(code: Code, row: Value, number: Value | int, type: str = "i64") -> Value:
    index = number if isinstance(number, Value) else code.constant("i64", number)
    return code.load(type, code.item(row, type, index))


def _make(code: Code, words: Value, calls: Value) -> Value:
    """Make the calls from number `first` on; return the number of the first that was not made."""
    first, count = code.load("i64", words), _item(code, words, 1)

    def is_made(k: Value) -> Value:
        call = code.item(calls, "i64", (first + k) * _CALL)
        arguments = [code.load("i64", _item(code, call, 3 + n, "ptr")) for n in range(_MOST_ARGUMENTS)]
        answer = code.ask("i64", _item(code, call, 0, "ptr"), *arguments)
        code.store(answer, _item(code, call, 2, "ptr"))
        is_unchecked = _item(code, call, 1).equals(0)
        # Status codes are C ints: the upper half of the register holds whatever was there before.
        return is_unchecked | answer.cast("trunc", "i32").equals(0)

    end = first + code.leading(count - first, is_made)
    code.store(code.constant("i64", 0), words)
    return end


def _play(abi: host_abi.Abi, code: Code, instance: Value, argv: Value, count: Value) -> Value:
    """The Python function: its `self` is an integer, the address of two: of the words, of the
    calls."""
    starts = code.ask("ptr", code.at(abi.long_value), instance)
    return code.ask("ptr", code.at(abi.from_long), code.ask("i64", "run", starts))


def _run(abi: host_abi.Abi, code: Code, starts: Value) -> Value:
    """Make the calls without the interpreter's lock; return the number of the first that was not
    made."""
    words, calls = _item(code, starts, 0, "ptr"), _item(code, starts, 1, "ptr")
    state = code.ask("ptr", code.at(abi.save_thread))
    end = code.ask("i64", "make", words, calls)
    code.tell("void", code.at(abi.restore_thread), state)
    return end


def _renew(code: Code, set: Value, kernel: Value, position: Value, nbytes: Value, value: Value, known: Value) -> Value:
    """Set a kernel's argument by the driver's function `set`, unless `known` has its value
    already."""
    word = code.load("i64", value)

    def renew() -> Value:
        status = code.ask("i64", set, kernel, position, nbytes, value)
        is_set = status.cast("trunc", "i32").equals(0)
        # A refused argument is not known to be set, so that the next replay sets it again.
        code.either(is_set, lambda: code.store(word, known))
        return status

    return code.choose(word.equals(code.load("i64", known)), lambda: code.constant("i64", 0), renew)


def _fill(code: Code, table: Value, count: Value, which: Value, offsets: Value, bases: Value) -> None:
    """Write table[k] = bases[which[k]] + offsets[k]."""

    def write(k: Value) -> None:
        base = _item(code, bases, _item(code, which, k))
        code.store(base + _item(code, offsets, k), code.item(table, "i64", k))

    code.count_up(code.constant("i64", 0), count, 1, write)


def _number(code: Code, numbers: Value) -> None:
    """Count: the next number becomes the last one."""
    following = _item(code, numbers, 1)
    code.store(following, numbers)
    code.store(following + 1, code.item(numbers, "i64", 1))


def _settle(code: Code, status: Value, number: Value, ended: Value) -> None:
    """Note that the submissions up to a number have ended, unless the driver says otherwise."""
    code.either(status.cast("trunc", "i32").equals(0), lambda: code.store(number, ended), lambda: None)
