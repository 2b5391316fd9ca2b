"""Exchanges: values that the threads of a subgroup give each other without memory.

    store parts[thread] = a; barrier; b = parts[0] + parts[1] + ...   ->   b = a of thread 0 + ...

Groups add up the parts of their threads through shared memory (build/team.py). Where a group is one
subgroup, each thread can have the others' values as they are. On Mesa's processors that is one
instruction, where an access of shared memory is a loop over the lanes: 32 cycles for each part.

Invariant: every read is of the value that was written before, once, by the thread of that number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rune import dtypes
from rune.dims import Size
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Stmt, Store
from rune.lowering.kernel.rewrite import bodies, expressions, loads, walk


def exchanges(memory: Sequence[Stmt], body: Sequence[Stmt], thread: Size) -> frozenset[str]:
    """The arrays of a group that need no memory.

    memory: the statements before those of a thread. thread: the number of a thread of the subgroup
    """
    allocs = [s for s in memory if isinstance(s, Alloc) and s.space is AddressSpace.SHARED and s.dtype == dtypes.f32]
    return frozenset(s.name for s in allocs if _is_exchange(s.name, body, thread))


def _is_exchange(name: str, body: Sequence[Stmt], thread: Size) -> bool:
    """Whether a thread writes its own element once, and then reads elements of known numbers."""
    writes = [n for n, s in enumerate(body) if isinstance(s, Store) and s.buffer == name]
    if len(writes) != 1 or any(_accesses(name, inner) for s in body for inner in bodies(s)):
        return False
    (place,) = writes
    write = body[place]
    assert isinstance(write, Store)
    reads = list(_reads(name, body))
    is_known = all(isinstance(x.indices[0], int) and x.guard is None for x in reads)
    return write.index == thread and write.combine is None and is_known and not any(_reads(name, body[: place + 1]))


def _accesses(name: str, body: Sequence[Stmt]) -> bool:
    return any(isinstance(s, Store) and s.buffer == name for s in walk(body)) or any(_reads(name, body))


def _reads(name: str, body: Sequence[Stmt]) -> Iterator[Load]:
    """The reads of an array, in all statements."""
    return (x for x in loads(e for s in walk(body) for e in expressions(s)) if x.buffer == name)
