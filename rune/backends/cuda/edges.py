"""Which nodes of a graph wait for which, so that independent steps run side by side.

    a reads x, writes y          b waits for a: it reads y
    b reads y, writes z    ->    c waits for nothing: a, b and c touch x alike, and only read it
    c reads x, writes w          d waits for b and c
    d reads z and w

A node waits for earlier ones that touch the same bytes, if one of the two writes them; nodes for
which those wait already need no edge. A node that decides, or may touch anything, waits for all
before it, and all after it wait for it: a barrier. So is one node in WINDOW, which bounds the
comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.records import dataclass

WINDOW = 32  # nodes: each is compared with all before it in its window

Memory = tuple[object, int]


@dataclass(frozen=True, slots=True)
class Touch:
    """The bytes from `start` to `end` of a memory."""

    memory: Memory
    start: int
    end: int
    is_written: bool


Touches = tuple[Touch, ...] | None  # None: unknown


def waits(nodes: Sequence[Touches]) -> list[tuple[int, ...]]:
    """For each node, the numbers of the earlier nodes that it waits for.

    >>> x, y = (Touch(("x", 0), 0, 4, written) for written in (False, True))
    >>> waits([(x,), (x,), (y,)])
    [(), (), (0, 1)]
    """
    before: list[tuple[int, ...]] = []
    ancestors: list[int] = []  # of each node in the window: a bit for each node of the window
    first, barrier = 0, False  # the window's first node, and whether it is a barrier
    for number, touches in enumerate(nodes):
        if touches is None or number - first >= WINDOW:
            before.append(_sinks(range(first, number), before))
            first, barrier, ancestors = number, True, [0]
            continue
        conflicts = [k for k in range(first, number) if (barrier and k == first) or _meet(nodes[k], touches)]
        edges, reachable = [], 0
        # From the latest on: its ancestors are then known to be waited for.
        for k in reversed(conflicts):
            if not reachable >> (k - first) & 1:
                edges.append(k)
                reachable |= ancestors[k - first] | 1 << (k - first)
        before.append(tuple(reversed(edges)))
        ancestors.append(reachable)
    return before


def _sinks(window: range, before: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The nodes of the window for which no other of its nodes waits."""
    waited_for = {k for number in window for k in before[number]}
    return tuple(k for k in window if k not in waited_for)


def _meet(a: Touches, b: Touches) -> bool:
    return a is None or b is None or any(_overlap(x, y) for x in a for y in b)


def _overlap(a: Touch, b: Touch) -> bool:
    is_shared = a.memory == b.memory and a.start < b.end and b.start < a.end
    return is_shared and (a.is_written or b.is_written)
