"""Lists of calls, one for each choice of memory: a call plays the list of its own memory.

    lists = Lists(blocks=2, most=32)
    lists.keep([number, number, arena], calls, owner)

A driver may bind memory to objects that a list contains. Such a list serves only calls on the same
blocks, and native code looks for it by their numbers (lists_code.py).

Invariant: one thread at a time uses a table of lists, under the lock of its device.
"""

from __future__ import annotations

from array import array

from rune.backends.shared.call_list import CallList

HEAD = "COUNT BLOCKS ARENA".split()
ARENA = HEAD.index("ARENA")
AFTER = 2  # words of an entry behind its key: `starts` of the list, and its number of calls


class Lists:
    """At most `most` lists by the numbers of blocks: of arguments, results, and the arena or 0.

    In memory: words by HEAD, then for each list its key, `starts` and number of calls. The word
    ARENA is that of the call to be made.
    """

    __slots__ = ("_keys", "_most", "_owners", "_turn", "_width", "words")

    def __init__(self, blocks: int, most: int):
        self._most, self._width, self._turn = most, blocks + 1 + AFTER, 0
        self._keys, self._owners = list[tuple[int, ...]](), list[object]()
        self.words = array("Q", [0, blocks, 0, *[0] * (most * self._width)])

    def __len__(self) -> int:
        return len(self._owners)

    def keep(self, key: tuple[int, ...], calls: CallList, owner: object) -> None:
        """Add a list, unless there is one for the key; in place of the oldest one if there are too
        many.

        owner: keeps alive what the list refers to, and whatever has one of the numbers, so that
               nothing else gets that number
        """
        if key in self._keys:
            return
        at = len(HEAD) + self._turn * self._width
        self.words[at : at + self._width] = array("Q", [*key, calls.starts.buffer_info()[0], calls.count])
        self._keys[self._turn : self._turn + 1] = [key]
        self._owners[self._turn : self._turn + 1] = [(calls, owner)]
        self._turn = (self._turn + 1) % self._most
        self.words[0] = len(self._owners)

    def address(self, word: int) -> int:
        """The address of a word."""
        return self.words.buffer_info()[0] + self.words.itemsize * word
