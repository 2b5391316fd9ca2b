"""Parts: a reduction along one row is that of several parts, which are combined at its end.

Before   s = sum j in 4096: x[4096*i + j]
After    s_p0 = sum j in 1024: x[4096*i + 4*j]; s_p1 = sum j in 1024: x[4096*i + 4*j + 1]; ...
         s = (s_p0 + s_p1) + (s_p2 + s_p3)

The parts share one loop. Each addition waits for the one before it in its own part alone, and where
neighbours are read, compilers put them and the parts into a vector, which they may not do with one
sum. What the parts leave over is one part more.

Invariant: the same elements are combined, each once, in one fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rune.lowering.build.schedule import Parts
from rune.lowering.build.tile import place_body
from rune.lowering.kernel.expr import Expr, Local, Op
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernels import Axis, Kernel, Reduce, Statement

LEAST_ROUNDS = 4  # of a part


def parted(kernel: Kernel, parts: Parts) -> Kernel:
    """The kernel with every long reduction in parts."""
    return replace(kernel, body=tuple(s for x in kernel.body for s in _statement(x, parts.count)))


def has_long_reduction(kernel: Kernel, count: int) -> bool:
    """Whether some reduction has rounds enough for so many parts."""
    return any(_is_long(s, count) for s in kernel.body)


def _is_long(statement: Statement, count: int) -> bool:
    if not isinstance(statement, Reduce) or not statement.axes:
        return False
    size = statement.axes[-1].size
    return isinstance(size, int) and size >= LEAST_ROUNDS * count


def _statement(statement: Statement, count: int) -> Iterator[Statement]:
    if not isinstance(statement, Reduce) or not _is_long(statement, count):
        yield statement
        return
    parts = list(_parts(statement, count))
    yield from parts
    yield Let(statement.name, _combined([Local(p.name, p.dtype) for p in parts], statement))


def _parts(reduce: Reduce, count: int) -> Iterator[Reduce]:
    """The parts of a reduction, and what they leave over."""
    *outer, last = reduce.axes
    assert isinstance(last.size, int), "legal.py takes no symbolic axis"
    axis = Axis(last.name, last.size // count)
    for number in range(count):
        yield _part(reduce, (*outer, axis), axis.symbol * count + number, number)
    if last.size % count:
        # Under another name: its symbol has other bounds.
        end = Axis(f"{last.name}_end", last.size % count)
        yield _part(reduce, (*outer, end), axis.size * count + end.symbol, count)


def _part(reduce: Reduce, axes: tuple[Axis, ...], at, number: int) -> Reduce:
    names = {name: f"{name}_p{number}" for name in (reduce.name, *(let.name for let in reduce.lets))}
    (placed,) = place_body((reduce,), {reduce.axes[-1].name: at}, names)
    assert isinstance(placed, Reduce)
    return replace(placed, axes=axes)


def _combined(values: list[Expr], reduce: Reduce) -> Expr:
    """All values by the operation of a reduction, in pairs."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2])
        values = [Op(reduce.combine, pair, reduce.dtype) for pair in pairs] + values[len(values) & ~1 :]
    return values[0]
