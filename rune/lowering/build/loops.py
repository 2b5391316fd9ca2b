"""Write statements as loops.

Statements over the same inner axes share one loop nest, unless one of them needs a value that
another has only after its loop: two sums over one row, or a scratch row and its sum, take a single
pass. A copy of a scratch row joins it across writes of other elements, such as those of a border;
a row that is read in its own nest alone is a value of each point, and needs no memory.

Every nest is serial except for its innermost loop, whose iterations are independent (VECTOR); the
ordered writes of a scatter are serial throughout, and so is a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.build.collapse import collapse_inner
from rune.lowering.build.flatten import map_statement
from rune.lowering.kernel import nodes
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Cast, Expr, Load, Local, Op, const, of_size
from rune.lowering.kernel.nodes import AddressSpace, Kind, Let, Stmt
from rune.lowering.kernel.rewrite import map_expr, rename, walk_expr
from rune.lowering.kernels import Axis, Fill, Reduce, Scan, Statement, Write, expressions, inner_axes, row_major
from rune.ops.long_sums import OPEN, block_sizes
from rune.records import dataclass, replace

Together = tuple[Statement, ...]


def group(statements: Iterable[Statement]) -> list[Together]:
    """Statements in order, grouped by the loop nest that they share."""
    groups: list[Together] = []
    for statement in statements:
        number = _number_of_nest(groups, statement)
        if number is None:
            groups.append((statement,))
        else:
            groups[number] = (*groups[number], statement)
    return groups


def _number_of_nest(groups: Sequence[Together], statement: Statement) -> int | None:
    """The number of the group that a statement joins; None if there is none."""
    for number in reversed(range(len(groups))):
        if _joins(groups[number], statement):
            return number
        if not _may_pass(groups[number], statement, groups[:number]):
            return None
    return None


def _may_pass(together: Together, statement: Statement, earlier: Iterable[Together]) -> bool:
    """Whether a statement may run before others: they read nothing, and it reads only rows that are
    filled before them.

    Unordered writes change different elements, even of one output.
    """
    if not _is_write(statement) or not all(_is_write(s) and not _reads(s) for s in together):
        return False
    reads = _reads(statement)
    return reads != set() and reads <= {s.name for group in earlier for s in group if isinstance(s, Fill)}


def _is_write(statement: Statement) -> bool:
    return isinstance(statement, Write) and not statement.ordered and statement.combine is None


def _reads(statement: Statement) -> set[str]:
    """The buffers and scratch rows that a statement loads from, and the locals that it reads."""
    parts = (part for expr in expressions(statement) for part in walk_expr(expr))
    return {part.buffer if isinstance(part, Load) else part.name for part in parts if isinstance(part, Load | Local)}


def _joins(current: Together, statement: Statement) -> bool:
    """Whether the statement may run in the loop nest of `current`."""
    first = current[0]
    if not _is_free(first) or not _is_free(statement) or inner_axes(first) != inner_axes(statement):
        return False
    # A sum has its value only after the loop.
    late = {s.name for s in current if isinstance(s, Reduce)}
    positions = {_target(s): _indices(s) for s in current if isinstance(s, Fill | Write)}
    for expr in expressions(statement):
        for part in walk_expr(expr):
            if isinstance(part, Local) and part.name in late:
                return False
            if isinstance(part, Load) and part.buffer in positions:
                # The same element was written in this iteration, but another one may not have been
                # written yet.
                if part.indices != positions[part.buffer]:
                    return False
    return True


def _is_free(statement: Statement) -> bool:
    """Whether a statement runs over inner axes in any order."""
    if isinstance(statement, Let | Scan) or not statement.axes:
        return False
    return not (isinstance(statement, Write) and statement.ordered)


def _target(statement: Fill | Write) -> str:
    return statement.name if isinstance(statement, Fill) else statement.output


def _indices(statement: Fill | Write) -> tuple[Size, ...]:
    return (row_major(statement.axes),) if isinstance(statement, Fill) else statement.indices


# --- statements -------------------------------------------------------------------------------


def body(statements: Iterable[Statement], rows: Mapping[str, int], output_dtypes: Mapping[str, np.dtype]) -> list[Stmt]:
    """The loops of some statements.

    rows:          elements to allocate for each scratch row
    output_dtypes: one for each output
    """
    statements_out: list[Stmt] = []
    groups = group(statements)
    for number, together in enumerate(groups):
        first = together[0]
        if isinstance(first, Let):
            statements_out.append(first)
        elif isinstance(first, Scan):
            statements_out += _scan(first, output_dtypes[first.output])
        # Ordered writes, whose loops are all serial.
        elif isinstance(first, Write) and not _is_free(first):
            kinds = [Kind.SERIAL] * len(first.axes)
            statements_out += nest(first.axes, kinds, _inner(first))
        elif not inner_axes(first):
            statements_out += _without_axes(together)
        else:
            others = (s for other in groups[:number] + groups[number + 1 :] for s in other)
            statements_out += _together(_without_rows(together, others), rows)
    return statements_out


def _without_axes(together: Together) -> Iterator[Stmt]:
    """Statements whose axes all had one point: they run once."""
    for statement in together:
        assert isinstance(statement, Reduce | Fill | Write)
        if isinstance(statement, Reduce):
            yield from statement.lets
            # A reduction over a single element is that element.
            yield Let(statement.name, statement.value)
        elif isinstance(statement, Fill):
            yield nodes.Alloc(statement.name, statement.value.dtype, 1, AddressSpace.LOCAL)
            yield from _inner(statement)
        else:
            yield from _inner(statement)


def _together(together: Together, rows: Mapping[str, int]) -> Iterator[Stmt]:
    """One loop nest for all, with the allocations before it and the sums after it."""
    indices = {s.name: row_major(s.axes) for s in together if isinstance(s, Fill)}
    # Positions are taken before axes are collapsed, since they refer to the axes as they are.
    together = _placed(together, indices)
    for statement in together:
        if isinstance(statement, Write) and statement.output in indices:
            size = rows[statement.output]
            yield nodes.Alloc(statement.output, statement.value.dtype, size, AddressSpace.LOCAL)
        elif isinstance(statement, Reduce):
            identity = COMBINE[statement.combine].identity(statement.dtype)
            yield nodes.Var(_accumulator(statement), identity)
    together = collapse_inner(together)
    axes = inner_axes(together[0])
    # Renderers put the innermost loop into vector lanes, and groups divide it among threads.
    kinds = [*[Kind.SERIAL] * (len(axes) - 1), Kind.VECTOR]
    yield from nest(axes, kinds, [s for statement in together for s in _inner(statement)])
    for statement in together:
        if isinstance(statement, Reduce):
            # The sum gets the name that later statements read.
            yield Let(statement.name, Local(_accumulator(statement), statement.dtype))


def _without_rows(together: Together, others: Iterable[Statement]) -> Together:
    """The statements of a nest with the rows that no others read as values of their points."""
    names = {s.name for s in together if isinstance(s, Fill)}
    if not names or all(isinstance(s, Fill) for s in together):
        return together
    names -= {name for other in others for name in _reads(other)}

    def value(expr: Expr) -> Expr:
        return Local(expr.buffer, expr.dtype) if isinstance(expr, Load) and expr.buffer in names else expr

    statements: list[Statement] = []
    lets: tuple[Let, ...] = ()
    for s in (map_statement(s, partial(map_expr, value)) for s in together):
        assert isinstance(s, Reduce | Fill | Write)
        if isinstance(s, Fill) and s.name in names:
            lets = (*lets, *s.lets, Let(s.name, s.value))
        else:
            statements.append(replace(s, lets=(*lets, *s.lets)))
            lets = ()
    return tuple(statements)


def _placed(together: Together, indices: Mapping[str, Size]) -> Together:
    """The statements with fills as writes to a flat position, so that all store in one way."""
    return tuple(
        Write(s.name, s.axes, (indices[s.name],), s.lets, s.value) if isinstance(s, Fill) else s for s in together
    )


def _accumulator(statement: Reduce) -> str:
    return f"{statement.name}_acc"


def nest(axes: Iterable[Axis], kinds: Iterable[Kind], inner: Iterable[Stmt]) -> list[Stmt]:
    """`inner` within loops, the first axis outermost."""
    statements: list[Stmt] = list(inner)
    for axis, kind in reversed(list(zip(axes, kinds))):
        statements = [nodes.For(axis.name, axis.size, kind, tuple(statements))]
    return statements


def _inner(statement: Statement) -> list[Stmt]:
    """What one inner point does."""
    match statement:
        case Reduce(combine=combine, lets=lets, value=value, contract=contract):
            name = _accumulator(statement)
            return [*lets, nodes.Accumulate(name, combine, value, contract)]
        case Fill(name=name, lets=lets, value=value):
            # Only a row of one element is still a Fill: `_placed` has made writes of all others.
            return [*lets, nodes.Store(name, 0, value)]
        case Write(output=output, indices=(index,), lets=lets, value=value):
            store: Stmt = nodes.Store(output, index, value, statement.combine)
            if statement.condition is not None:
                store = nodes.If(statement.condition, (store,))
            return [*lets, store]
        case _:
            raise AssertionError(statement)


def _scan(scan: Scan, output_dtype: np.dtype) -> Iterator[Stmt]:
    """A running value in the accumulator's dtype, stored at every position in the output's."""
    name, dtype = f"{scan.output}_acc", scan.value.dtype
    yield nodes.Var(name, COMBINE[scan.combine].identity(dtype))
    accumulator = Local(name, dtype)
    sizes = block_sizes(_most(scan.axis)) if scan.combine == "add" and dtype in dtypes.FLOATING else []
    yield _scan_loops(scan, _Run(0, scan.axis.size), sizes, accumulator, accumulator, output_dtype)


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring positions of a scan's axis: the first one, and how many there are."""

    first: Size
    size: Size


def _most(axis: Axis) -> int:
    """The most positions of an axis, as far as they are known."""
    high = dims.bounds(axis.size)[1]
    return OPEN if high is None else high


def _scan_loops(
    scan: Scan, run: _Run, sizes: Sequence[int], sums: Local, result: Expr, output_dtype: np.dtype
) -> nodes.For:
    """The loop over a run that adds to `sums`, and stores `result` at every position.

    sizes: those of blocks with sums of their own, of blocks in them, and so on. A sum of ones in
           f32 stops at 2**24, and loses digits long before.
    """
    if not sizes:
        return _scan_loop(scan, run, sums, result, output_dtype)
    size, *smaller = sizes
    block, rounds = f"{scan.axis.name}_block_{size}", f"{scan.axis.name}_rounds_{size}"
    blocks = -(-run.size // size)
    begin = dims.symbol(block, 0, blocks - 1) * size
    length = Op("min", (const(size, dtypes.i64), of_size(run.size - begin)), dtypes.i64)
    part = Local(f"{sums.name}_{size}", sums.dtype)
    inner = _Run(run.first + begin, dims.symbol(rounds, 1, size))
    body = (
        Let(rounds, length),
        nodes.Var(part.name, COMBINE["add"].identity(part.dtype)),
        _scan_loops(scan, inner, smaller, part, Op("add", (result, part), part.dtype), output_dtype),
        nodes.Assign(sums.name, Op("add", (sums, part), sums.dtype)),
    )
    return nodes.For(block, blocks, Kind.SERIAL, body)


def _scan_loop(scan: Scan, run: _Run, sums: Local, result: Expr, output_dtype: np.dtype) -> nodes.For:
    """The loop that adds to `sums`, and stores a result of it at every position."""
    step = nodes.Assign(sums.name, Op(scan.combine, (sums, scan.value), sums.dtype))
    # The accumulator may be wider than the output: f32 for half types.
    out = result if result.dtype == output_dtype else Cast(result, output_dtype)
    axis = Axis(scan.axis.name, run.size)
    body = (*scan.lets, step, nodes.Store(scan.output, scan.indices[0], out))
    return nodes.For(axis.name, axis.size, Kind.SERIAL, rename(body, {}, {axis.name: run.first + axis.symbol}))


def row_sizes(statements: Iterable[Statement]) -> dict[str, int]:
    """Elements to allocate for each scratch row: its size, or the most it can be."""
    elements = {}
    for statement in statements:
        if isinstance(statement, Fill):
            elements[statement.name] = 1
            for axis in statement.axes:
                # Scratch has a static size, so a symbolic row gets the most that it may need.
                high = dims.bounds(axis.size)[1]
                assert high is not None, "kernelize puts only bounded rows into scratch"
                # An empty row is allocated too: C has no arrays without elements.
                elements[statement.name] *= max(1, high)
    return elements


__all__ = ["Cast", "body", "group", "nest", "row_sizes"]
