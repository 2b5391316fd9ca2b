"""Resolve views: which element of which operand a view shows, and under what condition.

A view rule answers with pieces and conditions. Conditions that the bounds of the symbols decide are
dropped here: a slice of a concatenation that lies within one part reads that part. The conditions
that remain must be computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from rune.core.lower import Bounds, Element, Piece, Source, View
from rune.core.program import Equation, Literal, Var
from rune.dims import Dim, Size, at_most, less, substitute, symbol, symbols
from rune.records import dataclass, replace

Indices = tuple[Size, ...]
Show = Callable[[Equation, Indices], "Resolution"]  # `resolve`, or `Views.at`, which remembers


@dataclass(frozen=True, slots=True)
class Resolution:
    """Pieces in order of precedence, each with the conditions left to compute.

    `total`: the last piece needs no condition, because some piece always holds.
    """

    pieces: tuple[Piece, ...]
    fill: int | None
    total: bool


def resolve(equation: Equation, indices: Indices) -> Resolution:
    """What `equation`, a view, shows at `indices`."""
    view = equation.primitive.lower
    assert isinstance(view, View)
    types = [a.type for a in equation.operands]
    source = view.rule(indices, *types, **equation.params)
    if any([0 in type.shape for type in types]):  # an array without elements shows nothing
        source = replace(source, pieces=tuple(p for p in source.pieces if 0 not in types[p.operand].shape))
    if any([piece.elements for piece in source.pieces]):
        pieces = tuple(_with_literals(p, equation) for p in source.pieces)
        source = replace(source, pieces=pieces)
    return simplify(source)


@dataclass(slots=True)
class Views:
    """The resolutions of a program's views, remembered while it becomes kernels.

    Every root walks through the views before it, and each kernel that computes them walks there
    again: in a long chain of updates nine of ten requests are repeated.
    """

    resolutions: dict[tuple[Var, Indices], Resolution] = field(default_factory=dict)

    def at(self, equation: Equation, indices: Indices) -> Resolution:
        """What `equation`, a view, shows at `indices`."""
        key = equation.results[0], indices
        resolution = self.resolutions.get(key)
        if resolution is None:
            resolution = self.resolutions[key] = resolve(equation, indices)
        return resolution


def _with_literals(piece: Piece, equation: Equation) -> Piece:
    """The piece with literals in place of the symbols that stand for them."""
    known: dict[str, Size] = {}
    for element in piece.elements:
        atom = equation.operands[element.operand]
        if isinstance(atom, Literal):
            value, ends = int(atom.value), element.clamp or (int(atom.value), int(atom.value))
            if isinstance(ends[0], int) and isinstance(ends[1], int):
                known[element.name] = min(max(value, ends[0]), ends[1])
    if not known:
        return piece
    # Most indices of a piece stand in its conditions, too, so each is substituted once.
    indices = {x: substitute(x, known) for x in {*piece.indices, *(b.index for b in piece.where)}}
    where = tuple([Bounds(indices[b.index], substitute(b.low, known), substitute(b.high, known)) for b in piece.where])
    elements = tuple([e for e in piece.elements if e.name not in known])
    return Piece(piece.operand, tuple([indices[i] for i in piece.indices]), where, elements)


def simplify(source: Source) -> Resolution:
    """The source without pieces that never hold, and without conditions that always hold."""
    possible: list[Piece] = []
    for piece in source.pieces:
        where = _undecided(piece.where)
        if where is None:
            continue
        possible.append(piece if where == piece.where else replace(piece, where=where))
        # This piece holds everywhere, so neither a later piece nor the fill is ever shown.
        if not where:
            return Resolution(tuple(possible), None, True)
    return Resolution(tuple(possible), source.fill, source.fill is None)


def _undecided(where: tuple[Bounds, ...]) -> tuple[Bounds, ...] | None:
    """The conditions that depend on values; None if one never holds."""
    conditions = []
    for bounds in where:
        above, below = at_most(bounds.low, bounds.index), less(bounds.index, bounds.high)
        if above is False or below is False:
            return None
        if not (above and below):
            conditions.append(bounds)
    return tuple(conditions)


def comparisons(bounds: Bounds) -> list[tuple[str, Size, Size]]:
    """The comparisons that decide low <= index < high, without those that always hold."""
    tests = []
    if not at_most(bounds.low, bounds.index):
        tests.append(("ge", bounds.index, bounds.low))
    if not less(bounds.index, bounds.high):
        tests.append(("lt", bounds.index, bounds.high))
    return tests


def rename(piece: Piece, names: dict[str, str]) -> Piece:
    """The piece with the symbols of its data-dependent integers renamed."""
    where = tuple(Bounds(*(_rename(x, names) for x in (b.index, b.low, b.high))) for b in piece.where)
    return Piece(piece.operand, tuple(_rename(i, names) for i in piece.indices), where)


def _rename(x: Size, names: dict[str, str]) -> Size:
    if not isinstance(x, Dim):
        return x
    new = {s.name: symbol(names[s.name], s.low, s.high) for s in symbols(x) if s.name in names}
    return substitute(x, new) if new else x


def breakpoints(bounds: Bounds, axis: Dim) -> tuple[Size, ...]:
    """Positions of `axis` at which the condition changes, when it depends on nothing else.

    >>> from rune.dims import symbol
    >>> i = symbol("i", 0, 9)
    >>> breakpoints(Bounds(i - 2, 0, 5), i), breakpoints(Bounds(9 - i, 0, 5), i)
    ((2, 7), (10, 5))
    """
    ends = (bounds.low, bounds.high)
    forward, backward = bounds.index - axis, bounds.index + axis
    (name,) = symbols(axis)
    if not _mentions(forward, name.name):
        # index = axis + forward, so it crosses `end` where axis = end - forward.
        return tuple(end - forward for end in ends)
    if not _mentions(backward, name.name):
        # index = backward - axis falls, so it crosses one position later.
        return tuple(backward - end + 1 for end in ends)
    return ()


def _mentions(x: Size, name: str) -> bool:
    return any(s.name == name for s in symbols(x))


__all__ = ["Element", "Resolution", "Show", "Views", "breakpoints", "comparisons", "rename", "resolve", "simplify"]
