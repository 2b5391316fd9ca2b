"""Render kernel code as LLVM IR: one function for each kernel, over a range of its grid.

    void @name(ptr ..., i64 sizes..., i64 begin, i64 end)

`begin..end` counts rows, the grid points without the last axis, or single points where the last
axis is long or the only one. So a caller can split a kernel over cores wherever it likes. Loops
run in vector lanes as llvm_lanes chooses; everything is written out explicitly, hence LLVM's own
loop vectoriser is not needed, no fast-math flag is set, and the order of every sum is known.

Invariant: the result does not depend on how the range was split.
Not done:  workgroups with barriers (a workgroup is one thread here).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rune.dims import Size, product
from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.functions import FUNCTIONS
from rune.lowering.codegen.llvm.lanes import choose, instructions, reads_any, trip_count
from rune.lowering.codegen.llvm.names import identifier
from rune.lowering.codegen.llvm.text import Value, Writer
from rune.lowering.codegen.llvm.tiles import Transposed, find_transposed, tile_range, unfold
from rune.lowering.codegen.llvm.types import register_type, require_supported
from rune.lowering.codegen.llvm.values import Env, Memory
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernel.expr import Cast, Const, Expr, Op
from rune.lowering.kernel.nodes import Alloc, For, KernelCode, Kind, Let, Stmt
from rune.lowering.kernel.rewrite import expressions, names_assigned, perfect_nest, size_names, walk, walk_expr
from rune.records import dataclass

# The most registers that one vector takes, where loops run inside lanes.
MOST_REGISTERS = 4
MOST_COPIES = 8  # of one mathematical function in a kernel, before it is called
CHEAP = 24.0  # instructions of a loop body so small that several copies fit the registers
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
    lanes = _lanes(code, machine)
    aliases = frozenset(name for pair in code.aliases for name in pair)
    choice = choose(code.body, lanes, aliases, frozenset(code.ordered))
    # Tiles need their last axis in lanes, so they overrule the choice by cost.
    transposed = find_transposed(code, *perfect_nest(code.body, Kind.GRID))
    if transposed is not None and transposed.last.var in code.ordered:
        transposed = None
    if transposed is not None:
        choice = replace(choice, loops=frozenset({id(transposed.last)}))
    # After the choice of loops, whose costs are those of single registers.
    lanes = _whole(code, choice.loops, lanes) * _registers(code, choice.loops, lanes)
    writer = Writer(scalef=machine.scalef, called=_used_often(parts))
    env, parameters = _parameters(writer, code)
    body = Body(writer, machine.masked, lanes, choice.loops)
    extent, grain = _emit_range(body, code, transposed, env)
    # The cost is that of the whole grid, and callers want it per unit.
    units = trip_count(extent)
    text = _function(code.name, parameters, writer)
    return Rendered(code.name, text, frozenset(writer.declared), extent, choice.cost / units, grain)


def _lanes(code: KernelCode, machine: Machine) -> int:
    """As many lanes as the widest value that is computed fits in one register.

    A number that is one for all lanes, as the length of a loop is, does not count.
    """
    uniform = _uniform_names(code.body)
    varying = (s for s in walk(code.body) if not (isinstance(s, Let) and s.name in uniform))
    parts = (part for s in varying for e in expressions(s) for part in walk_expr(e))
    widest = max([1, *(p.dtype.itemsize for p in code.params)])
    for stmt in walk(code.body):
        if isinstance(stmt, Alloc):
            widest = max(widest, stmt.dtype.itemsize)
    for dtype in {part.dtype for part in parts if isinstance(part, (Op, Cast, Const))}:
        bits = register_type(dtype)
        widest = max(widest, {"double": 8, "i64": 8, "float": 4}.get(bits, 1), dtype.itemsize)
    # At least 2, since a vector type of one lane is of no use.
    return max(2, machine.vector_bytes // widest)


def _uniform_names(body: Sequence[Stmt]) -> set[str]:
    """Lengths of loops, and what is computed from no loop's variable."""
    varying = {s.var for s in walk(body) if isinstance(s, For)} | {*names_assigned(body)}
    lengths, uniform = set[str](), set[str]()
    for stmt in walk(body):
        if isinstance(stmt, For):
            lengths |= size_names(stmt.extent)
        elif isinstance(stmt, Let) and reads_any(stmt.value, varying):
            varying.add(stmt.name)
        elif isinstance(stmt, Let):
            uniform.add(stmt.name)
    return lengths | uniform


def _used_often(parts: Sequence[Expr]) -> frozenset[str]:
    """The mathematical functions that the kernel would contain very many copies of."""
    uses = Counter(part.name for part in parts if isinstance(part, Op))
    return frozenset(name for name in FUNCTIONS if uses[name] > MOST_COPIES)


def _whole(code: KernelCode, chosen: frozenset[int], lanes: int) -> int:
    """As few lanes as the chosen loops fill.

    What is written without a mask is there at once for the next kernel that reads it.
    """
    extents = [s.extent for s in walk(code.body) if isinstance(s, For) and id(s) in chosen]
    longest = max((d if isinstance(d, int) else lanes for d in extents), default=lanes)
    return max(2, min(lanes, 1 << (longest - 1).bit_length())) if longest > 0 else lanes


def _registers(code: KernelCode, chosen: frozenset[int], lanes: int) -> int:
    """How many registers side by side one vector takes: several where loops run inside lanes.

    A sum down the columns then reads whole cache lines in a row, and its additions overlap.
    Always a power of two: lanes are added up by halves, and tails are counted by masks of bits.
    """
    around = [s for s in walk(code.body) if isinstance(s, For) and id(s) in chosen]
    if not around or not all(_holds_cheap_loop(loop) for loop in around):
        return 1
    shortest = min(trip_count(loop.extent) for loop in around)
    most = max(1, min(MOST_REGISTERS, shortest // lanes))
    return 1 << (most.bit_length() - 1)


def _holds_cheap_loop(loop: For) -> bool:
    """Whether loops inside are cheap, and are most of the work."""
    inner = [s for s in walk(loop.body) if isinstance(s, For)]
    work = _work(s for outer in inner for s in walk(outer.body))
    rounds = max((trip_count(s.extent) for s in inner), default=0)
    around = _work(walk(loop.body)) - work
    return bool(inner) and work <= CHEAP and (around <= CHEAP or around <= work * rounds)


def _work(body: Iterable[Stmt]) -> float:
    return sum(instructions(e) for s in body for e in expressions(s))


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
