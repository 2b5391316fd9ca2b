"""How many lanes a kernel's vectors have: those of one register, of several, or fewer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rune import dtypes
from rune.lowering.kernel.expr import Cast, Op
from rune.lowering.kernel.nodes import Alloc, For, KernelCode, Let, Stmt
from rune.lowering.kernel.rewrite import expressions, size_names, vars_changed, walk, walk_expr
from rune.lowering.lanes.choose import instructions, reads_any, trip_count

# The most registers that one vector takes, where loops run inside lanes.
MOST_REGISTERS = 4
CHEAP = 24.0  # instructions of a loop body so small that several copies fit the registers


def lanes_of_register(code: KernelCode, vector_bytes: int) -> int:
    """As many lanes as one register has room for values of the widest dtype that is computed.

    A number that all lanes share, such as the length of a loop or a constant, does not count; nor
    does an index, which is computed in 32 bits where they suffice.
    """
    statements = [*walk(code.body)]
    uniform = _uniform_names(statements)
    varying = (s for s in statements if not (isinstance(s, Let) and s.name in uniform))
    parts = (part for s in varying for e in expressions(s) for part in walk_expr(e))
    widest = max([1, *(p.dtype.itemsize for p in code.params)])
    for stmt in statements:
        if isinstance(stmt, Alloc):
            widest = max(widest, stmt.dtype.itemsize)
    for dtype in {part.dtype for part in parts if isinstance(part, (Op, Cast))}:
        # Halves are computed in f32.
        widest = max(widest, dtype.itemsize, 4 if dtype in dtypes.FLOATING else 1)
    # At least 2, since a vector type of one lane is of no use.
    return max(2, vector_bytes // widest)


def _uniform_names(statements: Sequence[Stmt]) -> set[str]:
    """The lengths of loops, and values that depend on no loop variable.

    statements: all of a kernel, each before those inside it
    """
    varying = {s.var for s in statements if isinstance(s, For)}
    varying |= {name for s in statements for name in vars_changed(s)}
    lengths, uniform = set[str](), set[str]()
    for stmt in statements:
        if isinstance(stmt, For):
            lengths |= size_names(stmt.extent)
        elif isinstance(stmt, Let) and reads_any(stmt.value, varying):
            varying.add(stmt.name)
        elif isinstance(stmt, Let):
            uniform.add(stmt.name)
    return lengths | uniform


def lanes_filled(code: KernelCode, lane_loops: frozenset[int], lanes: int) -> int:
    """As few lanes as the chosen loops fill.

    The next kernel can read values at once if they were stored without a mask.
    """
    extents = [s.extent for s in walk(code.body) if isinstance(s, For) and id(s) in lane_loops]
    longest = max((d if isinstance(d, int) else lanes for d in extents), default=lanes)
    return max(2, min(lanes, 1 << (longest - 1).bit_length())) if longest > 0 else lanes


def registers_of_vector(code: KernelCode, lane_loops: frozenset[int], lanes: int) -> int:
    """How many registers side by side one vector takes: several where loops run inside lanes.

    A sum down the columns then reads whole cache lines in a row, and its additions overlap.
    The result is a power of two, because halving sums up lanes, and bit masks count tails.
    """
    around = [s for s in walk(code.body) if isinstance(s, For) and id(s) in lane_loops]
    if not around or not all(_holds_cheap_loop(loop) for loop in around):
        return 1
    shortest = min(trip_count(loop.extent) for loop in around)
    most = max(1, min(MOST_REGISTERS, shortest // lanes))
    return 1 << (most.bit_length() - 1)


def _holds_cheap_loop(loop: For) -> bool:
    """Whether the loops inside are cheap and do most of the work."""
    inner = [s for s in walk(loop.body) if isinstance(s, For)]
    work = _work(s for outer in inner for s in walk(outer.body))
    rounds = max((trip_count(s.extent) for s in inner), default=0)
    around = _work(walk(loop.body)) - work
    return bool(inner) and work <= CHEAP and (around <= CHEAP or around <= work * rounds)


def _work(body: Iterable[Stmt]) -> float:
    return sum(instructions(e) for s in body for e in expressions(s))
