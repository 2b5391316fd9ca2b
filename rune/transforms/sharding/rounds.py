"""Rounds: which device sends which piece to which, where a span becomes one with another share.

    x[:4] of 8 elements on four devices, in parts      share 2 -> 1

    device 0    0 1     ->  0          round 0    0 sends 1 to device 1, 1 sends 2 to device 2
    device 1    2 3     ->  1          round 1    1 sends 3 to device 3
    device 2    . .     ->  2
    device 3    . .     ->  3

A target is cut in chunks that one device has each. In a round a device sends one chunk at most and
gets one at most, from a place of its block that is a number of its own. Elements outside of the
axis are not sent.

Source: messages are the edges between senders and receivers, rounds their colours. D. König, "Über
        Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre", 1916: as many rounds
        as one device sends or gets would do. The first round that is free, as here, may need more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

from rune.records import dataclass
from rune.transforms.sharding.span import Span

MOST_ROUNDS = 8  # more are not tried


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of an exchange.

    size:   the elements of a chunk
    width:  the elements of the source on each device
    pairs:  for each round, the receiver of each device that sends
    starts: for each round, where in its block each device's message begins
    chunks: for each chunk, where each device finds it in its block and the rounds' messages behind
    """

    size: int
    width: int
    pairs: tuple[tuple[tuple[int, int], ...], ...]
    starts: tuple[tuple[int, ...], ...]
    chunks: tuple[tuple[int, ...], ...]

    @property
    def sent(self) -> int:
        """How many elements a device sends."""
        return self.size * len(self.pairs)


@functools.lru_cache(maxsize=4096)
def rounds(source: Span, target: Span, length: int, devices: int) -> Rounds | None:
    """The rounds for the target's elements of an axis of this length; None if they are too many."""
    even = math.gcd(source.share, target.share, abs(target.first - source.first))
    # Devices that have all of their target need no chunks.
    plans = (_rounds(source, target, length, devices, size) for size in (target.width, min(even, target.width)))
    return next((plan for plan in plans if plan is not None), None)


def _rounds(source: Span, target: Span, length: int, devices: int, size: int) -> Rounds | None:
    count = -(-target.width // size)
    chunks = [[0] * devices for _ in range(count)]
    senders: list[dict[int, tuple[int, int]]] = []  # for each round: receiver and start of each sender
    for receiver in range(devices):
        for number in range(count):
            first = target.first + receiver * target.share + number * size
            if first >= length or first + size <= 0:
                continue
            owner = _owner(source, first, size, receiver, devices)
            if owner is None:
                return None
            start = first - source.first - owner * source.share
            if owner != receiver:
                start = source.width + size * _send(senders, owner, receiver, start)
            chunks[number][receiver] = start
    if len(senders) > MOST_ROUNDS:
        return None
    return Rounds(
        size,
        source.width,
        tuple(tuple((sender, receiver) for sender, (receiver, _) in sorted(r.items())) for r in senders),
        tuple(tuple(_start(r, device) for device in range(devices)) for r in senders),
        tuple(map(tuple, chunks)),
    )


def _owner(source: Span, first: int, size: int, receiver: int, devices: int) -> int | None:
    """The device that has these elements, the receiver itself if possible; None without one."""
    nearest = min(max((first - source.first) // source.share, 0), devices - 1)
    for device in (receiver, nearest):
        start = first - source.first - device * source.share
        if 0 <= start <= source.width - size:
            return device
    return None


def _send(senders: list[dict[int, tuple[int, int]]], sender: int, receiver: int, start: int) -> int:
    """The first round in which both are free, which then has this message."""
    number = 0
    while number < len(senders) and not _is_free(senders[number], sender, receiver):
        number += 1
    if number == len(senders):
        senders.append({})
    senders[number][sender] = receiver, start
    return number


def _is_free(messages: Mapping[int, tuple[int, int]], sender: int, receiver: int) -> bool:
    return sender not in messages and all(receiver != other for other, _ in messages.values())


def _start(messages: Mapping[int, tuple[int, int]], device: int) -> int:
    return messages[device][1] if device in messages else 0
