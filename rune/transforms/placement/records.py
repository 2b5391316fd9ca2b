"""Records of the speeds of devices, alone, together and between each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rune.profiling import aligned, time_text
from rune.records import dataclass
from rune.transforms.placement.curves import Curve


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of one device while the others are idle.

    call_seconds:          an empty call [s]
    step_seconds:          one more step in a program [s]
    products:              matrix products, by their operations, a multiply-add as two
    streams:               elementwise kernels, by the bytes that they read and write
    operations_per_second: scalar operations, in units of one addition [1/s]
    """

    device: str
    description: str
    call_seconds: float
    step_seconds: float
    products: Curve
    streams: Curve
    operations_per_second: float


@dataclass(frozen=True, slots=True)
class Link:
    """The time for two devices to exchange the same amount: a ppermute, by its bytes."""

    first: str
    second: str
    moves: Curve


@dataclass(frozen=True, slots=True)
class Group:
    """The speeds of the first few of the devices together.

    call_seconds: a call of a program in which they have to meet, without the meeting [s]
    products:     the time of a matrix product while all devices compute one, over that of one alone
    streams:      an elementwise kernel of each, by the bytes that it reads and writes
    moves:        a ppermute in a ring, by the bytes that each device sends
    sums:         a psum, by the bytes that each would send (Exchange.bytes_sent)
    """

    devices: int
    call_seconds: float
    products: float
    streams: Curve
    moves: Curve
    sums: Curve


@dataclass(frozen=True, slots=True)
class Measurements:
    """The results of `rune.measure_devices`; their text is a set of tables."""

    speeds: tuple[Speed, ...]
    links: tuple[Link, ...]
    groups: tuple[Group, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices."""
        return tuple(s.device for s in self.speeds)

    def speed(self, device: str) -> Speed:
        """The speed of a device alone. Errors: KeyError for one that was not measured."""
        return {s.device: s for s in self.speeds}[device]

    def link(self, first: str, second: str) -> Link:
        """The link between two devices. Errors: KeyError as for `speed`."""
        # A link is measured once, in both directions at the same time.
        return {frozenset((k.first, k.second)): k for k in self.links}[frozenset((first, second))]

    def group(self, devices: int) -> Group:
        """The record of a number of devices together: that of the smallest measured group of them.

        Beyond the largest, waits grow like the depth of a tree, with the logarithm of the number.
        """
        enough = [g for g in self.groups if g.devices >= devices]
        if enough:
            return enough[0]
        largest = self.groups[-1]
        levels = math.log2(devices) / math.log2(largest.devices) - 1
        # The rates of the largest group remain: a larger one has not been measured.
        moves, sums = (c.delayed(levels * c.latency) for c in (largest.moves, largest.sums))
        return replace(largest, devices=devices, moves=moves, sums=sums)

    def call_seconds(self, devices: Sequence[str]) -> float:
        """The cost of a call in which these devices take part."""
        if len(devices) == 1:
            return self.speed(devices[0]).call_seconds
        return self.group(len(devices)).call_seconds

    def speed_among(self, device: str, devices: int) -> Speed:
        """The speed of a device while this number of devices compute, itself included."""
        alone = self.speed(device)
        if devices == 1:
            return alone
        group = self.group(devices)
        speeds = self.speeds[: group.devices]

        # In a group the slowest device decides, so it is compared with the slowest one alone.
        def slower(amount: float) -> float:
            measured_amount = group.streams.clamped(amount)
            alone_seconds = max(s.streams.seconds(measured_amount) for s in speeds)
            # Noise may make devices look faster together than alone.
            return max(1.0, group.streams.seconds(measured_amount) / alone_seconds)

        return replace(
            alone,
            products=alone.products.scaled(lambda _: group.products),
            streams=alone.streams.scaled(slower),
            # Not measured together: taken to suffer as products do, which use the same cores.
            operations_per_second=alone.operations_per_second / group.products,
        )

    def __str__(self) -> str:
        tables = [_table("device", map(_speed_cells, self.speeds), _SPEED)]
        if self.links:
            tables += [_table("link", map(_link_cells, self.links), _LINK)]
            tables += [_table("together", map(_group_cells, self.groups), _GROUP)]
        return "\n\n".join(tables)

    __repr__ = __str__


# The last column of a table aligns left, so tables of numbers alone end with an empty one.
_SPEED = ("call", "step", "products", "elementwise", "operations", "what it is")
_LINK = ("latency", "each way", "")
_GROUP = ("call", "collective", "each sends", "in a sum", "products", "elementwise", "")


def _table(first: str, rows: object, head: Sequence[str]) -> str:
    return "\n".join(aligned([(first, *head), *rows]))  # type: ignore[misc]


def _speed_cells(speed: Speed) -> tuple[str, ...]:
    return (
        speed.device,
        time_text(speed.call_seconds),
        time_text(speed.step_seconds),
        rate_text(speed.products.rate, "FLOP/s"),
        rate_text(speed.streams.rate, "B/s"),
        rate_text(speed.operations_per_second, "/s"),
        speed.description,
    )


def _link_cells(link: Link) -> tuple[str, ...]:
    return f"{link.first} and {link.second}", time_text(link.moves.latency), rate_text(link.moves.rate, "B/s"), ""


def _group_cells(group: Group) -> tuple[str, ...]:
    return (
        f"{group.devices} devices",
        time_text(group.call_seconds),
        time_text(group.sums.latency),
        rate_text(group.moves.rate, "B/s"),
        rate_text(group.sums.rate, "B/s"),
        f"{group.products:.2f} times as long",
        f"{rate_text(group.streams.rate, 'B/s')} each",
        "",
    )


def rate_text(rate: float, unit: str) -> str:
    """A rate for people.

    >>> rate_text(4.32e9, "B/s"), rate_text(12.0, "/s")
    ('4.32 GB/s', '12 /s')
    """
    for prefix, power in (("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        # Rounded to three digits, 0.9995 of a unit is 1 of it.
        if rate >= 0.9995 * 10**power:
            return f"{rate / 10**power:.3g} {prefix}{unit}"
    return f"{rate:.3g} {unit}"
