"""Teams: four subgroups together compute a tile of a dot of half types on units for matrices.

Before   for m in 512, n in 512 grid { sum += a[m, k] * b[k, n] over k in 512 }
After    for m in 4, n in 2 grid tile(m=64, n=256) stage(m=2, n=1, k=64) units(64, 8, 16, buffers=4)
           alloc four a_panel, four b_panel              128 rows and 256 columns, 64 of k
           for thread in 256 workgroup                   2 teams, each of a tile of 64 x 256
             fetch the first two of both panels, a team one each
             for round in 8
               barrier, behind 1
               multiply 64 rows of a_panel by 256 columns of b_panel
               fetch both panels of round + 2, if it is this team's turn
             barrier; store 2 x 64 of y

The units read both factors from shared memory, and continue after the statement has ended. So a
barrier does not wait for the products of the round before it, and the buffer that is filled next is
the one that was read two rounds ago. Lines are 64 elements long, along the sum or across it, as
they lie in memory; a panel with more positions across has blocks of 64, one after another.

Groups that run at the same time read the same rows and columns if they are `abreast`: that many
rows of groups are walked column by column.

Invariant: every sum adds up the same values, products rounded no more than in f32, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.buffers import along_cut, sums_at
from rune.lowering.build.conditions import less, same
from rune.lowering.build.panels import Panel, fill
from rune.lowering.build.schedule import Stage, Tile, Units
from rune.lowering.build.stage import PanelParts, firsts_in, grid, panel_parts, results, sum_name, sums_of
from rune.lowering.build.tile import axis_of
from rune.lowering.build.units import Subgroups
from rune.lowering.codegen.target import Target
from rune.lowering.kernel import matrices
from rune.lowering.kernel.nodes import Barrier, Factor, For, If, Kind, MatrixProduct, Stmt, Store
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernels import Axis, Kernel, positions
from rune.records import dataclass

LINE = matrices.TEAM_DEPTH  # elements of a line of a panel
LEAST_BUFFERS = 4  # one is read, one may still be read, one is filled, and one is ready
_THREADS = matrices.TEAM * matrices.SUBGROUP


@dataclass(frozen=True, slots=True)
class Teams(Subgroups):
    """Teams of four subgroups, each with a tile; `stage` counts them along rows and columns.

    number: the point of the grid at which they are, if they take several in turn
    """

    units: Units
    number: Size | None = None

    @property
    def together(self) -> int:
        """Subgroups of a team."""
        return matrices.TEAM

    @property
    def domain(self) -> list[Axis]:
        """The axes of the grid; the axis of groups that are abreast is the innermost."""
        plain, abreast = grid(self), self.units.abreast
        if abreast == 1:
            return plain
        row = axis_of(plain, self.tile.row_axis)
        others = [a for a in plain[:-1] if a is not row]
        # legal.py lets groups be abreast only if they divide a known number of rows of groups.
        assert isinstance(row.size, int)
        block = Axis(f"{row.name}_block", row.size // abreast)
        return [*others, block, plain[-1], Axis(row.name, abreast)]

    def firsts(self) -> tuple[Size, Size]:
        """The first row and column of the group."""
        row, column = firsts_in(self.domain, self)
        if self.units.abreast != 1:
            block = axis_of(self.domain, f"{self.tile.row_axis}_block").symbol
            row = block * (self.units.abreast * self.lengths[0]) + row
        return _substituted(row, self.point), _substituted(column, self.point)

    @property
    def point(self) -> dict[str, Size]:
        """The position on each axis of the grid, computed from `number`; empty without one."""
        return {} if self.number is None else positions(self.number, self.domain)[0]

    @property
    def others(self) -> dict[str, Size]:
        """The positions on axes other than those of rows and columns."""
        names = {a.name for a in self.kernel.domain} - {a.name for a in self.axes}
        return {name: at for name, at in self.point.items() if name in names}

    def at(self, r: int, c: int) -> dict[str, Size]:
        """The axes of the domain at a point of a thread."""
        return {**self.others, **Subgroups.at(self, r, c)}


def _substituted(x: Size, at: Mapping[str, Size]) -> Size:
    return dims.substitute(x, at) if isinstance(x, Dim) else x


@dataclass(frozen=True, slots=True)
class Lines(Panel):
    """A panel of lines of 64 elements; across the sum it has 64 of the group's positions."""

    group_length: int = 0

    @property
    def reach(self) -> int:
        """Positions of the whole tile of the group."""
        return self.group_length

    @property
    def strides(self) -> tuple[int, int]:
        """From one position to the next, and from one depth to the next."""
        return (LINE, 1) if self.is_along_sum else (1, LINE)


@dataclass(frozen=True, slots=True)
class Operand:
    """What a group reads of one operand in a round: one panel, or several one after another."""

    panel: Lines
    count: int

    @property
    def size(self) -> int:
        """Elements of a round."""
        return self.count * self.panel.alloc.size

    @property
    def block_stride(self) -> int:
        """The distance from 64 positions to the next 64; 0 if all are lines of one panel."""
        return 0 if self.panel.is_along_sum else self.panel.alloc.size

    def offset(self, number: Size, buffers: int) -> Size:
        """Where the memory of a round begins."""
        return number % buffers * self.size


def has_teams(dtype: np.dtype | None, target: Target) -> bool:
    """Whether four subgroups of a target multiply factors of a dtype together."""
    return ("multiply_together", dtype) in target.native


def team_operands(group: Teams) -> list[Operand]:
    """The operands that a round reads; panels may reach beyond the end of the sum."""
    _, cut, _ = group.sums
    return [_operand(parts, cut.size) for parts in panel_parts(group, group.stage.depth)]


def _operand(parts: PanelParts, end: Size) -> Operand:
    *_, length, _ = parts
    panel = Lines(*parts, end, is_as_read=True, is_fetched=True, group_length=length)
    if panel.is_along_sum:
        return Operand(panel, 1)
    # The units step from one block of 64 positions to the next by a single stride.
    return Operand(replace(panel, length=LINE), length // LINE)


def team_bytes(group: Teams) -> int:
    """The shared memory of a group."""
    return sum(group.units.buffers * o.size * o.panel.load.dtype.itemsize for o in team_operands(group))


def is_fetched(group: Teams) -> bool:
    """Whether all that a group reads is copied without passing through registers."""
    filling = (s for operand in team_operands(group) for s in walk(_round_of(group, operand, 0, "")))
    # What cannot be fetched is loaded and stored (panels.py).
    return not any(isinstance(s, Store) for s in filling)


def multiplied_together(
    kernel: Kernel, tile: Tile, stage: Stage, units: Units, output_dtypes: Mapping[str, np.dtype]
) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what a group does at one of its points.

    output_dtypes: one for each output
    """
    group = Teams(kernel, tile, stage, units)
    read = team_operands(group)
    memory = [replace(o.panel.alloc, size=units.buffers * o.size) for o in read]
    grid, inside = group.domain, [*sums_of(group), *_rounds(group, read), Barrier(), *results(group, output_dtypes)]
    if units.groups:
        grid, inside = [Axis("group", units.groups)], list(_in_turn(group, read, output_dtypes))
    return grid, [*memory, For("thread", group.threads, Kind.WORKGROUP, tuple(inside))]


# --- what a thread does -------------------------------------------------------------------------


def _rounds(group: Teams, read: Sequence[Operand]) -> Iterator[Stmt]:
    """All rounds along the axis that is cut, for each point of the axes before it, as one loop."""
    number = Axis("round", _count(group))
    # Of the buffers, one is read, and one may still be read by the products of the round before.
    lead = group.units.buffers - 2
    for first in range(lead):
        if first:
            yield Barrier(in_flight=lead)
        yield from _filled(group, read, first, f"_{first}") if first < _count(group) else ()
    following = number.symbol + lead
    more = tuple(_filled(group, read, following, ""))
    body = (Barrier(in_flight=lead - 1), _product(group, read, number.symbol), If(less(following, number.size), more))
    yield For(number.name, number.size, Kind.SERIAL, body)


def _in_turn(group: Teams, read: Sequence[Operand], output_dtypes: Mapping[str, np.dtype]) -> Iterator[Stmt]:
    """All tiles of a group; the first rounds of the next tile are fetched before one is stored."""
    lead, count, tiles = group.units.buffers - 2, _count(group), prod(int(str(a.size)) for a in group.domain)
    first = Axis("group", group.units.groups).symbol
    tile = Axis("tile", (tiles - first + group.units.groups - 1) // group.units.groups)
    number = Axis("round", count)

    def filled(of_all: Size, name: str) -> If:
        # Rounds are numbered through all tiles of a group, so fetches run on into the next tile.
        at = first + of_all // count * group.units.groups
        return If(less(at, tiles), tuple(_filled(replace(group, number=at), read, of_all, name)))

    for k in range(lead):
        if k:
            yield Barrier(in_flight=lead)
        yield filled(k, f"_{k}")
    of_all = tile.symbol * count + number.symbol
    body = (Barrier(in_flight=lead - 1), _product(group, read, of_all), filled(of_all + lead, ""))
    rounds = For(number.name, count, Kind.SERIAL, body)
    at = replace(group, number=first + tile.symbol * group.units.groups)
    inside = (*sums_of(group), rounds, Barrier(in_flight=lead, waits_for_products=True), *results(at, output_dtypes))
    yield For(tile.name, tile.size, Kind.SERIAL, inside)


def _count(group: Teams) -> int:
    """Rounds of a tile."""
    return prod(int(str(a.size)) for a in group.sums[0]) * along_cut(group)


def _filled(group: Teams, read: Sequence[Operand], number: Size, name: str) -> list[Stmt]:
    """The fetches of one round, by one team: teams take turns.

    So a thread that waits for its fetches has no later ones in flight.
    """
    body = tuple(_fills(group, read, number, name))
    teams = group.threads // _THREADS
    return [If(same(group.thread // _THREADS, number % teams), body)] if teams > 1 else list(body)


def _fills(group: Teams, read: Sequence[Operand], number: Size, name: str) -> Iterator[Stmt]:
    for operand in read:
        yield from _round_of(group, operand, number, name)


def _round_of(group: Teams, operand: Operand, number: Size, name: str) -> Iterator[Stmt]:
    """The fetches of one round for one operand."""
    of_tile = number % _count(group) if group.number is not None else number
    places = zip((a.name for a in group.axes), group.firsts())
    origin = {**group.others, **dict(places), **sums_at(group, of_tile)}
    panel, begin = operand.panel, operand.offset(number, group.units.buffers)
    for k in range(operand.count):
        at = {**origin, panel.axis.name: origin[panel.axis.name] + k * LINE}
        place = begin + k * panel.alloc.size
        yield from fill(panel, group.thread % _THREADS, _THREADS, at, place, f"{name}_{k}")


def _product(group: Teams, read: Sequence[Operand], number: Size) -> MatrixProduct:
    """The product of one round."""
    by_axis = {o.panel.axis.name: o for o in read}
    sides = zip(group.axes, group.numbers, (group.tile.rows, group.tile.columns))
    a, b = (_factor(by_axis[axis.name], n, length, number, group.units.buffers) for axis, n, length in sides)
    sums = (tuple(f"{sum_name(group, r, c)}_acc" for c in range(group.columns)) for r in range(group.rows))
    return MatrixProduct(a, b, tuple(sums), matrices.TEAM)


def _factor(operand: Operand, team: Size, length: int, number: Size, buffers: int) -> Factor:
    panel, block = operand.panel, operand.block_stride
    first = team * (length // LINE * block if block else length * LINE)
    index = first + operand.offset(number, buffers)
    return Factor(panel.name, index, *panel.strides, panel.load.dtype, block)


__all__ = ["LEAST_BUFFERS", "LINE", "Teams", "has_teams", "is_fetched", "multiplied_together", "team_bytes"]
__all__ += ["team_operands"]
