"""Parts: cut a reduction along a row into several parts, which are combined at the end.

Before   s = sum j in 4096: x[4096*i + j]
After    s_p0 = sum j in 1024: x[4096*i + 4*j]; s_p1 = sum j in 1024: x[4096*i + 4*j + 1]; ...
         s = (s_p0 + s_p1) + (s_p2 + s_p3)

The parts share one loop. An addition waits only for the one before it in its own part, and if
neighbours are read, compilers put them and the parts into a vector, which they may not do with a
single sum. With lanes, a part is itself a vector of neighbours, along a loop around the others:

         s_p0 = sum l in 16, j in 64: x[4096*i + 64*j + l]; s_p1 = ... x[4096*i + 64*j + 16 + l]

The remainder that the parts leave is one more part.

Invariant: the same elements are combined, each once, in one fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.build.schedule import Parts
from rune.lowering.build.tile import place_body
from rune.lowering.kernel.expr import Expr, Local, Op
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import loads
from rune.lowering.kernels import Axis, Kernel, Reduce, Statement, expressions

LEAST_ROUNDS = 4  # of a part


def choose_parts(kernel: Kernel, most: int) -> Parts | None:
    """The most parts, up to `most`, that leave a reduction of neighbours enough rounds.

    Integers have none: compilers may reorder their sums.
    """
    if not any(_reads_neighbours(s) for s in kernel.body):
        return None
    # Powers of two, which are combined in pairs without a remainder.
    counts = (most >> k for k in range(most.bit_length() - 1))
    return next((Parts(n) for n in counts if has_long_reduction(kernel, Parts(n))), None)


def _reads_neighbours(statement: Statement) -> bool:
    """Whether it is a reduction of floats whose last axis walks from one element to the next."""
    if not isinstance(statement, Reduce) or not statement.axes or statement.dtype not in dtypes.FLOATING:
        return False
    name = statement.axes[-1].name
    return any(dims.coefficient(load.indices[0], name) == 1 for load in loads(expressions(statement)))


def parted(kernel: Kernel, parts: Parts) -> Kernel:
    """The kernel with every long reduction in parts."""
    return replace(kernel, body=tuple(s for x in kernel.body for s in _statement(x, parts)))


def has_long_reduction(kernel: Kernel, parts: Parts) -> bool:
    """Whether some reduction has enough rounds for such parts."""
    return any(_is_long(s, parts) for s in kernel.body)


def _is_long(statement: Statement, parts: Parts) -> bool:
    if not isinstance(statement, Reduce) or not statement.axes:
        return False
    size = statement.axes[-1].size
    return isinstance(size, int) and size >= LEAST_ROUNDS * parts.count * parts.lanes


def _statement(statement: Statement, parts: Parts) -> Iterator[Statement]:
    if not isinstance(statement, Reduce) or not _is_long(statement, parts):
        yield statement
        return
    reduces = list(_parts(statement, parts))
    yield from reduces
    yield Let(statement.name, _combined([Local(r.name, r.dtype) for r in reduces], statement))


def _parts(reduce: Reduce, parts: Parts) -> Iterator[Reduce]:
    """The parts of a reduction, and its remainder."""
    *outer, last = reduce.axes
    step = parts.count * parts.lanes
    assert isinstance(last.size, int), "legal.py takes no symbolic axis"
    # The symbol of the shorter axis has other bounds.
    axis, lane = Axis(last.name, last.size // step), Axis(f"{last.name}_lane", parts.lanes)
    # Lanes go around all other loops, so that they are combined once.
    axes, first = (*outer, axis), axis.symbol * step
    if parts.lanes > 1:
        axes, first = (lane, *axes), first + lane.symbol
    for number in range(parts.count):
        yield _part(reduce, axes, first + number * parts.lanes, number)
    if last.size % step:
        end = Axis(f"{last.name}_end", last.size % step)
        yield _part(reduce, (*outer, end), last.size // step * step + end.symbol, parts.count)


def _part(reduce: Reduce, axes: tuple[Axis, ...], at: Size, number: int) -> Reduce:
    # All parts are in one scope.
    names = {name: f"{name}_p{number}" for name in (reduce.name, *(let.name for let in reduce.lets))}
    (part,) = place_body((reduce,), {reduce.axes[-1].name: at}, names)
    assert isinstance(part, Reduce)
    return replace(part, axes=axes)


def _combined(values: list[Expr], reduce: Reduce) -> Expr:
    """All values, combined in pairs by the operation of a reduction."""
    # In pairs, so that the additions at the end do not wait for each other in one chain.
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2])
        values = [Op(reduce.combine, pair, reduce.dtype) for pair in pairs] + values[len(values) & ~1 :]
    return values[0]
