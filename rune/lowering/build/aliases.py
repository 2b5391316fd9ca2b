"""Which inputs an output may share memory with.

An output may lie where an input lies if every point reads only those elements of the input that it
writes of the output, and reads them no later than it writes them. Index expressions are compared
literally: equal expressions over the same axes are the same element.

An output that is changed in place starts out as its input; the plan takes care of such a pair.

Invariant: a pair returned here may be one allocation, but need not be.
"""

from __future__ import annotations

from rune.dims import Size, product
from rune.lowering.kernel.rewrite import loads
from rune.lowering.kernels import Axes, Buffer, Kernel, Scan, Write, expressions, inner_axes
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class _Access:
    """A read or write of a kernel: the statement's number and axes, and the element."""

    statement: int
    axes: Axes
    index: Size


def alias_pairs(kernel: Kernel) -> tuple[tuple[str, str], ...]:
    """All (input, output) pairs of a flat kernel; memory planning uses those that it can."""
    in_place = {b for _, b in kernel.in_place}
    reads = _reads(kernel)
    writes = {b.name: _only_write(kernel, b.name) for b in kernel.outputs if b.name not in in_place}
    pairs = [
        (source.name, output.name)
        for output in kernel.outputs
        if (write := writes.get(output.name)) is not None
        # An input that the kernel does not read fits, too: `all` of no reads holds.
        for source in kernel.inputs
        if _fits(source, output) and all(_is_before(r, write) for r in reads.get(source.name, ()))
    ]
    return (*kernel.in_place, *pairs)


def _fits(a: Buffer, b: Buffer) -> bool:
    # Equal element sizes are enough: each element is overwritten by the point that has read it.
    same = a.type.dtype.itemsize == b.type.dtype.itemsize
    return same and product(a.type.shape) == product(b.type.shape)


def _is_before(read: _Access, write: _Access) -> bool:
    """Whether a read is of the element that is written, and no later."""
    same = read.index == write.index and read.axes == write.axes
    # Within one statement an expression is evaluated before its result is written.
    return same and read.statement <= write.statement


def _only_write(kernel: Kernel, output: str) -> _Access | None:
    """The only write of an output, if there is one and it is a plain write."""
    writes = [(n, s) for n, s in enumerate(kernel.body) if isinstance(s, Write | Scan) and s.output == output]
    # `check` has made sure that every output is written at least once.
    (number, write), *more = writes
    if more or isinstance(write, Scan):
        return None
    # Such a write may leave elements as they were, or touch them several times.
    if write.condition is not None or write.ordered or write.combine is not None:
        return None
    return _Access(number, write.axes, write.indices[0])


def _reads(kernel: Kernel) -> dict[str, list[_Access]]:
    """Every read of a kernel, by buffer."""
    reads: dict[str, list[_Access]] = {}
    for number, statement in enumerate(kernel.body):
        axes = inner_axes(statement)
        for load in loads(expressions(statement)):
            reads.setdefault(load.buffer, []).append(_Access(number, axes, load.indices[0]))
    return reads
