"""Two buffers: while a round of a dot is computed from shared memory, the next one is fetched.

    fetch the first panels
    for round in 32 serial {
      barrier
      if round + 1 < 32: fetch the next panels into the other half of their memory
      add the products of this round
    }

One barrier is enough: after it, no thread reads the half that is filled next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from rune.dims import Size
from rune.lowering.build.conditions import less
from rune.lowering.build.panels import Panel, fill
from rune.lowering.build.stage import Group
from rune.lowering.kernel.nodes import Barrier, For, If, Kind, Stmt
from rune.lowering.kernels import Axis, positions

BUFFERS = 2


def rounds_in_turn(group: Group, panels: Sequence[Panel], products: Callable[[Size], Sequence[Stmt]]) -> Iterator[Stmt]:
    """All rounds along the axis that is cut, for each point of the axes before it, as one loop.

    products: the statements by which a thread adds up a round
    """
    # One loop, so that the fetch of the next round also crosses from one point to the next.
    number = Axis("round", prod(int(str(a.size)) for a in group.sums[0]) * along_cut(group))
    following = number.symbol + 1
    # The first filling has names of its own, since that of the loop is in the same scope.
    yield from _filled(group, panels, 0, "_first")
    # The last round has no next one.
    more = If(less(following, number.size), tuple(_filled(group, panels, following, "")))
    yield For(number.name, number.size, Kind.SERIAL, (Barrier(), more, *products(number.symbol)))


def offset(panel: Panel, number: Size) -> Size:
    """Where the half of a panel's memory that belongs to a round begins."""
    return number % BUFFERS * panel.alloc.size


def sums_at(group: Group, number: Size) -> Mapping[str, Size]:
    """Where a round begins along the axis that is cut, and its place on the axes before that."""
    before, cut, _ = group.sums
    count = along_cut(group)
    return {cut.name: number % count * group.stage.depth, **positions(number // count, before)[0]}


def along_cut(group: Group) -> int:
    """Rounds along the axis that is cut."""
    _, cut, _ = group.sums
    return -(-int(str(cut.size)) // group.stage.depth)


def _filled(group: Group, panels: Sequence[Panel], number: Size, name: str) -> Iterator[Stmt]:
    """The panels of one round."""
    origin = {**dict(zip((a.name for a in group.axes), group.firsts())), **sums_at(group, number)}
    for panel in panels:
        yield from fill(panel, group.thread, group.threads, origin, offset(panel, number), name)


__all__ = ["BUFFERS", "along_cut", "offset", "rounds_in_turn", "sums_at"]
