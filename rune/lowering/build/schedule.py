"""Schedule: the layout of a kernel's loops, as a value that prints and parses.

    schedule  := "plain" | step {step}                  in the order in which they are applied:
    step      := "order(" axis {"," axis} ")"           the axes of the domain, the last innermost
               | "merge(" axis ")"                     the last axes, from this one on, become one
               | "parts(" count ["," "lanes=" lanes] ")"   of every long reduction, each in lanes
               | "squares(" axis "=" side ["," "lanes=" lanes] ")"   the axis and the last one, in
                       small squares, each in blocks that are read before they are written
               | "turn(" axis "=" side ")"              the same by groups, through shared memory
               | "vectors(" count ", lanes=" lanes ")"  several vectors of columns at a point
               | "rows(" axis "=" count ")"             one point does what several along an axis do
               | "tile(" axis "=" rows ["," axis "=" columns] ["," "apart"] ")"   of a dot
               | "stage(" axis "=" threads "," axis "=" threads "," axis "=" depth ["," "twice"] ")"
                       a group of threads, by rows and columns, reads its tiles from shared memory
               | "units(16, 8, 16)"                     a subgroup of 32 threads computes a tile on
                       units for matrices; the stage counts subgroups
               | "units(64, 8, 16, buffers=" count ["," "abreast=" count] ["," "groups=" count] ")"
                       four subgroups compute a tile; panels are fetched further ahead, groups walk
                       `abreast` rows of groups at a time, and `groups` groups take tiles in turn
               | "share(" threads ["," "lanes=" lanes] ["," "points=" points] {"," word} ")"
                       the threads of a group share a point, or `points` points along the last axis;
                       word is "across" if neighbouring threads have neighbouring points, and
                       "registers" if no thread reads an element of its rows twice
               | "lanes(" (axis | "inner") ")"          of native code: an axis, or within points

Axes are those of the kernel after its accesses have been made flat and its axes collapsed, as
`explain` shows it. No schedule changes what a kernel computes: every legal one (legal.py) keeps all
values, except for the order of sums.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from rune.errors import ArgumentError
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """The axes of the domain in this order."""

    axes: tuple[str, ...]

    def __str__(self) -> str:
        return f"order({', '.join(self.axes)})"


@dataclass(frozen=True, slots=True)
class Merge:
    """The last axes of the domain become one, from this one on."""

    axis: str

    def __str__(self) -> str:
        return f"merge({self.axis})"


@dataclass(frozen=True, slots=True)
class Parts:
    """Every reduction of many rounds has `count` parts, each of `lanes` neighbours at a time."""

    count: int
    lanes: int = 1

    def __str__(self) -> str:
        return f"parts({self.count}{f', lanes={self.lanes}' if self.lanes != 1 else ''})"


@dataclass(frozen=True, slots=True)
class Squares:
    """An axis of the domain and the last one are walked in squares of this side.

    lanes: side of the blocks of a square, whose elements are read before any is written
    """

    axis: str
    side: int
    lanes: int = 1

    def __str__(self) -> str:
        return f"squares({self.axis}={self.side}{f', lanes={self.lanes}' if self.lanes != 1 else ''})"


@dataclass(frozen=True, slots=True)
class Turn:
    """Groups of threads read squares along this axis, and write them along the last one."""

    axis: str
    side: int

    def __str__(self) -> str:
        return f"turn({self.axis}={self.side})"


@dataclass(frozen=True, slots=True)
class Vectors:
    """Each point computes `count` vectors of `lanes` neighbouring columns.

    neighbours: columns of a point that stand side by side
    """

    count: int
    lanes: int
    neighbours: int = 1

    def __str__(self) -> str:
        side_by_side = f", neighbours={self.neighbours}" if self.neighbours > 1 else ""
        return f"vectors({self.count}, lanes={self.lanes}{side_by_side})"


@dataclass(frozen=True, slots=True)
class Rows:
    """Each point computes what `count` points along an axis would compute."""

    axis: str
    count: int

    def __str__(self) -> str:
        return f"rows({self.axis}={self.count})"


@dataclass(frozen=True, slots=True)
class Tile:
    """The rows of one point of a dot, along an axis of the domain, and its columns, along the last.

    apart: whether the columns of a point are interleaved with those of other points
    """

    row_axis: str
    rows: int
    column_axis: str = ""
    columns: int = 1
    apart: bool = False

    def __str__(self) -> str:
        # A tile of one column has no axis of columns, in whatever way it was made.
        columns = f", {self.column_axis}={self.columns}" if self.columns > 1 else ""
        return f"tile({self.row_axis}={self.rows}{columns}{', apart' if self.apart else ''})"


@dataclass(frozen=True, slots=True)
class Stage:
    """A group of rows x columns threads reads the operands of its tiles into shared memory.

    depth: how much of an axis of the sum it takes at a time, with all axes after it
    twice: whether each panel has two buffers, so that one is filled while the other is read
    """

    row_axis: str
    rows: int
    column_axis: str
    columns: int
    sum_axis: str
    depth: int
    twice: bool = False

    def __str__(self) -> str:
        of_rows, of_columns = f"{self.row_axis}={self.rows}", f"{self.column_axis}={self.columns}"
        return f"stage({of_rows}, {of_columns}, {self.sum_axis}={self.depth}{', twice' if self.twice else ''})"


@dataclass(frozen=True, slots=True)
class Units:
    """Units that multiply matrices of these rows, columns and depth compute the tiles.

    buffers: how many each panel has, if more than two
    abreast: how many rows of groups walk their columns side by side
    groups:  how many take all tiles in turn; 0: one for each tile
    """

    rows: int
    columns: int
    depth: int
    buffers: int = 0
    abreast: int = 1
    groups: int = 0

    def __str__(self) -> str:
        buffers = f", buffers={self.buffers}" if self.buffers else ""
        abreast = f", abreast={self.abreast}" if self.abreast != 1 else ""
        groups = f", groups={self.groups}" if self.groups else ""
        return f"units({self.rows}, {self.columns}, {self.depth}{buffers}{abreast}{groups})"


@dataclass(frozen=True, slots=True)
class Share:
    """The threads of a workgroup share each point, or `points` of them along the last axis.

    lanes:     neighbours that a thread takes at a time
    across:    whether neighbouring threads have neighbouring points, and not parts of one point
    registers: whether loops are unrolled, so that a thread keeps in registers what it has read
    """

    threads: int
    lanes: int = 1
    points: int = 1
    across: bool = False
    registers: bool = False

    def __str__(self) -> str:
        # Defaults are left out, so that equal schedules have one text.
        numbers = {"lanes": self.lanes, "points": self.points}
        words = {"across": self.across, "registers": self.registers}
        of_numbers = [f"{name}={n}" for name, n in numbers.items() if n != 1]
        return f"share({', '.join((str(self.threads), *of_numbers, *(w for w, holds in words.items() if holds)))})"


@dataclass(frozen=True, slots=True)
class Lanes:
    """Vector lanes run along an axis of the domain, or `INNER`: along loops inside a point."""

    axis: str

    def __str__(self) -> str:
        return f"lanes({self.axis})"


INNER = "inner"


@dataclass(frozen=True, slots=True, repr=False)
class Schedule:
    """The steps by which a kernel becomes loops, as fields in the order of their application.

    >>> schedule = parse("squares(i0=16, lanes=8) share(128)")
    >>> schedule.squares, str(schedule)
    (Squares(axis='i0', side=16, lanes=8), 'squares(i0=16, lanes=8) share(128)')
    """

    order: Order | None = None
    merge: Merge | None = None
    parts: Parts | None = None
    squares: Squares | None = None
    turn: Turn | None = None
    vectors: Vectors | None = None
    rows: Rows | None = None
    tile: Tile | None = None
    stage: Stage | None = None
    units: Units | None = None
    share: Share | None = None
    lanes: Lanes | None = None

    @property
    def has_tiles(self) -> bool:
        """Whether points are tiles or squares: the threads of a group can share only one."""
        return self.tile is not None or self.squares is not None

    @property
    def has_groups(self) -> bool:
        """Whether groups of threads work through shared memory."""
        return self.stage is not None or self.turn is not None

    def __str__(self) -> str:
        steps = (getattr(self, f.name) for f in fields(self))
        return " ".join(str(s) for s in steps if s is not None) or "plain"

    # Schedules appear in tables and errors as users write them.
    __repr__ = __str__


PLAIN = Schedule()

Numbers = Mapping[str, int]
Step = Order | Merge | Parts | Squares | Turn | Vectors | Rows | Tile | Stage | Units | Share | Lanes


def _order(numbers: Numbers, words: Sequence[str]) -> Order:
    # Unpacking a list with elements left raises ValueError, which `_step` turns into its error.
    () = numbers
    if not all(map(str.isidentifier, words)):
        raise ValueError(words)
    return Order(tuple(words))


def _merge(numbers: Numbers, words: Sequence[str]) -> Merge:
    () = numbers
    (axis,) = words
    return Merge(axis)


def _parts(numbers: Numbers, words: Sequence[str]) -> Parts:
    (count,) = words
    if list(numbers) not in ([], ["lanes"]):
        raise ValueError(numbers)
    return Parts(int(count), numbers.get("lanes", 1))


def _squares(numbers: Numbers, words: Sequence[str]) -> Squares:
    (axis, side), *further = numbers.items()
    () = words
    if [name for name, _ in further] not in ([], ["lanes"]):
        raise ValueError(numbers)
    return Squares(axis, side, *(lanes for _, lanes in further))


def _turn(numbers: Numbers, words: Sequence[str]) -> Turn:
    ((axis, side),) = numbers.items()
    () = words
    return Turn(axis, side)


def _vectors(numbers: Numbers, words: Sequence[str]) -> Vectors:
    (_, lanes), *further = numbers.items()
    (count,) = words
    if [name for name, _ in further] not in ([], ["neighbours"]):
        raise ValueError(numbers)
    return Vectors(int(count), lanes, *(neighbours for _, neighbours in further))


def _rows(numbers: Numbers, words: Sequence[str]) -> Rows:
    ((axis, count),) = numbers.items()
    () = words
    return Rows(axis, count)


def _tile(numbers: Numbers, words: Sequence[str]) -> Tile:
    (row_axis, rows), *columns = numbers.items()
    if not columns:
        () = words
        return Tile(row_axis, rows)
    ((column_axis, count),) = columns
    apart = bool(words)
    if list(words) not in ([], ["apart"]):
        raise ValueError(words)
    return Tile(row_axis, rows, column_axis, count, apart)


def _stage(numbers: Numbers, words: Sequence[str]) -> Stage:
    (row_axis, rows), (column_axis, columns), (sum_axis, depth) = numbers.items()
    if list(words) not in ([], ["twice"]):
        raise ValueError(words)
    return Stage(row_axis, rows, column_axis, columns, sum_axis, depth, twice=bool(words))


def _units(numbers: Numbers, words: Sequence[str]) -> Units:
    if not numbers.keys() <= {"buffers", "abreast", "groups"}:
        raise ValueError(numbers)
    rows, columns, depth = map(int, words)
    return Units(rows, columns, depth, **numbers)


def _share(numbers: Numbers, words: Sequence[str]) -> Share:
    threads, *further = words
    if not (numbers.keys() <= {"lanes", "points"} and set(further) <= {"across", "registers"}):
        raise ValueError(numbers, words)
    return Share(int(threads), **numbers, across="across" in further, registers="registers" in further)


def _lanes(numbers: Numbers, words: Sequence[str]) -> Lanes:
    () = numbers
    (axis,) = words
    if not axis.isidentifier():
        raise ValueError(axis)
    return Lanes(axis)


# For each step, the function that reads it from its numbers and words, and an example.
_READERS: Mapping[str, tuple[Callable[[Numbers, Sequence[str]], Step], str]] = {
    "order": (_order, "order(i1, i0)"),
    "merge": (_merge, "merge(i2)"),
    "parts": (_parts, "parts(4, lanes=16)"),
    "squares": (_squares, "squares(i0=16, lanes=8)"),
    "turn": (_turn, "turn(i0=32)"),
    "vectors": (_vectors, "vectors(4, lanes=16)"),
    "rows": (_rows, "rows(i0=4)"),
    "tile": (_tile, "tile(i0=8, i1=16, apart)"),
    "stage": (_stage, "stage(i0=16, i1=16, j0=8)"),
    "units": (_units, "units(16, 8, 16)"),
    "share": (_share, "share(128, lanes=4, points=2)"),
    "lanes": (_lanes, "lanes(i0)"),
}
_STEP = re.compile(r"\s*(\w+)\(([^()]*)\)\s*")


def parse(text: str) -> Schedule:
    """The schedule that prints as `text`.

    Errors: ArgumentError if the text does not fit the grammar, or if a step occurs twice or before
            one that is applied earlier.
    """
    if text.strip() == PLAIN.__str__():
        return PLAIN
    steps: dict[str, Step] = {}
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ArgumentError(f"schedule: cannot read {text[position:].strip()!r} ({_forms()})")
        name, position = match[1], match.end()
        if name in steps:
            raise ArgumentError(f"schedule: cannot apply {name} twice ({text})")
        steps[name] = _step(name, match[2])
    # The table has the steps in the order of their application, which is the only one allowed.
    order = [name for name in _READERS if name in steps]
    if list(steps) != order or not steps:
        raise ArgumentError(f"schedule: cannot apply steps in the order of {text!r} (it is: {', '.join(_READERS)})")
    return Schedule(**steps)  # type: ignore[arg-type]


def _step(name: str, inside: str) -> Step:
    """One step, read from the text within its parentheses."""
    if name not in _READERS:
        raise ArgumentError(f"schedule: cannot apply {name!r} ({_forms()})")
    reader, form = _READERS[name]
    items = [x.strip() for x in inside.split(",")]
    pairs = [x.partition("=") for x in items if "=" in x]
    try:
        numbers = {axis.strip(): int(count) for axis, _, count in pairs}
        # An axis that occurs twice would silently keep its last count.
        if len(numbers) < len(pairs):
            raise ValueError(inside)
        return reader(numbers, [x for x in items if "=" not in x])
    except ValueError as error:
        raise ArgumentError(f"schedule: cannot read {name}({inside}) (it looks like {form})") from error


def _forms() -> str:
    return "steps: " + ", ".join(form for _, form in _READERS.values()) + "; or plain"
