"""Which inputs an output may share memory with.

An output may lie where an input lies if every point reads of that input only the very elements
that it writes of the output, and reads them no later than it writes them. Index expressions are
compared as they are: equal expressions over the same axes are the same element.

An output that is made in place starts out as its input: for that pair the plan sees to it.

Invariant: a pair that is named here may be one allocation; it need not be.
"""

from __future__ import annotations

from collections.abc import Iterator

from rune.dims import Size, product
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernels import Buffer, Kernel, Scan, Statement, Write, expressions, inner_axes


def alias_pairs(kernel: Kernel) -> tuple[tuple[str, str], ...]:
    """All (input, output) pairs of a flat kernel; memory planning takes what it can use."""
    made = {b for _, b in kernel.in_place}
    found = [
        (given.name, output.name)
        for output in kernel.outputs
        if output.name not in made
        for given in kernel.inputs
        if _fits(given, output) and _may(kernel, given, output)
    ]
    return (*kernel.in_place, *found)


def _fits(a: Buffer, b: Buffer) -> bool:
    same = a.type.dtype.itemsize == b.type.dtype.itemsize
    return same and product(a.type.shape) == product(b.type.shape)


def _may(kernel: Kernel, given: Buffer, output: Buffer) -> bool:
    """Reads and writes of one element only, the reads first."""
    writes = [
        (n, s) for n, s in enumerate(kernel.body)
        if isinstance(s, Write | Scan) and s.output == output.name
    ]  # fmt: skip
    if len(writes) != 1 or isinstance(writes[0][1], Scan):
        return False
    last, write = writes[0]
    assert isinstance(write, Write)
    if write.condition is not None or write.ordered or write.combine is not None:
        return False
    return all(
        n <= last and index == write.indices[0] and inner_axes(statement) == write.axes
        for n, statement in enumerate(kernel.body)
        for index in _reads(statement, given.name)
    )


def _reads(statement: Statement, buffer: str) -> Iterator[Size]:
    for expr in expressions(statement):
        for part in walk_expr(expr):
            if isinstance(part, Load) and part.buffer == buffer:
                yield part.indices[0]
