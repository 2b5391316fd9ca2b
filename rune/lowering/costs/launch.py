"""How a launch is spread over a device: its loops, its groups, and what runs at the same time.

    for i in 4096 grid { for j in 512 grid { ... } }     8192 groups of 256 threads on an H100

In a kernel without WORKGROUP loops the threads are grid points, with the innermost loop fastest; a
small launch has smaller groups. On a processor every core runs points one after another, and there
are no groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rune import dims
from rune.dims import Size
from rune.lowering.codegen.groups import threads_of_group
from rune.lowering.codegen.target import Target
from rune.lowering.costs.records import DeviceRecord
from rune.lowering.kernel.nodes import Alloc, For, KernelCode, Kind, Stmt
from rune.lowering.kernel.rewrite import Body, perfect_nest, symbols_used
from rune.lowering.kernelize.cost import estimate
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop whose iterations are points or threads."""

    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel spread over a device.

    grid:    loops over points, the outermost first; threads: those over the threads of a group,
             none if points are threads
    head, body: the statements before the threads, and those of each thread
    groups, group_threads: how many groups, and of how many threads
    """

    grid: tuple[Axis, ...]
    threads: tuple[Axis, ...]
    head: Body
    body: Body
    groups: int
    group_threads: int

    @property
    def points(self) -> int:
        """Iterations of all loops of the grid."""
        return math.prod(a.extent for a in self.grid)

    def group_extents(self) -> dict[str, int]:
        """How many values each loop takes within one group."""
        if self.threads:
            return {a.name: a.extent for a in self.threads}
        return consecutive(self.grid, self.group_threads)

    def resident_extents(self, groups: int) -> dict[str, int]:
        """How many values each loop takes in so many consecutive groups."""
        if self.threads:
            return {**consecutive(self.grid, groups), **{a.name: a.extent for a in self.threads}}
        return consecutive(self.grid, groups * self.group_threads)


def consecutive(axes: Sequence[Axis], points: int) -> dict[str, int]:
    """How many values each axis takes among so many consecutive points.

    >>> consecutive([Axis("i", 100), Axis("j", 16)], 32)
    {'j': 16, 'i': 2}
    """
    extents: dict[str, int] = {}
    for axis in reversed(axes):
        extents[axis.name] = max(1, min(axis.extent, points))
        points = -(-points // max(1, axis.extent))
    return extents


def typical_sizes(code: KernelCode, sizes: Mapping[str, int] | None = None) -> dict[str, int]:
    """The given sizes, and a typical value for each missing one."""
    symbols = symbols_used(code)
    typical = {name: estimate(symbols[name]) for name in code.sizes if name in symbols}
    return {**typical, **(sizes or {})}


def number(size: Size, sizes: Mapping[str, int]) -> int:
    """An extent as a number; the largest if it depends on an outer loop."""
    if isinstance(size, int):
        return size
    known = dims.substitute(size, sizes)
    return known if isinstance(known, int) else estimate(known)


def spread(code: KernelCode, target: Target, record: DeviceRecord, sizes: Mapping[str, int]) -> Launch:
    """How a device runs the kernel."""
    loops, inner = perfect_nest(code.body, Kind.GRID)
    grid = tuple(_axis(loop, sizes) for loop in loops)
    points = math.prod(a.extent for a in grid)
    if record.is_processor:
        return Launch(grid, (), (), inner, points, 1)
    head, last = _split(inner)
    nest, body = perfect_nest(last, Kind.WORKGROUP)
    if nest:
        threads = tuple(_axis(loop, sizes) for loop in nest)
        return Launch(grid, threads, head, body, points, math.prod(a.extent for a in threads))
    wide = threads_of_group(points, target.cores, record.subgroup_threads)
    return Launch(grid, (), (), inner, -(-points // wide), wide)


def _axis(loop: For, sizes: Mapping[str, int]) -> Axis:
    return Axis(loop.var, number(loop.extent, sizes))


def _split(body: Body) -> tuple[Body, Body]:
    """The statements before the threads of a group, and their loop."""
    return (body[:-1], body[-1:]) if body else ((), ())


def shared_bytes(body: Sequence[Stmt]) -> int:
    """The memory that the statements allocate for a group. Units: B."""
    return sum(s.size * s.dtype.itemsize for s in body if isinstance(s, Alloc))


__all__ = ["Axis", "Launch", "consecutive", "number", "shared_bytes", "spread", "typical_sizes"]
