"""Rings of entries, such as tables of arguments, each of which one call at a time may use.

    ring = Ring(calls, first, width, most, numbers)
    ring.add([table, commands])     a new entry: words of the list of calls
    ring.begin()                    the words of the next one go into the list
    if ring.is_free():              it is not in use
        calls.play()
        ring.end()                  the call with the last number uses it

Calls have numbers, and end in their order, so an entry is free as soon as the call that used it has
ended. Native code does the same (ring_code.py).

Invariant: one thread at a time uses a ring, under the lock of its device.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from rune.backends.shared.call_list import CallList
from rune.records import dataclass

HEAD = "POSITION COUNT WIDTH TARGET LAST ENDED ASK ASKED".split()
_POSITION, _COUNT = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The numbers of a queue's calls.

    last:  words with the number of the last call, and of the next one
    ended: the address of the number of calls known to have ended
    ask:   finds it out anew; it may read the words of the next entry
    """

    last: array[int]
    ended: int
    ask: CallList

    @property
    def next(self) -> int:
        """The address of the next number."""
        first, _ = self.last.buffer_info()
        return first + self.last.itemsize


class Ring:
    """Entries of `width` words each, at most `most`, for words of a list from `first` on.

    In memory: words by HEAD, then for each entry the number of the last call that used it, and its
    words. The list has them in the same order, so `first` is the word of that number.
    """

    __slots__ = ("_calls", "_first", "_most", "_numbers", "_width", "words")

    def __init__(self, calls: CallList, first: int, width: int, most: int, numbers: Numbers):
        self._calls, self._first, self._most, self._width = calls, first, most, 1 + width
        self._numbers = numbers
        last, _ = numbers.last.buffer_info()
        asking = numbers.ask.starts.buffer_info()[0], numbers.ask.count
        head = [0, 0, width, calls.address(first), last, numbers.ended, *asking]
        self.words = array("Q", [*head, *[0] * (most * self._width)])

    def __len__(self) -> int:
        return self.words[_COUNT]

    @property
    def is_full(self) -> bool:
        """Whether no entry can be added."""
        return len(self) == self._most

    @property
    def next_use(self) -> int:
        """The number of the last call that used the next entry; 0: none has."""
        return self.words[self._at]

    def add(self, words: Sequence[int]) -> None:
        """Make a new entry, which is the next one. The ring must not be full."""
        count, end = len(self), len(HEAD) + len(self) * self._width
        self.words[self._at : end + self._width] = array("Q", [0, *words]) + self.words[self._at : end]
        self.words[_COUNT] = count + 1

    def begin(self) -> None:
        """Write the words of the next entry into the list."""
        first = self._first
        self._calls.words[first : first + self._width] = self.words[self._at : self._at + self._width]

    def end(self) -> None:
        """The last call uses the next entry; the one after it is next."""
        self.words[self._at] = self._numbers.last[0]
        self.words[_POSITION] = (self.words[_POSITION] + 1) % len(self)

    @property
    def _at(self) -> int:
        return len(HEAD) + self.words[_POSITION] * self._width
