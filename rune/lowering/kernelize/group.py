"""Groups: what the search for kernels asks about the roots of one kernel.

The search asks the same of a group for each edge that ends in it. So a group has the answers, and
joining two groups joins their answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune.core.program import Var
from rune.dims import Size
from rune.lowering.kernelize.roots import Kind, Root
from rune.records import dataclass

Pairs = tuple[tuple[int, int], ...]  # (axis of one domain, axis of the other)


@dataclass(frozen=True, slots=True)
class Needs:
    """What needs values in memory: results of the program, and the roots that read a value."""

    results: frozenset[Var]
    readers: Mapping[Var, Sequence[int]]

    def is_written(self, var: Var, members: set[int]) -> bool:
        """Whether others read a value that `members` compute, or it is a result of the program."""
        return var in self.results or not members.issuperset(self.readers.get(var, ()))


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Roots of one kernel. `places[root]`: the axis of the root for each axis of the domain.

    `reads`, `results`: what the members read and compute; `written`: the results that others need
    """

    members: tuple[int, ...]
    domain: tuple[Size, ...]
    places: Mapping[int, tuple[int, ...]]
    kinds: frozenset[Kind]
    reads: frozenset[Var]
    results: frozenset[Var]
    written: frozenset[Var]


def alone(root: Root, needs: Needs) -> Group:
    """The group of one root."""
    results = frozenset((root.var,))
    return Group(
        (root.number,),
        tuple(root.sizes[a] for a in root.parallel),
        {root.number: root.parallel},
        frozenset((root.kind,)),
        frozenset(root.reads),
        results,
        results if needs.is_written(root.var, {root.number}) else frozenset(),
    )


def joined(first: Group, second: Group, pairs: Pairs, needs: Needs) -> Group:
    """Both groups as one, over the axes that `pairs` says correspond."""
    return Group(
        tuple(sorted((*first.members, *second.members))),
        tuple(second.domain[y] for _, y in pairs),
        common_places(first, second, pairs),
        first.kinds | second.kinds,
        first.reads | second.reads,
        first.results | second.results,
        written(first, second, needs),
    )


def common_places(first: Group, second: Group, pairs: Pairs) -> dict[int, tuple[int, ...]]:
    """For each member of both groups, its axis for each axis of their common domain."""
    sides = enumerate((first, second))
    return {m: tuple(p[pair[side]] for pair in pairs) for side, group in sides for m, p in group.places.items()}


def written(first: Group, second: Group, needs: Needs) -> frozenset[Var]:
    """The values that a kernel of both groups writes."""
    # What one of the groups alone need not write, both together need not write either.
    members = {*first.members, *second.members}
    return frozenset(v for v in first.written | second.written if needs.is_written(v, members))
