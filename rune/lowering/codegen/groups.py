"""How kernels are spread over groups of threads, and how many threads a group has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rune import dims
from rune.dims import Size
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import For, KernelCode, Kind
from rune.lowering.kernel.rewrite import Body, perfect_nest
from rune.records import dataclass

THREADS = 256  # of a group


@dataclass(frozen=True, slots=True)
class Spread:
    """A kernel without the loops that groups and threads replace.

    `points` counts the points of the `grid` loops. With a `nest`, each group has one grid point,
    its threads are the points of the nest, and `before` has the statements ahead of the nest.
    Without a nest, each thread has a grid point of its own.
    """

    grid: Sequence[For]
    before: Body
    nest: Sequence[For]
    innermost: Body
    points: Size
    threads: int

    @property
    def count(self) -> Size:
        """The number of groups."""
        return self.points if self.nest else (self.points + self.threads - 1) // self.threads


def spread(code: KernelCode, threads_of: Callable[[Size], int]) -> Spread:
    """Split off the loops that a launch replaces.

    threads_of: gives the number of threads of a group without a nest
    """
    grid, inside = perfect_nest(code.body, Kind.GRID)
    points = dims.product(loop.extent for loop in grid)
    nest, innermost = perfect_nest(inside[-1:], Kind.WORKGROUP)
    if not nest:
        return Spread(grid, (), (), inside, points, threads_of(points))
    threads = dims.evaluate(dims.product(loop.extent for loop in nest), {})
    return Spread(grid, inside[:-1], nest, innermost, points, threads)


def threads_of_group(points: int, cores: int, subgroup: int = 32) -> int:
    """Threads of a group: a small grid is spread over all cores rather than packed into few groups.

    >>> threads_of_group(1 << 20, 132), threads_of_group(1000, 132)
    (256, 32)
    """
    threads = subgroup
    while threads < THREADS and points > 2 * threads * cores:
        threads *= 2
    return threads


def threads_of_launch(target: Target, points: Size) -> int:
    """Threads of a group on a target: each core gets four groups if the points are known."""
    most = min(THREADS, target.threads_per_workgroup)
    if not isinstance(points, int):
        return most
    threads = 1 << max(0, (points // (4 * target.cores)).bit_length() - 1)
    return min(most, max(target.subgroup_threads, threads))


__all__ = ["THREADS", "Spread", "spread", "threads_of_group", "threads_of_launch"]
