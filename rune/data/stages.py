"""The stages of a pipeline: frozen values, each with the stage before it.

source      Rows, FileRows   rows of arrays, in memory or in a file
            Items            a sequence, with a length and an item for every number
            Stream           an iterable; only its next item is available
order       Shuffle, Shard, Repeat
work        Map, Enumerate, Batch, Prefetch
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Literal, Protocol

from rune.backends import Device
from rune.errors import Frame
from rune.records import dataclass
from rune.sharding import Sharding

Remainder = Literal["drop", "keep", "pad"]
Where = str | Device | Sharding | None


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process, for work that releases the interpreter lock (NumPy, files, images).

    >>> from rune import data
    >>> list(data.sequence([1, 2, 3]).map(lambda x: x * x, workers=data.Threads(2)))
    [1, 4, 9]
    """

    count: int


@dataclass(frozen=True, slots=True)
class Processes:
    """Worker processes, for work in pure Python. Pickle sends them the function and the source.

    start: the start method, as in `multiprocessing`. "forkserver" and "spawn" start a new
           interpreter and import the main module, which must guard its work by
           `if __name__ == "__main__":`. "fork" copies this process, including functions that pickle
           cannot send, and is safe only before threads and drivers run. None means "forkserver"
           where the system has it, otherwise "spawn".

    >>> from rune import data
    >>> data.Processes(4)
    Processes(count=4, start=None)
    """

    count: int
    start: Literal["fork", "forkserver", "spawn"] | None = None


Workers = Threads | Processes


class Indexed(Protocol):
    """An object with a length that can be indexed by number."""

    def __len__(self) -> int: ...
    def __getitem__(self, number: int, /) -> object: ...


class Node:
    """The base of all stages."""


@dataclass(frozen=True)
class Rows(Node):
    """The rows of arrays of equal length.

    arrays: a tree of NumPy arrays
    """

    arrays: object
    size: int


@dataclass(frozen=True)
class FileRows(Rows):
    """The rows of the arrays in a file, which each process opens for itself.

    opener: makes the stage from the path in another process
    """

    path: str
    opener: Callable[[str], FileRows]

    def __reduce__(self) -> tuple[Callable[[str], FileRows], tuple[str]]:
        return self.opener, (self.path,)


@dataclass(frozen=True)
class Items(Node):
    """The items of a sequence."""

    sequence: Indexed


@dataclass(frozen=True)
class Stream(Node):
    """The items of an iterable of unknown length."""

    iterable: Iterable[object]


@dataclass(frozen=True)
class Stage(Node):
    """A stage after another one; `line` is where the user added it."""

    upstream: Node
    line: Frame | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Shuffle(Stage):
    """Elements in a random order from the words of a key; a stream is shuffled in a buffer."""

    words: tuple[int, ...]
    buffer: int | None


@dataclass(frozen=True)
class Shard(Stage):
    """Every `count`-th element from `index` on."""

    index: int
    count: int


@dataclass(frozen=True)
class Repeat(Stage):
    """Several passes over the elements; None repeats without end."""

    epochs: int | None


@dataclass(frozen=True)
class Map(Stage):
    """A function of each element."""

    function: Callable[[object], object]
    workers: Workers | None


@dataclass(frozen=True)
class Enumerate(Stage):
    """Pairs of an element's number and the element."""


@dataclass(frozen=True)
class Batch(Stage):
    """Batches of elements."""

    size: int
    remainder: Remainder


@dataclass(frozen=True)
class Prefetch(Stage):
    """Elements copied to a device ahead of their use."""

    device: Where
    depth: int
