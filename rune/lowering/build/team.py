"""Team: the threads of a group that share a point, and how their parts of a sum are combined.

Before   a: f32 = a_acc, a part of the sum in every thread   128 threads
After    a_parts[thread] = a_acc
         barrier
         if thread < 8: a_sums[thread] = a_parts[thread] + a_parts[thread + 8] + ...
         barrier
         a: f32 = a_sums[0] + a_sums[1] + ... + a_sums[7]    by every thread

Up to FEW threads wait only once: each adds up all parts. Sums that are ready at the same time share
their barriers.

Invariant: parts are combined in one fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.conditions import less
from rune.lowering.kernel.expr import Expr, Load, Local, Op
from rune.lowering.kernel.nodes import AddressSpace, Alloc, If, Let, Stmt, Store
from rune.records import dataclass

FEW = 32  # most parts that each thread adds up by itself


@dataclass(frozen=True, slots=True)
class Team:
    """The threads of a group, the symbol that numbers them, and the points of the group.

    across: whether neighbouring threads have neighbouring points
    """

    threads: int
    name: str
    points: int = 1
    across: bool = False

    @property
    def thread(self) -> Dim:
        """The number of a thread."""
        return dims.symbol(self.name, 0, self.threads - 1)

    @property
    def count(self) -> int:
        """Threads that share a point."""
        return self.threads // self.points

    @property
    def member(self) -> Size:
        """The number of a thread among those that share its point."""
        return self.thread // self.points if self.across else self.thread % self.count

    @property
    def point(self) -> Size:
        """The number of a thread's point in the group."""
        return self.thread % self.points if self.across else self.thread // self.count

    def below(self, number: int) -> Expr:
        """Whether a thread is one of the first `number` members of its team."""
        # Equal to the comparison of members, but without a quotient or remainder.
        if self.across or self.points == 1:
            return less(self.thread, number * self.points)
        return less(self.member, number)

    def place(self, member: Size, count: int) -> Size:
        """The place of a member's value, if each point has `count` of them."""
        return self.points * member + self.point if self.across else count * self.point + member


def combined(lets: Sequence[Let], sums: Mapping[str, str], team: Team) -> tuple[list[Alloc], list[Stmt]]:
    """Shared memory for the parts of some sums, and the steps that combine them.

    sums: how parts are combined, by the name of a thread's accumulator
    """
    # About the root of the count: two short rounds of additions instead of one long chain.
    first = 1 << (team.count.bit_length() - 1) // 2 if team.count > FEW else team.count
    memory, stores, middle, results = [], list[Stmt](), list[Stmt](), list[Stmt]()
    for let in lets:
        combine, dtype = sums[_name(let)], let.value.dtype
        parts = Alloc(f"{let.name}_parts", dtype, team.threads, AddressSpace.SHARED)
        memory.append(parts)
        stores.append(Store(parts.name, team.place(team.member, team.count), let.value))
        if first < team.count:
            places = [team.place(team.member + k * first, team.count) for k in range(team.count // first)]
            (*reads, total) = _total(f"{let.name}_sum", combine, parts, places)
            parts = Alloc(f"{let.name}_sums", dtype, first * team.points, AddressSpace.SHARED)
            memory.append(parts)
            middle += [*reads, Store(parts.name, team.place(team.member, first), total.value)]
        results += _total(let.name, combine, parts, [team.place(k, first) for k in range(first)])
    return memory, [*stores, *([If(team.below(first), tuple(middle))] if middle else ()), *results]


def _name(let: Let) -> str:
    assert isinstance(let.value, Local)
    return let.value.name


def _total(name: str, combine: str, memory: Alloc, places: Sequence[Size]) -> Iterator[Let]:
    """Loads of some values, neighbours side by side, and then their total."""
    values: list[Expr] = []
    for number, place in enumerate(places):
        let = Let(f"{name}_of_{number}", Load(memory.name, (place,), memory.dtype))
        values.append(Local(let.name, memory.dtype))
        yield let
    # In pairs, so that additions do not wait for each other; the count is a power of two.
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [Op(combine, pair, memory.dtype) for pair in pairs]
    yield Let(name, values[0])
