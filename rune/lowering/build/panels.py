"""Panels: what a group of threads reads of the operands of a dot, in shared memory.

An operand of a dot depends on its rows or on its columns. A panel holds, for all rows (or columns)
of a group's tile, a slice of the sum: element (position, depth) lies at depth * stride + position,
so that what a thread multiplies at one depth are neighbours, which one instruction reads.

The threads fill a panel together. Neighbouring threads read neighbours in memory, along the rows or
along the sum, whichever is contiguous, and each reads several where they divide what there is.
Positions beyond the end of an axis are not read, and hold zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.conditions import every, less
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import AddressSpace, Alloc, For, If, Kind, Let, Stmt, Store
from rune.lowering.kernel.rewrite import map_expr, with_sizes
from rune.lowering.kernels import Axis

PIECE_BYTES = 16  # that a thread reads at once
PAD_BYTES = 16  # behind each depth of a panel that is filled along the sum, against bank conflicts


@dataclass(frozen=True, slots=True)
class Panel:
    """One operand of a dot in shared memory.

    load:    what the kernel reads of it
    axis:    of the domain, along which it has `length` positions
    sums:    the axes of the sum, as far as one panel goes
    """

    name: str
    load: Load
    axis: Axis
    length: int
    sums: tuple[Axis, ...]

    @property
    def depth(self) -> int:
        """The elements of one position."""
        return prod(int(str(a.size)) for a in self.sums)

    @property
    def is_along_sum(self) -> bool:
        """Whether neighbours in memory are neighbours of the sum."""
        index = self.load.indices[0]
        return not _is_one(dims.coefficient(index, self.axis.name)) and _is_one(
            dims.coefficient(index, self.sums[-1].name)
        )

    @property
    def stride(self) -> int:
        """From one depth to the next."""
        return self.length + (PAD_BYTES // self.load.dtype.itemsize if self.is_along_sum else 0)

    @property
    def alloc(self) -> Alloc:
        """Its memory."""
        return Alloc(self.name, self.load.dtype, self.depth * self.stride, AddressSpace.SHARED)

    def at(self, position: Size, depth: Size) -> Load:
        """One of its elements."""
        return Load(self.name, (depth * self.stride + position,), self.load.dtype)


def _is_one(coefficient: Size | None) -> bool:
    return isinstance(coefficient, int) and coefficient == 1


def flat_depth(sums: Sequence[Axis]) -> Size:
    """The depth in a panel of a point of the sum."""
    flat: Size = 0
    for axis in sums:
        flat = flat * axis.size + axis.symbol
    return flat


def fill(panel: Panel, thread: Dim, threads: int, first: Size, origin: Mapping[str, Size]) -> list[Stmt]:
    """The statements by which a thread reads its part of a panel.

    first:   where the panel begins along its axis of the domain
    origin:  where it begins along the axes of the sum
    """
    elements = panel.length * panel.depth
    piece = _piece(panel, threads)
    rounds = -(-elements // (threads * piece))
    round_axis = Axis(f"{panel.name}_round", rounds)
    number = (round_axis.symbol * threads if rounds > 1 else 0) + thread
    transfers = [_transfer(panel, number * piece, k, piece, first, origin) for k in range(piece)]
    # First all that is read, so that a compiler sees neighbours side by side.
    body: tuple[Stmt, ...] = (*(let for let, _ in transfers), *(store for _, store in transfers))
    if elements % (threads * piece):
        body = (If(less(number * piece, elements), body),)
    return [For(round_axis.name, rounds, Kind.SERIAL, body)] if rounds > 1 else list(body)


def _piece(panel: Panel, threads: int) -> int:
    """How many neighbours a thread reads at once."""
    run = int(str(panel.sums[-1].size)) if panel.is_along_sum else panel.length
    piece = max(1, PIECE_BYTES // panel.load.dtype.itemsize)
    while piece > 1 and (run % piece or panel.length * panel.depth % (threads * piece)):
        piece //= 2
    return piece


def _transfer(
    panel: Panel, begin: Size, k: int, piece: int, first: Size, origin: Mapping[str, Size]
) -> tuple[Let, Store]:
    """The k-th element of a piece on its way from memory into the panel."""
    position, depth = _place(panel, begin + k)
    at, outer = {panel.axis.name: first + position}, depth
    for axis in reversed(panel.sums):
        at[axis.name] = origin.get(axis.name, 0) + outer % axis.size
        outer = outer // axis.size
    load = placed(panel.load, at)
    assert isinstance(load, Load)
    # A piece ends as a whole where pieces divide the axis.
    end = _place(panel, begin)[0] if panel.axis.size % piece == 0 else position
    inside = _inside(panel, first + end)
    guards = [g for g in (inside, load.guard) if g is not None]
    let = Let(f"{panel.name}_element_{k}", replace(load, guard=every(guards) if guards else None))
    return let, Store(panel.name, depth * panel.stride + position, Local(let.name, load.dtype))


def _place(panel: Panel, number: Size) -> tuple[Size, Size]:
    """The position and depth of an element, in the order in which threads read."""
    if panel.is_along_sum:
        return number // panel.depth, number % panel.depth
    return number % panel.length, number // panel.length


def _inside(panel: Panel, position: Size) -> Expr | None:
    """Whether a position is one of the axis; None where all are."""
    return None if panel.axis.size % panel.length == 0 else less(position, panel.axis.size)


def placed(expr: Expr, at: Mapping[str, Size]) -> Expr:
    """The expression with axes at other positions."""

    def on_size(x: Size) -> Size:
        return dims.substitute(x, at) if isinstance(x, Dim) else x

    return map_expr(lambda part: with_sizes(on_size, part), expr)
