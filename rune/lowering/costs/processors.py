"""How the code of a processor runs a kernel: loops in lanes, and squares of what is transposed.

Before   for i { for j { y[i, j] = x[j, i] } }              the kernel
After    for i by W { for j by W { t = W rows of x;
           for r in W { y[i + r, j in lanes] = t[.., r] } } }     with vectors of W lanes

Rows and columns beside whole squares are left out.
"""

from __future__ import annotations

from dataclasses import replace

from rune.dims import Size
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr, Load
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Param, Stmt, Store
from rune.lowering.kernel.rewrite import Body, all_names, loop_symbol, map_exprs, perfect_nest, replace_symbols, reserve
from rune.lowering.lanes.layout import layout
from rune.lowering.lanes.transposed import Transposition
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Lanes:
    """A kernel in lanes.

    loops: those in lanes, by identity;  count: lanes of a register
    registers: of a vector
    """

    code: KernelCode
    loops: frozenset[int]
    count: int
    registers: int


def in_lanes(code: KernelCode, target: Target) -> Lanes:
    """The kernel as our renderer runs it (lanes/layout.py); other compilers know no squares."""
    choice = layout(code, max(1, target.vector_bytes))
    # Indices of conditions count there, and make vectors narrower: what is stored decides how many
    # registers they take.
    widest = max((p.dtype.itemsize for p in code.params), default=4)
    count = max(1, min(choice.lanes, target.vector_bytes // widest))
    registers = max(1, choice.lanes // count)
    if choice.transposition is None or target.language != "llvm":
        return Lanes(code, choice.loops, count, registers)
    squares, loops = _in_squares(code, choice.transposition, count)
    return Lanes(squares, loops, count, registers)


def _in_squares(code: KernelCode, transposition: Transposition, width: int) -> tuple[KernelCode, frozenset[int]]:
    """The kernel in whole squares, and its loops in lanes."""
    names = all_names(code)
    last, axis = transposition.last, transposition.axis
    down, along = (_over(loop, f"{loop.var}_square", width, names) for loop in (axis, last))
    row, line, lane = (For(reserve(name, names), width, Kind.SERIAL, ()) for name in ("row", "line", "lane"))
    first = {loop.var: width * loop_symbol(outer) for loop, outer in ((axis, down), (last, along))}
    lanes: list[For] = []

    def each(*body: Stmt) -> For:
        lanes.append(replace(lane, body=body))
        return lanes[-1]

    squares = {
        load: Param(reserve("square", names), load.dtype, width * width, Access.WRITE) for load in transposition.loads
    }
    fills: list[Stmt] = []
    for load, square in squares.items():
        # A row of neighbours along the other axis, for each lane of the last one.
        places = {last.var: first[last.var] + loop_symbol(line), axis.var: first[axis.var] + loop_symbol(lane)}
        copy = Store(square.name, width * loop_symbol(line) + loop_symbol(lane), load)
        fills.append(replace(line, body=(each(*replace_symbols((copy,), places)),)))
    column = width * loop_symbol(lane) + loop_symbol(row)
    body = map_exprs(lambda part: _from_square(part, squares, column), last.body)
    places = {last.var: first[last.var] + loop_symbol(lane), axis.var: first[axis.var] + loop_symbol(row)}
    rows = replace(row, body=(each(*replace_symbols(body, places)),))
    nest: Body = (replace(down, body=(replace(along, body=(*fills, rows)),)),)
    grid, _ = perfect_nest(code.body, Kind.GRID)
    for loop in reversed(transposition.others(grid)):
        nest = (replace(loop, body=nest),)
    return replace(code, params=(*code.params, *squares.values()), body=nest), frozenset(map(id, lanes))


def _over(loop: For, name: str, width: int, names: set[str]) -> For:
    extent: Size = (loop.extent + (width - 1)) // width
    return For(reserve(name, names), extent, loop.kind, ())


def _from_square(part: Expr, squares: dict[Load, Param], column: Size) -> Expr:
    square = squares.get(part) if isinstance(part, Load) else None
    return part if square is None else replace(part, buffer=square.name, indices=(column,))


__all__ = ["Lanes", "in_lanes"]
