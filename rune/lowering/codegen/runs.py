"""Runs: consecutive statements that read or write neighbouring elements, merged into one access.

    a: f32 = x[4*i]          const float4 _run_0 = *(const float4*)&x[4 * i];
    b: f32 = x[4*i + 1]  ->  const float a = _run_0.x;
    c: f32 = x[4*i + 2]      ...
    d: f32 = x[4*i + 3]

The first index is a multiple of the run's length, so the access is aligned if the buffer is. The
values of a run of stores read nothing that the run writes, so all of them can be computed first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from rune import dims
from rune.dims import Size
from rune.lowering.kernel.expr import Expr, Load
from rune.lowering.kernel.nodes import Access, Barrier, KernelCode, Let, Stmt, Store
from rune.lowering.kernel.rewrite import buffers_read, loads_in, walk
from rune.records import dataclass

Most = Callable[[np.dtype], int]  # elements of one access


@dataclass(frozen=True, slots=True)
class LoadRun:
    """Scalars loaded from neighbouring elements of a buffer, the first at `index`."""

    lets: tuple[Let, ...]
    buffer: str
    index: Size
    dtype: np.dtype
    guard: Expr | None


@dataclass(frozen=True, slots=True)
class StoreRun:
    """Values stored to neighbouring elements of a buffer, the first at `index`."""

    values: tuple[Expr, ...]
    buffer: str
    index: Size


def apart_from_barriers(code: KernelCode, is_subgroup: bool) -> frozenset[str]:
    """The parameters whose accesses no barrier has to order, so that one may cover two neighbours.

    is_subgroup: whether each group is one subgroup, which then includes those only written
    """
    names = frozenset(p.name for p in code.params)
    if not any(isinstance(s, Barrier) for s in walk(code.body)):
        return names
    unread = names - buffers_read(code.body) if is_subgroup else frozenset[str]()
    return unread.union(p.name for p in code.params if p.access is Access.READ)


def with_runs(body: Sequence[Stmt], most: Most, buffers: Collection[str]) -> Iterator[Stmt | LoadRun | StoreRun]:
    """The statements in order, with each run in one of the buffers merged into one."""
    position = 0
    while position < len(body):
        run = _run(body, position, most, buffers)
        yield run or body[position]
        position += _length(run)


def _length(run: LoadRun | StoreRun | None) -> int:
    match run:
        case LoadRun(lets=lets):
            return len(lets)
        case StoreRun(values=values):
            return len(values)
        case None:
            return 1


def _run(body: Sequence[Stmt], position: int, most: Most, buffers: Collection[str]) -> LoadRun | StoreRun | None:
    """The longest run that begins with this statement."""
    match body[position]:
        case Let(value=Load(buffer=buffer, dtype=dtype)) if buffer in buffers:
            find: Callable[[Sequence[Stmt]], LoadRun | StoreRun | None] = _loads
        case Store(buffer=buffer, value=value, combine=None) if buffer in buffers:
            find, dtype = _stores, value.dtype
        case _:
            return None
    length = most(dtype)
    while length > 1:
        run = find(body[position : position + length]) if position + length <= len(body) else None
        if run is not None and dims.divides(length, run.index) is True:
            return run
        length //= 2
    return None


def _loads(body: Sequence[Stmt]) -> LoadRun | None:
    lets = tuple(s for s in body if isinstance(s, Let) and isinstance(s.value, Load))
    loads = [let.value for let in lets if isinstance(let.value, Load)]
    first = loads[0]
    same = all(x.buffer == first.buffer and x.guard == first.guard for x in loads)
    if len(lets) < len(body) or not same or not _are_neighbours([x.indices[0] for x in loads]):
        return None
    return LoadRun(lets, first.buffer, first.indices[0], first.dtype, first.guard)


def _stores(body: Sequence[Stmt]) -> StoreRun | None:
    stores = [s for s in body if isinstance(s, Store) and s.combine is None]
    first = stores[0]
    same = all(s.buffer == first.buffer and first.buffer not in loads_in(s.value) for s in stores)
    if len(stores) < len(body) or not same or not _are_neighbours([s.index for s in stores]):
        return None
    return StoreRun(tuple(s.value for s in stores), first.buffer, first.index)


def _are_neighbours(indices: Sequence[Size]) -> bool:
    return all(b - a == 1 for a, b in itertools.pairwise(indices))
