"""Schedule: the layout of a kernel's loops, as a value that prints and parses.

    schedule  := "plain" | step {step}                  in the order in which they are applied:
    step      := "order(" axis {"," axis} ")"           the axes of the domain, the last innermost
               | "merge(" axis ")"                     the last axes, from this one on, become one
               | "parts(" count ["," "lanes=" lanes] ")"   of every long reduction, each in lanes
               | "squares(" axis "=" side ["," "lanes=" lanes] ")"   the axis and the last one, in
                       small squares, each in blocks that are read before they are written
               | "turn(" axis "=" side ")"              the same by groups, through shared memory
               | "vectors(" count ", lanes=" lanes ["," "neighbours=" columns] ")"   several vectors
                       of columns at a point, of which this many stand side by side
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from rune.errors import ArgumentError
from rune.records import dataclass


class _Written:
    """A step, which is written without defaults, so that equal schedules have one text."""

    __slots__ = ()

    def __str__(self) -> str:
        assert isinstance(self, Step)
        return f"{type(self).__name__.lower()}({', '.join(_items(self))})"


def _items(step: Step) -> Iterator[str]:
    defaults = {f.name: f.default for f in fields(step)}
    for item in _FORMS[type(step)][0].split(", "):
        axis, sign, name = item.rpartition("=")
        value = getattr(step, name)
        if value == defaults[name]:
            continue
        if sign:
            yield f"{getattr(step, axis) if axis else name}={value}"
        elif isinstance(value, tuple):
            yield from value
        else:
            yield name if value is True else str(value)


@dataclass(frozen=True, slots=True)
class Order(_Written):
    """The axes of the domain in this order."""

    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merge(_Written):
    """The last axes of the domain become one, from this one on."""

    axis: str


@dataclass(frozen=True, slots=True)
class Parts(_Written):
    """Every reduction of many rounds has `count` parts, each of `lanes` neighbours at a time."""

    count: int
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Squares(_Written):
    """An axis of the domain and the last one are walked in squares of this side.

    lanes: side of the blocks of a square, whose elements are read before any is written
    """

    axis: str
    side: int
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Turn(_Written):
    """Groups of threads read squares along this axis, and write them along the last one."""

    axis: str
    side: int


@dataclass(frozen=True, slots=True)
class Vectors(_Written):
    """Each point computes `count` vectors of `lanes` neighbouring columns.

    neighbours: columns of a point that stand side by side
    """

    count: int
    lanes: int
    neighbours: int = 1


@dataclass(frozen=True, slots=True)
class Rows(_Written):
    """Each point computes what `count` points along an axis would compute."""

    axis: str
    count: int


@dataclass(frozen=True, slots=True)
class Tile(_Written):
    """The rows of one point of a dot, along an axis of the domain, and its columns, along the last.

    apart: whether the columns of a point are interleaved with those of other points
    """

    row_axis: str
    rows: int
    column_axis: str = ""
    columns: int = 1
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Stage(_Written):
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


@dataclass(frozen=True, slots=True)
class Units(_Written):
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


@dataclass(frozen=True, slots=True)
class Share(_Written):
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


@dataclass(frozen=True, slots=True)
class Lanes(_Written):
    """Vector lanes run along an axis of the domain, or `INNER`: along loops inside a point."""

    axis: str


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

Step = Order | Merge | Parts | Squares | Turn | Vectors | Rows | Tile | Stage | Units | Share | Lanes

# For each step its fields in the order of the text, and an example. `axis=count` are two fields
# that are written as a pair, `=lanes` is one with its name; a flag is its name, all others values.
_FORMS: Mapping[type[Step], tuple[str, str]] = {
    Order: ("axes", "order(i1, i0)"),
    Merge: ("axis", "merge(i2)"),
    Parts: ("count, =lanes", "parts(4, lanes=16)"),
    Squares: ("axis=side, =lanes", "squares(i0=16, lanes=8)"),
    Turn: ("axis=side", "turn(i0=32)"),
    Vectors: ("count, =lanes, =neighbours", "vectors(4, lanes=16)"),
    Rows: ("axis=count", "rows(i0=4)"),
    Tile: ("row_axis=rows, column_axis=columns, apart", "tile(i0=8, i1=16, apart)"),
    Stage: ("row_axis=rows, column_axis=columns, sum_axis=depth, twice", "stage(i0=16, i1=16, j0=8)"),
    Units: ("rows, columns, depth, =buffers, =abreast, =groups", "units(16, 8, 16)"),
    Share: ("threads, =lanes, =points, across, registers", "share(128, lanes=4, points=2)"),
    Lanes: ("axis", "lanes(i0)"),
}
_KINDS = {kind.__name__.lower(): kind for kind in _FORMS}
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
    order = [name for name in _KINDS if name in steps]
    if list(steps) != order or not steps:
        raise ArgumentError(f"schedule: cannot apply steps in the order of {text!r} (it is: {', '.join(_KINDS)})")
    return Schedule(**steps)  # type: ignore[arg-type]


def _step(name: str, inside: str) -> Step:
    """One step, read from the text within its parentheses."""
    if name not in _KINDS:
        raise ArgumentError(f"schedule: cannot apply {name!r} ({_forms()})")
    items = [x.strip() for x in inside.split(",")]
    pairs = [x.partition("=") for x in items if "=" in x]
    try:
        numbers = {axis.strip(): int(count) for axis, _, count in pairs}
        # An axis that occurs twice would silently keep its last count.
        if len(numbers) < len(pairs):
            raise ValueError(inside)
        return _read(_KINDS[name], numbers, [x for x in items if "=" not in x])
    except (TypeError, ValueError) as error:  # a TypeError for fields without a value
        form = _FORMS[_KINDS[name]][1]
        raise ArgumentError(f"schedule: cannot read {name}({inside}) (it looks like {form})") from error


def _read(kind: type[Step], numbers: dict[str, int], words: Sequence[str]) -> Step:
    """A step of this kind from its pairs and words. Errors: TypeError or ValueError."""
    types = {f.name: f.type for f in fields(kind)}
    items = [item.rpartition("=") for item in _FORMS[kind][0].split(", ")]
    flags = {name for *_, name in items if types[name] == "bool" and name in words}
    options = {name for axis, sign, name in items if sign and not axis and name in numbers}
    values: dict[str, object] = {**dict.fromkeys(flags, True), **{name: numbers.pop(name) for name in options}}
    pairs = [(axis, name) for axis, _, name in items if axis]
    if len(numbers) > len(pairs) or ("apart" in flags and len(numbers) < len(pairs)):
        raise ValueError(numbers)
    for names, pair in zip(pairs, numbers.items()):
        values |= zip(names, pair, strict=True)
    others = [w for w in words if w not in flags]
    if kind is Order:
        return Order(tuple(map(_axis, others)))
    plain = [name for _, sign, name in items if not sign and types[name] != "bool"]
    values |= {n: _axis(w) if types[n] == "str" else int(w) for n, w in zip(plain, others, strict=True)}
    return kind(**values)  # type: ignore[arg-type]


def _axis(word: str) -> str:
    if not word.isidentifier():
        raise ValueError(word)
    return word


def _forms() -> str:
    return "steps: " + ", ".join(form for _, form in _FORMS.values()) + "; or plain"
