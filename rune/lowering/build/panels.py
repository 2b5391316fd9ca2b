"""Panels: what a group of threads reads of the operands of a dot, in shared memory.

An operand of a dot depends on its rows or on its columns. A panel holds, for all rows (or columns)
of a group's tile, a slice of the sum: element (position, depth) lies at depth * stride + position.
So the factors of a thread at one depth are neighbours, which one instruction reads. Units for
matrices read either order, so their panels are in the order of memory, and neighbours stay
neighbours.

The threads fill a panel together. Neighbouring threads read neighbours in memory, along the rows or
along the sum, whichever is contiguous, and each thread reads a piece of several elements if pieces
divide the panel. Positions beyond the end of an axis are not read, and hold zeros. Aligned pieces
that keep their order are fetched asynchronously: no thread waits for them before the next barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.conditions import every, less
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Fetch, For, If, Kind, Let, Stmt, Store
from rune.lowering.kernel.rewrite import map_expr, with_sizes
from rune.lowering.kernels import Axis, positions
from rune.records import dataclass

PIECE_BYTES = 16  # that a thread reads at once
FETCH_BYTES = 4  # the smallest piece that devices fetch asynchronously
PAD_BYTES = 16  # after each depth of a panel that is filled along the sum, against bank conflicts


@dataclass(frozen=True, slots=True)
class Panel:
    """One operand of a dot in shared memory.

    load:    the load of the kernel that the panel replaces
    axis:    the axis of the domain along which the panel has `length` positions
    sums:    the axes of the sum, with the sizes that one panel covers
    end:     the full size of the first of these axes, if panels may reach beyond it
    is_as_read: whether neighbours in memory are neighbours in the panel
    is_fetched: whether it is filled while another panel is read
    """

    name: str
    load: Load
    axis: Axis
    length: int
    sums: tuple[Axis, ...]
    end: Size | None = None
    is_as_read: bool = False
    is_fetched: bool = False

    @property
    def depth(self) -> int:
        """The elements of one position."""
        return prod(int(str(a.size)) for a in self.sums)

    @property
    def is_along_sum(self) -> bool:
        """Whether neighbours in memory are neighbours of the sum, and not of the positions."""
        index = self.load.indices[0]
        return step(index, self.axis.name) != 1 and step(index, self.sums[-1].name) == 1

    @property
    def strides(self) -> tuple[int, int]:
        """From one position to the next, and from one depth to the next."""
        pad = PAD_BYTES // self.load.dtype.itemsize
        if self.is_as_read:
            line = self.depth if self.is_along_sum else self.length
            # Lines of an odd number of pads, so that eight of them begin in different banks.
            line += pad if line // pad % 2 == 0 else 0
            return (line, 1) if self.is_along_sum else (1, line)
        return 1, self.length + (pad if self.is_along_sum else 0)

    @property
    def reach(self) -> int:
        """Positions of the group's whole tile; the panel may have only a part of them."""
        return self.length

    @property
    def alloc(self) -> Alloc:
        """The memory of the panel."""
        of_position, of_depth = self.strides
        size = self.length * of_position if of_depth == 1 else self.depth * of_depth
        return Alloc(self.name, self.load.dtype, size, AddressSpace.SHARED)

    def index(self, position: Size, depth: Size) -> Size:
        """Where one of its elements lies."""
        of_position, of_depth = self.strides
        return position * of_position + depth * of_depth


def step(index: Size, name: str) -> Size:
    """How far apart the first two elements along an axis are, even if the axis is a merged one."""
    # No coefficient: of a merged axis the index has quotients and remainders.
    first, second = (dims.substitute(index, {name: k}) if isinstance(index, Dim) else index for k in (0, 1))
    return second - first


def fill(
    panel: Panel, thread: Size, threads: int, origin: Mapping[str, Size], offset: Size = 0, name: str = ""
) -> list[Stmt]:
    """The statements by which a thread reads its part of a panel.

    origin: where the panel begins along the axes of rows, of columns, and of the sum
    offset: where it begins in its memory
    name:   a part of names that no other filling has
    """
    elements = panel.length * panel.depth
    piece = _piece(panel, threads, origin, offset)
    rounds = -(-elements // (threads * piece))
    round_axis = Axis(f"{panel.name}{name}_round", rounds)
    number = (round_axis.symbol * threads if rounds > 1 else 0) + thread
    loads, places = _elements(panel, number * piece, piece, origin, offset)
    body = _fetch(panel, loads, places) or _transfer(panel, loads, places, name)
    if elements % (threads * piece):
        body = (If(less(number * piece, elements), body),)
    return [For(round_axis.name, rounds, Kind.SERIAL, body)] if rounds > 1 else list(body)


def _piece(panel: Panel, threads: int, origin: Mapping[str, Size], offset: Size) -> int:
    """How many neighbours a thread reads at once."""
    run = int(str(panel.sums[-1].size)) if panel.is_along_sum else panel.length
    piece = max(1, PIECE_BYTES // panel.load.dtype.itemsize)
    # Units read much, so for them whole pieces are worth more than work for every thread.
    share = 1 if panel.is_as_read else threads
    while piece > 1 and (run % piece or panel.length * panel.depth % (share * piece)):
        piece //= 2
    # Single elements that are fetched asynchronously beat pieces that threads have to wait for.
    is_single = panel.is_fetched and panel.load.dtype.itemsize >= FETCH_BYTES
    first = dims.symbol("number", 0, panel.length * panel.depth // piece - 1) * piece
    return 1 if is_single and not _fetch(panel, *_elements(panel, first, piece, origin, offset)) else piece


def _elements(
    panel: Panel, number: Size, piece: int, origin: Mapping[str, Size], offset: Size
) -> tuple[list[Load], list[Size]]:
    """The loads of a piece's elements, and their places in the panel."""
    loads = [_load(panel, number, k, piece, origin) for k in range(piece)]
    return loads, [panel.index(*_place(panel, number + k)) + offset for k in range(piece)]


def _fetch(panel: Panel, loads: Sequence[Load], places: Sequence[Size]) -> tuple[Stmt, ...]:
    """The piece as one fetch; nothing unless it is certain to be aligned and contiguous."""
    first, count = loads[0], len(loads)
    is_wide = panel.is_fetched and count * panel.load.dtype.itemsize >= FETCH_BYTES
    same = all(x.guard == first.guard and x.indices[0] - first.indices[0] == k for k, x in enumerate(loads))
    is_aligned = all(dims.divides(count, x) is True for x in (first.indices[0], places[0]))
    if not (is_wide and same and is_aligned and all(x - places[0] == k for k, x in enumerate(places))):
        return ()
    return (Fetch(panel.name, places[0], first.buffer, first.indices[0], count, first.guard),)


def _transfer(panel: Panel, loads: Sequence[Load], places: Sequence[Size], name: str) -> tuple[Stmt, ...]:
    """The piece through registers, all loads first, so that a compiler sees neighbours."""
    lets = [Let(f"{panel.name}{name}_element_{k}", load) for k, load in enumerate(loads)]
    stores = (Store(panel.name, at, Local(let.name, panel.load.dtype)) for at, let in zip(places, lets))
    return (*lets, *stores)


def _load(panel: Panel, number: Size, k: int, piece: int, origin: Mapping[str, Size]) -> Load:
    """The k-th element of a piece, in memory; zero beyond the ends."""
    position, depth = _place(panel, number + k)
    within = {panel.axis.name: position, **positions(depth, panel.sums)[0]}
    load = placed(panel.load, {**origin, **{name: origin.get(name, 0) + x for name, x in within.items()}})
    assert isinstance(load, Load)
    guards = [*_inside(panel, number, k, piece, origin), *([] if load.guard is None else [load.guard])]
    return replace(load, guard=every(guards) if guards else None)


def _place(panel: Panel, number: Size) -> tuple[Size, Size]:
    """The position and depth of an element by its number, in the order in which threads read."""
    if panel.is_along_sum:
        return number // panel.depth, number % panel.depth
    return number % panel.length, number // panel.length


def _inside(panel: Panel, number: Size, k: int, piece: int, origin: Mapping[str, Size]) -> Iterator[Expr]:
    """Conditions for an element not to be beyond an end; none for ends that no piece passes."""
    axis, cut = panel.axis, panel.sums[0]
    # Where pieces divide an axis, a piece is inside or outside as a whole: one condition for all of
    # its elements, which a fetch needs.
    if axis.size % panel.reach != 0:
        position, _ = _place(panel, number if axis.size % piece == 0 else number + k)
        yield less(origin[axis.name] + position, axis.size)
    if panel.end is not None and panel.end % cut.size != 0:
        _, depth = _place(panel, number if panel.end % piece == 0 else number + k)
        inner_elements = prod(int(str(a.size)) for a in panel.sums[1:])
        yield less(origin[cut.name] + depth // inner_elements, panel.end)


def placed(expr: Expr, at: Mapping[str, Size]) -> Expr:
    """The expression with axes at other positions."""

    def on_size(x: Size) -> Size:
        return dims.substitute(x, at) if isinstance(x, Dim) else x

    return map_expr(lambda part: with_sizes(on_size, part), expr)
