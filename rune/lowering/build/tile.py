"""Tile dots: one point of the domain computes several rows, which share what they read.

Before   for m in 64, n in 48: s = sum k: a[m, k] * b[k, n]
After    for m in 8, n in 48: s_0 = sum k: a[8*m, k] * b[k, n];  s_1 = sum k: a[8*m + 1, k] ...

The sums stand side by side and become one loop, in which b[k, n] is read once. Where the number
of rows leaves a remainder, the last point takes its rows one by one.

Invariant: every row is computed as before, in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.flatten import map_sizes, map_statement
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import map_expr, rename_size, walk_expr
from rune.lowering.kernels import Axis, Kernel, Reduce, Statement, Write, expressions


@dataclass(frozen=True, slots=True)
class Tile:
    """The axis of the domain that is divided, and the rows of one point."""

    axis: int
    rows: int


def dot_axis(kernel: Kernel) -> int | None:
    """The domain axis whose points share loads of a dot, if the kernel is one.

    The last axis stays whole: its neighbours read neighbours.
    """
    dots = [s for s in kernel.body if isinstance(s, Reduce) and s.contract]
    simple = all(isinstance(s, Let | Reduce) or _is_plain_write(s) for s in kernel.body)
    if len(dots) != 1 or not simple:
        return None
    loads = [e.indices[0] for x in expressions(dots[0]) for e in walk_expr(x) if isinstance(e, Load)]
    for k in range(len(kernel.domain) - 2, -1, -1):
        depends = [_mentions(x, kernel.domain[k].name) for x in loads]
        # A load that does not depend on the axis is the same for all its rows: that is what a tile
        # shares.
        if any(depends) and not all(depends):
            return k
    return None


def _is_plain_write(statement: Statement) -> bool:
    return isinstance(statement, Write) and not statement.axes and statement.condition is None


def _mentions(x: Size, name: str) -> bool:
    return isinstance(x, Dim) and any(s.name == name for s in dims.symbols(x))


def rows_dividing(size: Size, wanted: int) -> int:
    """The greatest number of rows, at most `wanted`, that leaves little or no remainder."""
    if not isinstance(size, int):
        return wanted
    exact = [r for r in range(wanted, 1, -1) if size % r == 0]
    # A divisor needs no code for leftover rows, which is worth up to half the tile.
    if exact and exact[0] * 2 >= wanted:
        return exact[0]
    return wanted if size >= 2 * wanted else (exact[0] if exact else 1)


def tiled_axis(kernel: Kernel, tile: Tile) -> Axis:
    """The axis of the tiles."""
    axis = kernel.domain[tile.axis]
    return Axis(axis.name, -(-axis.size // tile.rows))


def tile_body(kernel: Kernel, tile: Tile) -> tuple[Statement, ...]:
    """The statements of a whole tile: those of each row, kind by kind."""
    outer = tiled_axis(kernel, tile).symbol
    name = kernel.domain[tile.axis].name
    rows = [copy_body(kernel, name, outer * tile.rows + r, f"_{r}") for r in range(tile.rows)]
    # Equal statements of all rows side by side, so that loops.py can put them into one nest.
    return tuple(statement for same in zip(*rows) for statement in same)


def copy_body(kernel: Kernel, axis: str, at: Size, suffix: str) -> tuple[Statement, ...]:
    """The statements with `axis` at another position, and every local named apart."""
    names = {name: name + suffix for s in kernel.body for name in _bound(s)}
    return place_body(kernel.body, {axis: at}, names)


def _bound(statement: Statement) -> tuple[str, ...]:
    names = (statement.name,) if isinstance(statement, Let | Reduce) else ()
    return names if isinstance(statement, Let) else (*names, *(let.name for let in statement.lets))


def place_body(
    body: tuple[Statement, ...], at: Mapping[str, Size], names: Mapping[str, str] | None = None
) -> tuple[Statement, ...]:
    """The statements with some axes at other positions, and locals renamed."""
    return tuple(_place(s, at, names or {}) for s in body)


def _place(statement: Statement, at: Mapping[str, Size], names: Mapping[str, str]) -> Statement:
    def on_node(expr: Expr) -> Expr:
        if not isinstance(expr, Local) or expr.name not in names:
            return expr
        return Local(names[expr.name], expr.dtype)

    def on_size(x: Size) -> Size:
        # Looked at first, as most index expressions do not mention the axis.
        placed = dims.substitute(x, at) if any(_mentions(x, name) for name in at) else x
        return rename_size(placed, names) if names else placed

    placed_statement = map_statement(map_sizes(statement, on_size), lambda e: map_expr(on_node, e))
    if isinstance(placed_statement, Let):
        return replace(placed_statement, name=names.get(placed_statement.name, placed_statement.name))
    lets = tuple(Let(names.get(let.name, let.name), let.value) for let in placed_statement.lets)
    placed_statement = replace(placed_statement, lets=lets)
    if isinstance(placed_statement, Reduce):
        return replace(placed_statement, name=names.get(placed_statement.name, placed_statement.name))
    return placed_statement
