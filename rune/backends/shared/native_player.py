"""Native code for cached calls of a device's plan, in place of `QueuedExecutable._call_again`.

    play = native_player(Repeat(calls, ...), ...)
    play(x, y)        the buffers of the results, or the answer of `otherwise(x, y)`

A call of a small plan takes memory for its results, writes its numbers into a list of the driver's
calls (call_list.py), plays the list, and records how to find out that it has ended. In Python that
was 45 to 70 lines, which cost more than the driver. Here it is data that one native function walks:

    unchanged   pairs of words that are equal as long as the list is valid, and words that are 0
    results     a stock of memory for each (stock.py), and the type and shape of its buffer
    places      where in the list the numbers of memory go
    ring        what only one call at a time may use (ring.py)
    functions   of Python, for what is rare, or belongs to one driver

Where the driver binds memory to objects, there is a list for each choice of memory (lists.py).

The function's code is in native_player_code.py.

Where the list is not valid (a forked process, a running callback, memory that went back to the
driver, a growing arena), native code does nothing but call `otherwise`, the player in Python. An
unknown interpreter has that player alone.

Invariant: no signal handler runs within native code, only in the functions that it calls.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, cast

from rune import locks
from rune.backends.cpu import host_abi
from rune.backends.shared import call_list, native_player_code
from rune.backends.shared.call_list import CallList
from rune.backends.shared.forks import forks
from rune.backends.shared.lists import Lists
from rune.backends.shared.native_player_code import HEAD
from rune.backends.shared.ring import Ring
from rune.backends.shared.stock import Stock
from rune.backends.shared.turns import Arena, DeviceBuffer, Turns
from rune.backends.shared.work import Work
from rune.core.types import ArrayType
from rune.records import dataclass

# Stock, type and shape of a result.
ResultMaker = tuple[Stock, ArrayType, tuple[int, ...]]
Play = Callable[..., tuple[DeviceBuffer, ...] | None]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The driver calls that each cached call makes, and how its end is recognised.

    calls:     the list, or those of each choice of memory
    places:    words of the list, each with the position of memory among the blocks of arguments,
               results and, at -1, the arena
    arena:     the device's
    nbytes:    what the plan needs there
    unchanged: pairs of addresses of words that are equal as long as the list is valid
    zeros:     addresses of words that are 0 as long as it is valid
    ring:      its next entry is used by the call, whose number is noted at all of its memory; None:
               calls have no numbers
    begin:     called before the list is played, under the lock; None: nothing to do
    finish:    called after all calls of the list: its answer is None, or `refuse` goes on; None:
               nothing to do
    answer:    the address of a word that tells of the end
    end:       from that word, and an `option` that is not None, to the end of the call, of which
               `has_ended` is asked; None: the word is the end
    refuse:    goes on after the driver refused a call, or raises: takes the number of calls that
               were made, then the buffers of arguments and results
    owner:     keeps what the list refers to alive
    """

    calls: CallList | Lists
    places: Sequence[tuple[int, int]]
    arena: Arena
    nbytes: int
    unchanged: Sequence[tuple[int, int]]
    zeros: Sequence[int]
    ring: Ring | None
    begin: Callable[[], object] | None
    finish: Callable[[], object] | None
    answer: int
    end: Callable[..., object] | None
    option: object
    has_ended: Callable[..., bool]
    refuse: Callable[..., object]
    owner: object


class Device(Protocol):
    """The part of a device that native calls use."""

    @property
    def turns(self) -> Turns:
        """The lock of its queue."""
        ...

    @property
    def work(self) -> Work:
        """The counts of its calls."""
        ...

    def marker(self) -> Callable[[], bool]:
        """The question whether all that was enqueued until now has ended."""
        ...


def native_player(
    otherwise: Play, repeat: Repeat, device: Device, arguments: int, makers: Sequence[ResultMaker]
) -> Play:
    """A builtin function that answers as `otherwise` does; `otherwise` itself on an unknown
    interpreter.
    """
    code = native_player_code.compiled()
    if code is None:
        return otherwise
    owners = _Owners([repeat, device])
    record = _record(owners, otherwise, repeat, device, arguments, makers)
    references = (record, owners.objects, code)
    function = host_abi.native_function("play", code.address("play"), record.buffer_info()[0], *references)
    return cast("Play", function.call)


class _Owners:
    """Objects whose ids are words, and so must live as long as these."""

    def __init__(self, objects: list[object]):
        self.objects = objects

    def hold(self, x: object) -> int:
        """The id of an object; 0 for None."""
        self.objects.append(x)
        return 0 if x is None else id(x)

    def word(self, number: int) -> int:
        """The address of a new word."""
        self.objects.append(word := array("q", [number]))
        return word.buffer_info()[0]


def _record(
    owners: _Owners, otherwise: Play, repeat: Repeat, device: Device, arguments: int, makers: Sequence[ResultMaker]
) -> array[int]:
    """The words that native code walks."""
    turns, work, calls, hold = device.turns, device.work, repeat.calls, owners.hold
    take, free = locks.ends(turns.lock)
    results = [hold(x) for s, type, shape in makers for x in (s, s.take, s.pool.again, type, shape)]
    # A forked child has another count of forks, and must not use the driver.
    pairs = [(forks.buffer_info()[0], owners.word(forks[0])), *repeat.unchanged]
    pairs += [(zero, owners.word(0)) for zero in repeat.zeros]
    places = [(position, calls.address(word)) for word, position in repeat.places if position >= 0]
    arena_word = next((calls.address(word) for word, position in repeat.places if position < 0), 0)
    tables: list[int] = []

    def at(words: Sequence[int]) -> int:
        tables.extend(words)
        return len(HEAD) + len(tables) - len(words)

    head = {
        "OTHERWISE": hold(otherwise),
        "ARGUMENTS": arguments,
        "RESULTS": len(makers),
        "RESULTS_AT": at(results),
        "PAIRS": len(pairs),
        "PAIRS_AT": at([word for pair in pairs for word in pair]),
        "TURNS": hold(turns),
        "TAKE": hold(take),
        "FREE": hold(free),
        "ARENA": hold(repeat.arena),
        "ARENA_BYTES": repeat.nbytes,
        "ARENA_WORD": arena_word,
        "POOL": hold(repeat.arena.pool),
        "RING": 0 if repeat.ring is None else repeat.ring.words.buffer_info()[0],
        "PLACES": len(places),
        "PLACES_AT": at([word for place in places for word in place]),
        "BEGIN": hold(repeat.begin),
        "RUN": call_list.helpers().run,
        **_list_words(calls),
        "FINISH": hold(repeat.finish),
        "REFUSE": hold(repeat.refuse),
        "ANSWER": repeat.answer,
        "END": hold(repeat.end),
        "OPTION": hold(repeat.option),
        "HAS_ENDED": hold(repeat.has_ended),
        "NOTED": work.noted.buffer_info()[0],
        "NOTE": hold(work.note),
        "FOLLOW": hold(work.follow),
        "FOLLOW_MARKER": hold(partial(_follow_marker, work, device.marker)),
    }
    return array("Q", [*(head[name] for name in HEAD), *tables])


def _list_words(calls: CallList | Lists) -> dict[str, int]:
    """Where the list is, or the table in which to look for it."""
    if isinstance(calls, Lists):
        return {"LISTS": calls.address(0), "STARTS": 0, "COUNT": 0}
    return {"LISTS": 0, "STARTS": calls.starts.buffer_info()[0], "COUNT": calls.count}


def _follow_marker(work: Work, marker: Callable[[], Callable[[], bool]]) -> None:
    work.follow(marker())
