"""Panels: what a stream reads only by row, or only by key, in memory that its group shares.

A panel has a line for each row of a tile, or for each key, with the products of a dot, or the
columns of a sum, as neighbours. So threads read several of them at once, and what a dot and a sum
both read of a key is there only once. A line is an odd number of pieces long, so that threads in
step that read neighbouring lines access different banks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from rune import dims
from rune.dims import Dim, Size, is_static
from rune.lowering.kernel.expr import Expr, Load, Op
from rune.lowering.kernel.matrices import NARROW
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Let
from rune.lowering.kernel.rewrite import loads, names_in, rename
from rune.lowering.kernels import Axis, Kernel, Reduce, Stream, Sum
from rune.records import dataclass

PIECE = 4  # elements that a thread reads at once, if possible
HALVES = 8  # the same for elements of 16 bits


@dataclass(frozen=True, slots=True)
class Panel:
    """`count` positions of an axis, each with a line of the elements of `along`.

    value: an element, which may read `lets`
    """

    name: str
    value: Expr
    lets: tuple[Let, ...]
    axis: Axis
    along: Axis
    count: int

    @property
    def elements(self) -> int:
        """The elements of a line."""
        assert isinstance(self.along.size, int)
        return self.along.size

    @property
    def alloc(self) -> Alloc:
        """Its memory."""
        return Alloc(self.name, self.value.dtype, self.count * self.line, AddressSpace.SHARED)

    @property
    def line(self) -> int:
        """The distance from one line to the next."""
        return line_of(self.elements, HALVES if self.value.dtype in NARROW else PIECE)

    def index(self, position: Size, element: Size) -> Size:
        """The place of an element."""
        return position * self.line + element

    @property
    def loads(self) -> list[Load]:
        """The loads from memory for an element that change along a line."""
        exprs = (self.value, *(let.value for let in self.lets))
        return [x for x in dict.fromkeys(loads(exprs)) if mentions(x.indices[0], self.along)]

    @property
    def is_along(self) -> bool:
        """Whether the elements of a line are neighbours in memory, too."""
        return all(dims.coefficient(x.indices[0], self.along.name) == 1 for x in self.loads)


@dataclass(frozen=True, slots=True)
class Panels:
    """The panels of a stream: of rows, of keys that dots read, and of keys that only sums read.

    of_dots: by the name of a dot and its operand     of_sums: by the name of a sum, for its factor
    """

    rows: tuple[Panel, ...] = ()
    keys: tuple[Panel, ...] = ()
    factors: tuple[Panel, ...] = ()
    of_dots: Mapping[tuple[str, Expr], Panel] = field(default_factory=dict)
    of_sums: Mapping[str, Panel] = field(default_factory=dict)

    @property
    def of_keys(self) -> tuple[Panel, ...]:
        """The panels that are filled again for every tile."""
        return (*self.keys, *self.factors)

    @property
    def are_shared(self) -> bool:
        """Whether sums read what dots read."""
        return any(p in self.keys for p in self.of_sums.values())


def line_of(elements: int, piece: int = PIECE) -> int:
    """The length of a line that holds `elements`: an odd number of them, or of pieces."""
    if elements % piece:
        return elements | 1
    return elements if elements // piece % 2 else elements + piece


def piece_of(elements: int) -> int:
    """How many elements of a line are read at once."""
    return next(n for n in (PIECE, PIECE // 2, 1) if elements % n == 0)


def mentions(index: Size, axis: Axis) -> bool:
    """Whether an index changes along an axis."""
    return isinstance(index, Dim) and any(s.name == axis.name for s in dims.symbols(index))


def panels_of(kernel: Kernel, stream: Stream, row_axis: Axis, rows: int, keys: int) -> Panels:
    """The panels of a stream whose tiles have so many rows and keys."""
    return _Search(kernel, stream, row_axis, rows, keys).panels()


def set_apart(panels: Panels) -> Panels:
    """The panels with separate ones for sums, since those of dots are filled again sooner."""
    apart = {n: replace(p, name=f"{n}_factors") if p in panels.keys else p for n, p in panels.of_sums.items()}
    # Sums with equal factors still share a panel; reversed, so that the first name stays.
    once = {_meaning(p): p for p in reversed(apart.values())}
    of_sums = {n: once[_meaning(p)] for n, p in apart.items()}
    return replace(panels, factors=tuple(dict.fromkeys(of_sums.values())), of_sums=of_sums)


@dataclass(frozen=True, slots=True)
class _Search:
    kernel: Kernel
    stream: Stream
    row_axis: Axis
    rows: int
    keys: int

    def panels(self) -> Panels:
        by_row: dict[object, Panel] = {}
        by_key: dict[object, Panel] = {}
        of_dots: dict[tuple[str, Expr], Panel] = {}
        for dot, operand in self.operands():
            for panels, kind, axis, count in (
                (by_row, "rows", self.row_axis, self.rows),
                (by_key, "keys", self.stream.axes[-1], self.keys),
            ):
                if self.reads(operand, dot.lets) == kind:
                    panel = self.panel(f"{dot.name}_{kind}", operand, dot.lets, axis, dot.axes[0], count)
                    of_dots[dot.name, operand] = panels.setdefault(_meaning(panel), panel)
        # A factor of a sum may equal an operand of a dot, and then it has no panel of its own.
        in_dots = tuple(by_key.values())
        of_sums = {s.name: by_key.setdefault(_meaning(p), p) for s, p in self.factors()}
        factors = tuple(p for p in by_key.values() if p not in in_dots)
        return Panels(tuple(by_row.values()), in_dots, factors, of_dots, of_sums)

    def operands(self) -> Iterator[tuple[Reduce, Expr]]:
        """The operands of dots along one axis."""
        for dot in (*self.stream.scores, *self.stream.weights):
            if isinstance(dot, Reduce) and len(dot.axes) == 1 and is_static(dot.axes[0].size):
                assert isinstance(dot.value, Op)
                for operand in dict.fromkeys(dot.value.args):
                    if dot.axes[0].name in names_needed(operand, self.lets(dot.lets)):
                        yield dot, operand

    def factors(self) -> Iterator[tuple[Sum, Panel]]:
        """The factors of sums that change along columns and keys."""
        for total in self.stream.sums:
            if total.factor is None or not total.columns:
                continue
            (axis,) = total.columns
            along = axis.name in names_needed(total.factor, self.lets(total.lets))
            if along and self.reads(total.factor, total.lets) == "keys":
                name, keys = f"{total.name}_factors", self.stream.axes[-1]
                yield total, self.panel(name, total.factor, total.lets, keys, axis, self.keys)

    def panel(self, name: str, value: Expr, inner: Sequence[Let], axis: Axis, along: Axis, count: int) -> Panel:
        return Panel(name, value, tuple(slice_of(value, self.lets(inner))), axis, along, count)

    def lets(self, inner: Sequence[Let]) -> list[Let]:
        """What is bound where a dot or a sum is."""
        before = self.kernel.body[: self.kernel.body.index(self.stream)]
        parts = (*before, *self.stream.scores, *self.stream.weights)
        return [*(p for p in parts if isinstance(p, Let)), *inner]

    def reads(self, value: Expr, inner: Sequence[Let]) -> str | None:
        """Whether a value changes only along rows, or only along keys."""
        names, peak = names_needed(value, self.lets(inner)), self.stream.peak
        parts = (*self.stream.scores, *self.stream.weights)
        scores = {p.name for p in parts if isinstance(p, Reduce)} | ({peak.name} if peak else set())
        by_row, by_key = self.row_axis.name in names, not names.isdisjoint(a.name for a in self.stream.axes)
        # What depends on a score, or on both axes, differs for every pair of row and key.
        if names & scores or by_row == by_key:
            return None
        return "rows" if by_row else "keys"


def _meaning(panel: Panel) -> object:
    """A key that is equal for panels with the same elements."""
    # Without the names of lets and of the axis, in which a dot and a sum may differ.
    names = {let.name: f"let_{n}" for n, let in enumerate(panel.lets)}
    along = {panel.along.name: dims.symbol("along", 0, panel.elements - 1)}
    return panel.elements, rename((*panel.lets, Let("_", panel.value)), names, along)


def slice_of(expr: Expr, lets: Sequence[Let]) -> list[Let]:
    """The lets that an expression needs, in order."""
    names = set(names_in(expr))
    lets_needed: list[Let] = []
    for let in reversed(lets):
        if let.name in names:
            lets_needed.append(let)
            names |= names_in(let.value)
    return lets_needed[::-1]


def names_needed(expr: Expr, lets: Sequence[Let]) -> set[str]:
    """The names that an expression and the lets that it needs read."""
    return set(names_in(expr)).union(*(names_in(let.value) for let in slice_of(expr, lets)))
