"""Records that Python lays out and native code reads: rows of 64-bit words.

    TABLE      of a program on a mesh: how many devices run and wait, and the reason of a failure
    SEAT       of one device: its code, and its meetings
    GROUP      of the devices that meet along one axis
    MESSAGE    of one collective: the moves of each place of a group, when all have arrived
    MOVE       of one place: copy rows, or add those of several places
    THREAD     of one device, for all programs

Names of words stand for their index in a record. Pointers are words; locks take several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

LOCK_WORDS = 16  # enough for a mutex or a condition variable of any C library


def _record(*names: str, locks: tuple[str, ...] = ()) -> Mapping[str, int]:
    """The index of each word. Locks come first, so that a record's address is that of its mutex."""
    places = {name: k * LOCK_WORDS for k, name in enumerate(locks)}
    first = len(locks) * LOCK_WORDS
    return {**places, **{name: first + k for k, name in enumerate(names)}, "end": first + len(names)}


TABLE = _record("running", "waiting", "failure", "device", "number", "other", "groups", "count", locks=("mutex",))
SEAT = _record("table", "device", "groups", "places", "messages", "axes", "at", "run", "words")
GROUP = _record("size", "arrived", "number", "first", "busy", "ready", "done", "ended", "rows", locks=("wake",))
MESSAGE = _record("alone", "moves", "counts")
MOVE = _record(
    *("kind", "function", "sources", "count", "operand", "result"),
    *("outer", "outer_from", "outer_to", "inner", "inner_from", "inner_to", "bytes", "origin", "target"),
)
THREAD = _record("job", "id", "place", locks=("mutex", "wake"))

# Reasons of a failure: all devices wait, or two of one group are at different collectives.
STUCK, DISAGREE = 1, 2


class Memory:
    """Rows of words, which live as long as this object."""

    def __init__(self) -> None:
        self._rows: list[np.ndarray] = []

    def row(self, words: Iterable[int]) -> np.ndarray:
        """A new row of words."""
        row = np.array([*words, 0], np.int64)
        self._rows.append(row)
        return row

    def record(self, names: Mapping[str, int], **words: int) -> np.ndarray:
        """A new record; words that are not given are 0."""
        row = aligned(names["end"])
        for name, word in words.items():
            row[names[name]] = word
        self._rows.append(row)
        return row


def aligned(count: int) -> np.ndarray:
    """Zeros that share no cache line with other memory."""
    row = np.zeros(count + 16, np.int64)
    first = -row.ctypes.data % 64 // 8
    return row[first : first + (count + 7) // 8 * 8]


def address(row: np.ndarray) -> int:
    """The address of the words."""
    return row.ctypes.data
