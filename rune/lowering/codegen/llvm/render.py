"""Render kernel code as LLVM IR: one function for each kernel, over a range of its grid.

    void @name(ptr ..., i64 sizes..., i64 begin, i64 end)

`begin..end` counts rows, the grid points without the last axis, or single points where the last
axis is long or the only one. So a caller can split a kernel over cores wherever it likes. Loops
run in vector lanes as lowering/lanes decides, and all of that is written out: LLVM's own loop
vectoriser is not needed, no fast-math flag is set, and the order of every sum is known.

Invariant: the result does not depend on how the range was split.
Not done:  workgroups with barriers (a workgroup is one thread here).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rune.dims import Size, product
from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.functions import FUNCTIONS
from rune.lowering.codegen.llvm.names import identifier
from rune.lowering.codegen.llvm.text import Value, Writer
from rune.lowering.codegen.llvm.tiles import tile_range, unfold
from rune.lowering.codegen.llvm.types import require_supported
from rune.lowering.codegen.llvm.values import Env, Memory
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernel.expr import Expr, Op
from rune.lowering.kernel.nodes import For, KernelCode, Kind
from rune.lowering.kernel.rewrite import expressions, perfect_nest, walk, walk_expr
from rune.lowering.lanes.choose import trip_count
from rune.lowering.lanes.layout import layout
from rune.lowering.lanes.transposed import Transposed
from rune.records import dataclass

MOST_COPIES = 8  # of one mathematical function in a kernel, before it is called
LONG_AXIS = 2048  # points of the last axis from which it may be split between cores


@dataclass(frozen=True, slots=True)
class Rendered:
    """A kernel as text. `range` many units may be split; one takes about `unit_cost` instructions.

    Chunk borders should be multiples of `grain`.
    """

    name: str
    text: str
    declarations: frozenset[str]
    range: Size
    unit_cost: float
    grain: int


def render(code: KernelCode, machine: Machine) -> Rendered:
    """The IR of one kernel.

    Errors: CompileError for a dtype, operation or barrier that the cpu does not have.
    """
    for param in code.params:
        require_supported(param.dtype)
    parts = [part for s in walk(code.body) for e in expressions(s) for part in walk_expr(e)]
    lanes = layout(code, machine.vector_bytes)
    writer = Writer(scalef=machine.scalef, called=_used_often(parts))
    env, parameters = _parameters(writer, code)
    body = Body(writer, machine.masked, lanes.lanes, lanes.loops)
    extent, grain = _emit_range(body, code, lanes.transposed, env)
    # The cost is that of the whole grid, and callers want it per unit.
    units = trip_count(extent)
    text = _function(code.name, parameters, writer)
    return Rendered(code.name, text, frozenset(writer.declared), extent, lanes.cost / units, grain)


def _used_often(parts: Sequence[Expr]) -> frozenset[str]:
    """The mathematical functions that the kernel would contain very many copies of."""
    uses = Counter(part.name for part in parts if isinstance(part, Op))
    return frozenset(name for name in FUNCTIONS if uses[name] > MOST_COPIES)


def _parameters(writer: Writer, code: KernelCode) -> tuple[Env, str]:
    """The names that parameters bind, and their declaration."""
    shared = {name for pair in code.aliases for name in pair}
    memory = {}
    listed = []
    for k, param in enumerate(code.params):
        memory[param.name] = Memory(Value(writer, "ptr", f"%p{k}"), param.dtype)
        # `noalias` promises LLVM that nothing else points there.
        listed.append(f"ptr {'' if param.name in shared else 'noalias '}%p{k}")
    symbols = {n: Value(writer, "i64", f"%n{k}") for k, n in enumerate(code.sizes)}
    listed += [f"i64 {v.text}" for v in symbols.values()]
    return Env(memory=memory, symbols=symbols), ", ".join([*listed, "i64 %begin", "i64 %end"])


def _function(name: str, parameters: str, writer: Writer) -> str:
    lines = [
        f"define void @{identifier(name)}({parameters}) #0 {{",
        "entry:",
        *writer.entry,
        # Allocas go into the entry block, which must not be a loop's target.
        "  br label %start",
        "start:",
        *writer.lines,
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _emit_range(body: Body, code: KernelCode, transposed: Transposed | None, env: Env) -> tuple[Size, int]:
    """Write the grid over begin..end; the result is how long that range is, and its grain."""
    writer, (grid, inner) = body.writer, perfect_nest(code.body, Kind.GRID)
    writer.block = "start"
    begin, end = Value(writer, "i64", "%begin"), Value(writer, "i64", "%end")
    if not grid:
        body.run(inner, env)
        return 1, 1
    last = grid[-1]
    if len(grid) == 1:
        body.span(last, begin, end, env)
        return last.extent, body.lanes
    if transposed is not None:
        others = tile_range(body, grid, transposed, (begin, end), env)
        # A row of tiles is as wide as the last axis, so only the other axis counts tiles.
        tiles = (transposed.axis.extent + (body.lanes - 1)) // body.lanes
        return product(loop.extent for loop in others) * tiles, 1
    if isinstance(last.extent, int) and last.extent < LONG_AXIS:
        _rows(body, grid, begin, end, env)
        return product(loop.extent for loop in grid[:-1]), 1
    _points(body, grid, begin, end, env)
    return product(loop.extent for loop in grid), body.lanes


def _rows(body: Body, grid: Sequence[For], begin: Value, end: Value, env: Env) -> None:
    def row(number: Value) -> None:
        body.loop(grid[-1], _at_row(body, grid[:-1], number, env))

    body.writer.count_up(begin, end, 1, row)


def _points(body: Body, grid: Sequence[For], begin: Value, end: Value, env: Env) -> None:
    """Rows, the first and the last of them possibly partial."""
    writer = body.writer
    length = body.index(grid[-1].extent, env)

    def row(number: Value) -> None:
        start = number * length
        # Only the first row begins past 0, and only the last ends early; both bounds cost less than
        # a branch.
        low = writer.call("i64", "@llvm.smax.i64", begin - start, begin.like(0))
        high = writer.call("i64", "@llvm.smin.i64", end - start, length)
        body.span(grid[-1], low, high, _at_row(body, grid[:-1], number, env))

    # An empty axis would divide by 0, although the loop below then runs no rows.
    filled = writer.call("i64", "@llvm.smax.i64", length, length.like(1))
    first = begin.binary("udiv", begin, filled)
    behind = (end + filled - 1).binary("udiv", end + filled - 1, filled)
    writer.count_up(first, behind, 1, row)


def _at_row(body: Body, loops: Sequence[For], number: Value, env: Env) -> Env:
    """The loop variables of the row with this number in row-major order."""
    symbols = dict(env.symbols)
    # The outermost variable needs no remainder: what is left after the divisions is it.
    symbols[loops[0].var] = unfold(body, loops[1:], number, env, symbols)
    return replace(env, symbols=symbols)
