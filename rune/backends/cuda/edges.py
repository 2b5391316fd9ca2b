"""Which nodes of a graph wait for which, so that independent steps run side by side.

    a reads x, writes y          b waits for a: it reads y
    b reads y, writes z    ->    c waits for nothing: a, b and c touch x alike, and only read it
    c reads x, writes w          d waits for b and c
    d reads z and w

A node waits for earlier ones that touch the same bytes, where one of both writes. What they wait
for in turn needs no edge. Nodes that decide, or that may touch anything, wait for all
before them, and all behind wait for them; so does one node in WINDOW, which bounds the comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.records import dataclass

WINDOW = 32

Memory = tuple[object, int]


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes from `start` to `end` of some memory."""

    memory: Memory
    start: int
    end: int
    is_written: bool


Touches = tuple[Touch, ...] | None  # None: unknown


def waits(nodes: Sequence[Touches]) -> list[tuple[int, ...]]:
    """For each node the earlier ones that it waits for, by number.

    >>> x, y = (Touch(("x", 0), 0, 4, written) for written in (False, True))
    >>> waits([(x,), (x,), (y,)])
    [(), (), (0, 1)]
    """
    before: list[tuple[int, ...]] = []
    ancestors: list[int] = []  # of each node since the last barrier: a bit for each of these
    first, barrier = 0, False  # of these, and whether all others wait for it
    for number, touches in enumerate(nodes):
        if touches is None or number - first >= WINDOW:
            before.append(_sinks(range(first, number), before))
            first, barrier, ancestors = number, True, [0]
            continue
        met = [k for k in range(first, number) if (barrier and k == first) or _meet(nodes[k], touches)]
        edges, covered = [], 0
        for k in reversed(met):
            if not covered >> (k - first) & 1:
                edges.append(k)
                covered |= ancestors[k - first] | 1 << (k - first)
        before.append(tuple(reversed(edges)))
        ancestors.append(covered)
    return before


def _sinks(window: range, before: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Those for which no other one of the window waits."""
    waited_for = {k for number in window for k in before[number]}
    return tuple(k for k in window if k not in waited_for)


def _meet(a: Touches, b: Touches) -> bool:
    return a is None or b is None or any(_overlap(x, y) for x in a for y in b)


def _overlap(a: Touch, b: Touch) -> bool:
    is_shared = a.memory == b.memory and a.start < b.end and b.start < a.end
    return is_shared and (a.is_written or b.is_written)
