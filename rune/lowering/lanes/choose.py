"""Choose the loops that run in vector lanes, several iterations side by side.

Before   for i in 512 { for j in 64 { acc += a[i, j] } }    every loop one iteration at a time
After    j in lanes of 16                                   or i, where a[j, i] makes it better

A loop may run in lanes if its iterations are independent except for Accumulate: GRID, WORKGROUP and
VECTOR loops declare that, and this module proves it for SERIAL ones. Loops inside it must run for
the same rounds in all lanes. In the grid only the last loop can run in lanes: the renderer walks
the outer ones row by row. On each path through the nest at most one loop is chosen, the one with
the fewest instructions, where a load or store of neighbours counts as one and of scattered elements
as one for each lane:

x[n]     0: all lanes have the same element          x[2*i]     2: whole vectors, lanes pick from
x[i]     1: neighbours, one vector                   x[p]       None: scattered, each by itself

Invariant: the choice changes only the order of Accumulate.
Cost:      linear in the code for each loop, so quadratic in the depth of the nest.
Scratch:   of a few elements inside a vectorised loop, with a copy for each lane, if all lanes
           access the same element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from rune import dims
from rune.dims import Size
from rune.lowering.kernel.expr import Expr, Index, Load, Local, Op, operands
from rune.lowering.kernel.nodes import Accumulate, Alloc, Assign, Barrier, For, If, Kind, Let, Stmt, Store, Var
from rune.lowering.kernel.rewrite import expressions, mentions, names_assigned, names_bound, names_used, walk, walk_expr
from rune.lowering.scalar.table import ROWS
from rune.records import dataclass

UNKNOWN_EXTENT = 256  # iterations assumed of a loop of symbolic extent
LOOP_OVERHEAD = 20.0  # instructions around a vectorised loop: tail, sum over the lanes
KNOWN_OVERHEAD = 2.0  # the same of a loop of known length without sums, whose tail is one mask
# A load and a store of each lane at elements far apart: beside elements one by one, which wait for
# the same cache lines, and beside rows in lanes, which take each line once.
SCATTERED, BESIDE_ROWS = (1.0, 2.0), (8.0, 4.0)
# Elements of scratch that each lane has a copy of: of one array, and of all, on a thread's stack.
MOST_SCRATCH, MOST_SCRATCH_IN_ALL = 64, 1 << 10
WIDEST = 4  # the largest step from lane to lane at which whole vectors cost no more than elements
_INDEPENDENT = frozenset({Kind.GRID, Kind.WORKGROUP, Kind.VECTOR})


@dataclass(frozen=True, slots=True)
class Choice:
    """The loops to vectorise, by identity, and the estimated instructions of the body."""

    loops: frozenset[int]
    cost: float


def choose(
    body: Iterable[Stmt], lanes: int, aliases: frozenset[str] = frozenset(), scalar_loops: frozenset[str] = frozenset()
) -> Choice:
    """Which loops of `body` to run in lanes.

    aliases: parameters that share memory. scalar_loops: names of loops that must not run in lanes
    """
    cost, lane_loops = 0.0, frozenset[int]()
    for stmt in body:
        inner = _statement(stmt, lanes, aliases, scalar_loops)
        cost, lane_loops = cost + inner.cost, lane_loops | inner.loops
    return Choice(lane_loops, cost)


def _statement(stmt: Stmt, lanes: int, aliases: frozenset[str], scalar_loops: frozenset[str]) -> Choice:
    if isinstance(stmt, For):
        return _loop(stmt, lanes, aliases, scalar_loops)
    # Plus one for the store itself.
    direct_cost = sum(instructions(e) for e in expressions(stmt)) + isinstance(stmt, Store)
    if isinstance(stmt, If):
        inner = choose((*stmt.body, *stmt.orelse), lanes, aliases, scalar_loops)
        return Choice(inner.loops, inner.cost + direct_cost)
    return Choice(frozenset(), direct_cost)


def _loop(loop: For, lanes: int, aliases: frozenset[str], scalar_loops: frozenset[str]) -> Choice:
    inside = choose(loop.body, lanes, aliases, scalar_loops)
    trips = trip_count(loop.extent)
    # Plus one for the loop counter.
    best = Choice(inside.loops, trips * (inside.cost + 1))
    if loop.kind is Kind.UNROLLED or loop.var in scalar_loops:
        return best
    varying = varying_names(loop)
    if not _is_independent(loop, varying, aliases):
        return best
    # Rounded up, since a masked tail costs as much as a full vector.
    steps = -(-trips // lanes)
    scattered = BESIDE_ROWS if inside.loops else SCATTERED
    lane_cost = steps * (_cost_in_lanes(loop, varying, lanes, scattered) + 1) + _overhead(loop)
    return Choice(frozenset({id(loop)}), lane_cost) if lane_cost < best.cost else best


def _overhead(loop: For) -> float:
    return LOOP_OVERHEAD if sums_lanes(loop) or not isinstance(loop.extent, int) else KNOWN_OVERHEAD


def sums_lanes(loop: For) -> bool:
    """Whether a loop in lanes sums them up when it ends, in an order that depends on the lanes."""
    return bool(names_assigned(loop.body) - names_bound(loop.body))


def trip_count(extent: Size) -> int:
    """The extent, or a guess if it is symbolic, with UNKNOWN_EXTENT for every size."""
    if isinstance(extent, int):
        return extent
    return max(1, dims.evaluate(extent, {s.name: UNKNOWN_EXTENT for s in dims.symbols(extent)}))


def instructions(expr: Expr) -> float:
    """The cost of evaluating an expression once; shared parts count once."""
    return sum([ROWS[e.name].instructions if type(e) is Op else 1 for e in _distinct(expr)])


def _distinct(expr: Expr) -> Sequence[Expr]:
    """The parts of an expression, each once: the renderer computes shared parts once."""
    parts, visited = [expr], {id(expr)}
    for part in parts:  # grows
        for inner in operands(part):
            if id(inner) not in visited:
                visited.add(id(inner))
                parts.append(inner)
    return parts


def _cost_in_lanes(loop: For, varying: frozenset[str], lanes: int, scattered: tuple[float, float]) -> float:
    total = 0.0
    of_load, of_store = scattered

    def access(index: Size, of_lane: float) -> float:
        is_scattered = step_of(index, loop.var, varying) is None
        return of_lane * lanes if is_scattered else access_cost(index, loop.var, varying, lanes)

    pending: list[tuple[Stmt, int]] = [(s, 1) for s in loop.body]
    while pending:
        stmt, times = pending.pop()
        if isinstance(stmt, For):
            pending += [(s, times * trip_count(stmt.extent)) for s in stmt.body]
            total += times
        elif isinstance(stmt, If):
            pending += [(s, times) for s in (*stmt.body, *stmt.orelse)]
        if isinstance(stmt, Store):
            total += times * access(stmt.index, of_store)
        for part in (part for expr in expressions(stmt) for part in _distinct(expr)):
            if type(part) is Load:
                total += times * access(part.indices[0], of_load)
            elif type(part) is Op:
                total += times * ROWS[part.name].instructions
    return total


# --- accesses ---------------------------------------------------------------------------------


def step_of(index: Size, var: str, varying: frozenset[str]) -> int | None:
    """The step from lane to lane, up to WIDEST; None if it is larger, negative or not constant.

    var: the variable that counts the lanes. varying: the names that differ between them, with `var`
    """
    if not mentions(index, varying):
        return 0
    step = None if mentions(index, varying - {var}) else dims.coefficient(index, var)
    return step if isinstance(step, int) and 0 < step <= WIDEST else None


def access_cost(index: Size, var: str, varying: frozenset[str], lanes: int) -> float:
    """1 if the lanes access one element or neighbours, else 1 for each lane."""
    return 1.0 if step_of(index, var, varying) in (0, 1) else float(lanes)


def varying_names(loop: For) -> frozenset[str]:
    """The loop variable and the locals inside that may differ between the lanes."""
    varying = {loop.var}
    for stmt in walk(loop.body):
        # A Var or scratch is assumed to vary: the values assigned to it are not tracked.
        if type(stmt) is Var or type(stmt) is Alloc:
            varying.add(stmt.name)
        # Lets come in order, so this also finds a Let that reads a varying one.
        elif type(stmt) is Let and reads_any(stmt.value, varying):
            varying.add(stmt.name)
    return frozenset(varying)


def reads_any(expr: Expr, names: Set[str]) -> bool:
    """Whether an expression depends on one of these names, through buffers and indices as well."""
    for part in walk_expr(expr):
        if type(part) is Local:
            if part.name in names:
                return True
        # With the same index all lanes read the same element, but for scratch of their own.
        elif type(part) is Load:
            if part.buffer in names or mentions(part.indices[0], names):
                return True
        elif type(part) is Index and mentions(part.dim, names):
            return True
    return False


# --- legality ---------------------------------------------------------------------------------


def is_vectorisable(loop: For, aliases: frozenset[str] = frozenset()) -> bool:
    """Whether the iterations of the loop may run side by side."""
    return _is_independent(loop, varying_names(loop), aliases)


def _is_independent(loop: For, varying: frozenset[str], aliases: frozenset[str]) -> bool:
    inside = list(walk(loop.body))
    scratch = {s.name: s.size for s in inside if isinstance(s, Alloc)}
    if any(isinstance(s, Barrier) for s in inside) or not _is_shared_out(scratch, inside, varying):
        return False
    # Cores share the points of the outer GRID loops, which the renderer counts.
    if loop.kind is Kind.GRID and any(isinstance(s, For) and s.kind is Kind.GRID for s in loop.body):
        return False
    # All lanes share one loop counter.
    if any(isinstance(s, For) and mentions(s.extent, varying) for s in inside):
        return False
    # All lanes would write the same element, and the last iteration must win.
    if any(isinstance(s, Store) and s.buffer not in scratch and not mentions(s.index, varying) for s in inside):
        return False
    if not _reductions_only(loop, inside):
        return False
    return loop.kind in _INDEPENDENT or _stores_apart(loop, inside, varying - {loop.var}, aliases)


def _is_shared_out(scratch: Mapping[str, Size], inside: list[Stmt], varying: frozenset[str]) -> bool:
    """Whether each lane may have scratch of its own: it is small, and lanes access one element."""
    sizes = [size for size in scratch.values() if isinstance(size, int) and size <= MOST_SCRATCH]
    if len(sizes) < len(scratch) or sum(sizes) > MOST_SCRATCH_IN_ALL:
        return False
    return not any(mentions(i, varying) for name in scratch for i in _accesses(inside, name, frozenset()))


def _reductions_only(loop: For, inside: list[Stmt]) -> bool:
    """Whether Vars from outside are only accumulated, each by one operation, and not read."""
    outer = names_assigned(loop.body) - names_bound(loop.body)
    combines: dict[str, str] = {}
    for stmt in inside:
        if isinstance(stmt, Assign) and stmt.name in outer:
            return False
        if isinstance(stmt, Accumulate) and stmt.name in outer:
            if combines.setdefault(stmt.name, stmt.combine) != stmt.combine:
                return False
    return not outer & names_used(loop.body)


def _stores_apart(loop: For, inside: list[Stmt], others: frozenset[str], aliases: frozenset[str]) -> bool:
    """Whether each iteration stores to elements of its own and reads no other iteration's.

    others: the names that differ between lanes, without the loop's variable
    """
    store_indices = {s.buffer: s.index for s in loop.body if isinstance(s, Store)}
    if any(isinstance(s, Store) and s.buffer not in store_indices for s in inside):
        return False  # inside a nested statement, or to a buffer of another statement
    for buffer, index in store_indices.items():
        step = dims.coefficient(index, loop.var)
        # With another varying name in the index, two lanes could store to the same element.
        if not isinstance(step, int) or step == 0 or mentions(index, others):
            return False
        if any(i is not index and i != index for i in _accesses(inside, buffer, aliases)):
            return False
    return True


def _accesses(inside: list[Stmt], buffer: str, aliases: frozenset[str]) -> Iterator[Size]:
    # All aliases are treated as one memory, which errs on the safe side.
    same = aliases if buffer in aliases else frozenset({buffer})
    for stmt in inside:
        if isinstance(stmt, Store) and stmt.buffer in same:
            yield stmt.index
        for expr in expressions(stmt):
            for part in walk_expr(expr):
                if isinstance(part, Load) and part.buffer in same:
                    yield part.indices[0]


__all__ = ["Choice", "access_cost", "choose", "instructions", "is_vectorisable", "reads_any", "step_of"]
__all__ += ["sums_lanes", "trip_count", "varying_names"]
