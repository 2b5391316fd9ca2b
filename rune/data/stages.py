"""The stages of a pipeline: frozen values, each with the stage before it.

source      Rows, FileRows   rows of arrays, in memory or in a file
            Items            a sequence: its length is known, and every item can be asked for
            Stream           an iterable: no more is known than what comes next
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
    """So many threads of this process: for work that frees the interpreter (NumPy, files, images).

    >>> from rune import data
    >>> list(data.sequence([1, 2, 3]).map(lambda x: x * x, workers=data.Threads(2)))
    [1, 4, 9]
    """

    count: int


@dataclass(frozen=True, slots=True)
class Processes:
    """So many processes: for work in Python itself. Function and source are sent to them by pickle.

    start: how they start, as `multiprocessing` says it. "forkserver" and "spawn" begin anew and
           import the main module, whose work stands behind `if __name__ == "__main__":`. "fork"
           copies this process, with functions that pickle cannot send, and is only safe before
           threads and drivers run. None: "forkserver" where there is one, else "spawn".

    >>> from rune import data
    >>> data.Processes(4)
    Processes(count=4, start=None)
    """

    count: int
    start: Literal["fork", "forkserver", "spawn"] | None = None


Workers = Threads | Processes


class Indexed(Protocol):
    """What has a length, and gives an item by its number."""

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
    """The rows of the arrays of a file, which each process opens for itself.

    opener: makes the stage anew from the path
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
    """What an iterable gives, whose length is not known."""

    iterable: Iterable[object]


@dataclass(frozen=True)
class Stage(Node):
    """What follows another stage; `line` is where the user added it."""

    upstream: Node
    line: Frame | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Shuffle(Stage):
    """Elements in an order drawn by the words of a key; from a buffer, if they are of a stream."""

    words: tuple[int, ...]
    buffer: int | None


@dataclass(frozen=True)
class Shard(Stage):
    """Every `count`-th element from `index` on."""

    index: int
    count: int


@dataclass(frozen=True)
class Repeat(Stage):
    """Several passes; None: without end."""

    epochs: int | None


@dataclass(frozen=True)
class Map(Stage):
    """A function of each element."""

    function: Callable[[object], object]
    workers: Workers | None


@dataclass(frozen=True)
class Enumerate(Stage):
    """Pairs of number and element."""


@dataclass(frozen=True)
class Batch(Stage):
    """Elements by so many."""

    size: int
    remainder: Remainder


@dataclass(frozen=True)
class Prefetch(Stage):
    """Elements on a device, ahead of their use."""

    device: Where
    depth: int
