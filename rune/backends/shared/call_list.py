"""Calls of C functions in a row, noted once and made by machine code as often as one likes.

    notes = Notes()
    queue, size = notes.word(address), notes.word(0)           what functions take
    status = notes.call(enqueue, queue, size, checked=True)    what one gives, for those behind it
    calls = notes.list()
    calls.words[size] = 64
    calls.play() == calls.count                                all were made

A driver's function costs a microsecond where Python calls it through a binding; here it costs what
it costs. Arguments are words of 64 bits, of which a function reads as many bits as it takes. A
checked function gives 0 or refuses: then `play` stops, and says before which call it did.

    @play    the calls, without the interpreter's lock; from the one in the word `from_` on
    @renew   kernel, position, value, known: set an argument unless it is what it was before
    @fill    a table of words: bases[which[k]] + offsets[k]

Invariant: a list is played by one thread at a time, under the lock of what its functions work on.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from dataclasses import field

from rune.backends.cpu import compiler, conventions, host_abi
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

_MOST_ARGUMENTS = 9
_HEAD = 2  # words: the first call to make, how many calls there are
_CALL = 3 + _MOST_ARGUMENTS  # words: function, whether it is checked, its answer, addresses of arguments
FROM = 0  # the word that says with which call to begin; 0 again after each time
_WORD_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class CallList:
    """Calls to be made in a row.

    words:   what functions take, by the numbers that `Notes` has given
    play:    makes the calls; how many of them are made in all. It keeps alive what it needs
    answers: where each call's answer stands
    """

    words: array[int]
    count: int
    answers: tuple[int, ...]
    play: Callable[[], int]

    def address(self, word: int) -> int:
        """Where a word stands."""
        return self.words.buffer_info()[0] + _WORD_BYTES * word

    def status(self, call: int) -> int:
        """What a call has given, an i32."""
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
    """Calls in the making. Words are numbered as they will be once the calls stand before them."""

    values: list[int] = field(default_factory=list)
    calls: list[_Noted] = field(default_factory=list)
    held: list[object] = field(default_factory=list)
    pointed: dict[int, int] = field(default_factory=dict)  # words that hold the address of a word
    known: dict[int, int] = field(default_factory=dict)

    def word(self, value: int = 0) -> int:
        """A word of its own, which may be written before each time."""
        self.values.append(value)
        return _HEAD + len(self.values) - 1

    def constant(self, value: int) -> int:
        """A word that holds this value and is never written."""
        if value not in self.known:
            self.known[value] = self.word(value)
        return self.known[value]

    def address_of(self, word: int) -> int:
        """A word that holds the address of another."""
        pointer = self.word()
        self.pointed[pointer] = word
        return pointer

    def row(self, values: list[int]) -> int:
        """Consecutive words; the first of them."""
        self.values += values
        return _HEAD + len(self.values) - len(values)

    def call(self, function: int, *arguments: int, checked: bool = False) -> int:
        """Call the function at this address with these words; the word of its answer."""
        assert len(arguments) <= _MOST_ARGUMENTS
        answer = self.word()
        self.calls.append(_Noted(function, checked, answer, arguments))
        return answer

    def hold(self, *objects: object) -> None:
        """Keep what addresses belong to as long as the list."""
        self.held += objects

    def list(self) -> CallList:
        """The calls noted so far."""
        after = _HEAD + len(self.values)
        words = array("Q", [0] * (after + _CALL * len(self.calls)))
        base = words.buffer_info()[0]
        words[:after] = array("Q", [0, len(self.calls), *(v % (1 << 64) for v in self.values)])
        for pointer, word in self.pointed.items():
            words[pointer] = base + _WORD_BYTES * word
        nothing = base  # an address for arguments that a function does not take
        for number, noted in enumerate(self.calls):
            places = [base + _WORD_BYTES * w for w in (noted.answer, *noted.arguments)]
            places += [nothing] * (_CALL - 2 - len(places))
            start = after + _CALL * number
            words[start : start + _CALL] = array("Q", [noted.function, noted.checked, *places])
        starts = array("Q", [base, base + _WORD_BYTES * after])
        held = words, starts, helpers(), *self.held
        function = host_abi.native_function("play", helpers().play, starts.buffer_info()[0], *held)
        answers = tuple(noted.answer for noted in self.calls)
        return CallList(words, len(self.calls), answers, function.call)


@dataclass(frozen=True, slots=True)
class Helpers:
    """Addresses of functions that lists may call like those of a driver."""

    renew: int
    fill: int
    play: int
    code: compiler.Code


@functools.cache
def helpers() -> Helpers:
    """The machine code, compiled once in a process. Errors: CompileError."""
    code = _code()
    return Helpers(code.address("renew"), code.address("fill"), code.address("play"), code)


@compiler.lasting
def _code() -> compiler.Code:
    return compiler.compile_module("call list", _text(), conventions.LITTLE)


# --- the machine code ---------------------------------------------------------------------------


def _text() -> str:
    abi = host_abi.abi()
    assert abi is not None  # else the CPU executor could not be opened either
    functions = [
        (("i64", "make", "ptr words, ptr calls"), _make, "internal "),
        (("ptr", "play", "ptr self, ptr argv, i64 count"), functools.partial(_play, abi), ""),
        (("i64", "renew", "ptr set, i64 kernel, i64 position, i64 bytes, ptr value, ptr known"), _renew, ""),
        (("void", "fill", "ptr table, i64 count, ptr which, ptr offsets, ptr bases"), _fill, ""),
    ]
    return "\n\n".join(define(signature, write, linkage) for signature, write, linkage in functions)


def _item(code: Code, row: Value, number: Value | int, type: str = "i64") -> Value:
    index = number if isinstance(number, Value) else code.constant("i64", number)
    return code.load(type, code.item(row, type, index))


def _make(code: Code, words: Value, calls: Value) -> Value:
    """Make the calls from the first on that is to be made; how many of all are then made."""
    first, count = code.load("i64", words), _item(code, words, 1)

    def is_made(k: Value) -> Value:
        call = code.item(calls, "i64", (first + k) * _CALL)
        arguments = [code.load("i64", _item(code, call, 3 + n, "ptr")) for n in range(_MOST_ARGUMENTS)]
        answer = code.ask("i64", _item(code, call, 0, "ptr"), *arguments)
        code.store(answer, _item(code, call, 2, "ptr"))
        is_unchecked = _item(code, call, 1).equals(0)
        return is_unchecked | answer.cast("trunc", "i32").equals(0)

    end = first + code.leading(count - first, is_made)
    code.store(code.constant("i64", 0), words)
    return end


def _play(abi: host_abi.Abi, code: Code, instance: Value, argv: Value, count: Value) -> Value:
    """The Python function: its `self` is an integer, where the words and the calls begin."""
    starts = code.ask("ptr", code.at(abi.long_value), instance)
    words, calls = _item(code, starts, 0, "ptr"), _item(code, starts, 1, "ptr")
    state = code.ask("ptr", code.at(abi.save_thread))
    end = code.ask("i64", "make", words, calls)
    code.tell("void", code.at(abi.restore_thread), state)
    return code.ask("ptr", code.at(abi.from_long), end)


def _renew(code: Code, set: Value, kernel: Value, position: Value, nbytes: Value, value: Value, known: Value) -> Value:
    """Set an argument of a kernel by the driver's function `set`, unless it is known to be set."""
    now = code.load("i64", value)

    def renew() -> Value:
        status = code.ask("i64", set, kernel, position, nbytes, value)
        is_set = status.cast("trunc", "i32").equals(0)
        code.either(is_set, lambda: code.store(now, known))
        return status

    return code.choose(now.equals(code.load("i64", known)), lambda: code.constant("i64", 0), renew)


def _fill(code: Code, table: Value, count: Value, which: Value, offsets: Value, bases: Value) -> None:
    """Write a table."""

    def write(k: Value) -> None:
        base = _item(code, bases, _item(code, which, k))
        code.store(base + _item(code, offsets, k), code.item(table, "i64", k))

    code.count_up(code.constant("i64", 0), count, 1, write)
