"""Put the operands of dots and sums into panels (panels.py), some of them ahead of their use.

Elements are read ahead from memory into registers while the threads compute something else, and
stored once the elements in their place are no longer needed. Only few registers may be used so;
longer panels are filled in a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune import dims
from rune.dims import Size
from rune.lowering.build.conditions import less
from rune.lowering.build.streams.frame import Frame, Place
from rune.lowering.build.streams.panels import Panel, piece_of
from rune.lowering.build.streams.units import FETCHED, UnitTile
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import Fetch, For, If, Kind, Let, Stmt, Store
from rune.lowering.kernel.rewrite import map_expr, names_in
from rune.records import dataclass

MOST_AHEAD = 32  # elements of a panel that a thread holds in registers


@dataclass(frozen=True, slots=True)
class Filling:
    """The filling of some panels: the statements that read, then those that store."""

    reads: tuple[Stmt, ...] = ()
    stores: tuple[Stmt, ...] = ()


def filling(frame: Frame, panels: Sequence[Panel], first: Size, outer: Mapping[str, Size], name: str) -> Filling:
    """The filling of panels from a position of their axis on.

    outer: positions on the other axes of the stream
    name:  a part of names that no other filling has
    """
    parts = [_filling(frame, panel, first, outer, name) for panel in panels]
    return Filling(tuple(s for p in parts for s in p.reads), tuple(s for p in parts for s in p.stores))


def _filling(frame: Frame, panel: Panel, first: Size, outer: Mapping[str, Size], name: str) -> Filling:
    # Rows stay for all tiles, and all threads of the group fill them; each part fills its keys.
    is_once = panel in frame.panels.rows
    threads, thread = (frame.tile.threads, frame.thread) if is_once else (frame.tile.lanes, frame.lane)
    frame.memory(panel.name, panel.alloc.size * (1 if is_once else frame.tile.parts), panel.alloc.dtype)
    if isinstance(frame.tile, UnitTile):
        return Filling(reads=_fetches(frame, panel, threads, thread, first, outer, name))
    piece = _piece(panel, threads)
    pieces = panel.count * panel.elements // piece
    rounds = -(-pieces // threads)
    # Without a condition, loads can be written out and wait in registers for their stores.
    if pieces % threads == 0 and rounds * piece <= MOST_AHEAD:
        parts = [_pieces(frame, panel, n * threads + thread, piece, first, outer, f"{name}_{n}") for n in range(rounds)]
        return Filling(tuple(s for p in parts for s in p.reads), tuple(s for p in parts for s in p.stores))
    loop = f"{panel.name}{name}_round"
    number = dims.symbol(loop, 0, rounds - 1) * threads + thread if rounds > 1 else thread
    part = _pieces(frame, panel, number, piece, first, outer, name)
    body = (*part.reads, *part.stores)
    if pieces % threads:
        # Beyond the end nothing is read, so nothing is clamped twice.
        body = (If(less(number, pieces), body),)
    return Filling(stores=(For(loop, rounds, Kind.SERIAL, body),) if rounds > 1 else body)


def _fetches(
    frame: Frame, panel: Panel, threads: int, thread: Size, first: Size, outer: Mapping[str, Size], name: str
) -> tuple[Stmt, ...]:
    """The fetches of a thread; elements beyond the end are zero."""
    line_pieces = panel.elements // FETCHED
    rounds = -(-panel.count * line_pieces // threads)
    loop = f"{panel.name}{name}_round"
    number = dims.symbol(loop, 0, rounds - 1) * threads + thread if rounds > 1 else thread
    one, element = number // line_pieces, number % line_pieces * FETCHED
    place = Place({**outer, panel.axis.name: first + one, panel.along.name: element}, {})
    load = place.expr(panel.value)
    assert isinstance(load, Load)
    # A fetch writes zeros where its guard fails.
    guard = None if dims.divides(panel.count, panel.axis.size) is True else less(first + one, panel.axis.size)
    fetch = Fetch(panel.name, frame.element(panel, one, element), load.buffer, load.indices[0], FETCHED, guard)
    body: tuple[Stmt, ...] = (fetch,)
    if panel.count * line_pieces % threads:
        body = (If(less(number, panel.count * line_pieces), body),)
    return (For(loop, rounds, Kind.SERIAL, body),) if rounds > 1 else body


def _piece(panel: Panel, threads: int) -> int:
    """How many neighbours a thread reads at once: the most that leave work for all threads."""
    if not panel.is_along:
        return 1
    longest = piece_of(panel.elements)
    sizes = [n for n in (4, 2, 1) if n <= longest]
    return next((n for n in sizes if panel.count * panel.elements % (n * threads) == 0), longest)


def _pieces(
    frame: Frame, panel: Panel, number: Size, piece: int, first: Size, outer: Mapping[str, Size], name: str
) -> Filling:
    """The filling of one piece of a thread."""
    line_pieces = panel.elements // piece
    by_line = panel.is_along or not _is_across(panel)
    # Neighbouring threads read neighbours in memory.
    one, inside = (
        (number // line_pieces, number % line_pieces) if by_line else (number % panel.count, number // panel.count)
    )
    clamp, position = frame.inside(f"{panel.name}{name}_at", first + one, panel.axis, panel.count)
    reads: list[Stmt] = [*clamp]
    sizes = [{**outer, panel.axis.name: position, panel.along.name: inside * piece + n} for n in range(piece)]
    places = [
        Place(at, {let.name: f"{let.name}_{panel.name}{name}_{n}" for let in panel.lets}) for n, at in enumerate(sizes)
    ]
    loads = _simple_loads(panel)
    names = [{load: f"{panel.name}{name}_{m}_{n}" for m, load in enumerate(loads)} for n in range(piece)]
    # Side by side, so that one access reads them all.
    reads += [Let(names[n][load], place.expr(load)) for load in loads for n, place in enumerate(places)]
    lets: list[Stmt] = []
    stores: list[Stmt] = []
    for n, place in enumerate(places):
        lets += place.lets(Let(let.name, _with(let.value, names[n])) for let in panel.lets)
        value = place.expr(_with(panel.value, names[n]))
        stores.append(Store(panel.name, frame.element(panel, one, inside * piece + n), value))
    return Filling(tuple(reads), (*lets, *stores))


def _is_across(panel: Panel) -> bool:
    """Whether neighbours in memory belong to neighbouring lines."""
    return any(dims.coefficient(x.indices[0], panel.axis.name) == 1 for x in panel.loads)


def _simple_loads(panel: Panel) -> list[Load]:
    """Loads that do not depend on the panel's lets, and so may come before them."""
    bound = {let.name for let in panel.lets}
    return [x for x in panel.loads if not names_in(x) & bound]


def _with(expr: Expr, names: Mapping[Load, str]) -> Expr:
    """The expression with the names of loads that have been made."""

    def on_node(part: Expr) -> Expr:
        return Local(names[part], part.dtype) if isinstance(part, Load) and part in names else part

    return map_expr(on_node, expr)
