"""Render kernel code as LLVM IR: one function for each kernel, over a range of its grid.

    void @name(ptr ..., i64 sizes..., i64 begin, i64 end)

What `begin..end` counts (lanes/layout.py) is such that a caller can split a kernel over cores
wherever it likes. Loops run in vector lanes as lowering/lanes decides, and all of that is written
out: LLVM's own loop vectoriser is not needed, no fast-math flag is set, and the order of every sum
is known.

Invariant: the result does not depend on how the range was split.
Not done:  workgroups with barriers (a workgroup is one thread here).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rune.dims import Size
from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.functions import FUNCTIONS
from rune.lowering.codegen.llvm.ir.memory import Memory
from rune.lowering.codegen.llvm.ir.names import identifier
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.ir.types import require_supported
from rune.lowering.codegen.llvm.tiles import tile_range
from rune.lowering.codegen.llvm.tiny.body import body_of
from rune.lowering.codegen.llvm.values import Env
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernel.expr import Expr, Op
from rune.lowering.kernel.nodes import For, KernelCode, Kind
from rune.lowering.kernel.rewrite import expressions, perfect_nest, walk, walk_expr
from rune.lowering.lanes.layout import Layout, Unit, layout
from rune.records import dataclass

MOST_COPIES = 8  # of one mathematical function in a kernel, before it is called


@dataclass(frozen=True, slots=True)
class Rendered:
    """A kernel as text. `range` many units may be split; one takes about `unit_cost` instructions.

    Chunk borders should be multiples of `grain`. Equal parts of the grid's leading axes are equal
    parts of the range, if `outer` is a multiple of their number.
    """

    name: str
    text: str
    declarations: frozenset[str]
    range: Size
    unit_cost: float
    grain: int
    outer: Size


def render(code: KernelCode, machine: Machine) -> Rendered:
    """The IR of one kernel in the lanes of a machine. Errors: those of `render_in`."""
    return render_in(layout(code, machine.vector_bytes), code, machine)


def render_in(lanes: Layout, code: KernelCode, machine: Machine) -> Rendered:
    """The IR of one kernel in these lanes.

    Errors: CompileError for a dtype, operation or barrier that the cpu does not have.
    """
    for param in code.params:
        require_supported(param.dtype)
    parts = [part for s in walk(code.body) for e in expressions(s) for part in walk_expr(e)]
    writer = Writer(scalef=machine.scalef, out_of_line=_used_often(parts), block="start")
    env, parameters = _parameters(writer, code)
    _write(body_of(writer, machine, env, code, lanes), code, lanes)
    writer.do("ret void")
    text = writer.definition(f"void @{identifier(code.name)}({parameters})")
    units, declarations = lanes.division, frozenset(writer.declarations)
    return Rendered(code.name, text, declarations, units.range, lanes.unit_cost, units.grain, units.outer)


def _used_often(parts: Sequence[Expr]) -> frozenset[str]:
    """The mathematical functions that the kernel would contain very many copies of."""
    uses = Counter(part.name for part in parts if isinstance(part, Op))
    return frozenset(name for name in FUNCTIONS if uses[name] > MOST_COPIES)


def _parameters(writer: Writer, code: KernelCode) -> tuple[Env, str]:
    """The names that parameters bind, and their declaration."""
    alias_names = {name for pair in code.aliases for name in pair}
    memory = {p.name: Memory(Value(writer, "ptr", f"%p{k}"), p.dtype) for k, p in enumerate(code.params)}
    symbols = {n: Value(writer, "i64", f"%n{k}") for k, n in enumerate(code.sizes)}
    # `noalias` promises LLVM that nothing else points there.
    parameters = [f"ptr {'' if name in alias_names else 'noalias '}{m.pointer.text}" for name, m in memory.items()]
    parameters += [f"i64 {v.text}" for v in symbols.values()]
    return Env(memory=memory, symbols=symbols), ", ".join([*parameters, "i64 %begin", "i64 %end"])


def _write(body: Body, code: KernelCode, lanes: Layout) -> None:
    """Write the grid over begin..end."""
    grid, inner = perfect_nest(code.body, Kind.GRID)
    begin, end = (Value(body.writer, "i64", name) for name in ("%begin", "%end"))
    match lanes.division.unit:
        case Unit.GRID:
            body.body(inner)
        case Unit.LINE:
            body.span(grid[-1], begin, end)
        case Unit.TILES:
            assert lanes.transposition is not None
            tile_range(body, grid, lanes.transposition, begin, end)
        case Unit.ROW:
            body.writer.count_up(begin, end, 1, lambda row: body.run((grid[-1],), body.at_row(grid[:-1], row)))
        case Unit.POINT:
            _points(body, grid, begin, end)


def _points(body: Body, grid: Sequence[For], begin: Value, end: Value) -> None:
    """Rows, the first and the last of them possibly partial."""
    length = body.index(grid[-1].extent)

    def row(number: Value) -> None:
        start = number * length
        # Only the first row begins past 0, and only the last ends early; both bounds cost less than
        # a branch.
        low, high = (begin - start).call("smax", 0), (end - start).call("smin", length)
        with body.inside(body.at_row(grid[:-1], number)):
            body.span(grid[-1], low, high)

    # An empty axis would divide by 0, although the loop below then runs no rows.
    divisor = length.call("smax", 1)
    first = begin.binary("udiv", divisor)
    end_row = end.ceil_div(divisor)
    body.writer.count_up(first, end_row, 1, row)
