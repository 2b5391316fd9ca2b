"""Ends waits for devices that were lost in a collective, so that no caller waits for ever.

A collective on a stream ends when all devices of its group have reached it. A device that is lost,
by a kernel's fault, never does, and the driver does not tell the others. So a thread that waits for
a device in a collective also polls the other devices and NCCL. If one of them has failed, the
communicators are aborted, which ends the collective; the devices that waited in it count as lost
too, because later work on their streams would read results that were never written.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from rune import locks
from rune.backends.cuda.nccl.communicators import Clique, Communicators
from rune.backends.cuda.nccl.library import Refused
from rune.backends.shared.turns import Turns
from rune.errors import DeviceError
from rune.lowering.codegen.target import Target
from rune.records import dataclass

PAUSE = 5e-5  # between two polls [s]


class Peer(Protocol):
    """The part of a device that this module uses."""

    target: Target
    turns: Turns
    exchanges: Exchanges

    def marker(self) -> Callable[[], bool]:
        """A function that says whether all work enqueued until now has ended."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """The collectives of one run. markers: for each device, whether it has ended them."""

    devices: Sequence[Peer]
    markers: Sequence[Callable[[], bool]]
    cliques: Sequence[Clique]
    nccl: Communicators

    @staticmethod
    def watch(devices: Sequence[Peer], cliques: Sequence[Clique], nccl: Communicators) -> None:
        """Add a run to the exchanges of its devices, after all of its steps are enqueued."""
        exchange = Exchange(devices, [d.marker() for d in devices], cliques, nccl)
        for device in devices:
            device.exchanges.add(device, exchange)

    def has_ended(self, device: Peer) -> bool:
        """Whether this device has ended all collectives of the run."""
        return self.markers[self.devices.index(device)]()

    def look(self, device: Peer) -> None:
        """Errors: DeviceError if another device is lost, or a collective has failed."""
        for other, has_ended in zip(self.devices, self.markers, strict=True):
            if other is not device:
                try:
                    has_ended()
                except DeviceError as error:
                    raise self._lose(f"{other.target.name}, which it waits for in a collective, is lost") from error
        try:
            for clique in self.cliques:
                clique.check()
        except Refused as error:
            raise self._lose(f"a collective that it waits for has failed: {error}") from error

    def _lose(self, why: str) -> DeviceError:
        """Mark the waiting devices as lost, and abort their collectives."""
        # Before the abort, which ends their markers.
        waiting = [d for d in self.devices if d.turns.loss is None and not self.has_ended(d)]
        for clique in self.cliques:
            self.nccl.abort(clique)
        for device in waiting:
            device.turns.loss = why
        names = ", ".join(d.target.name for d in waiting)
        return DeviceError(
            f"{names}: cannot go on ({why})",
            hint="arrays there are gone; use other devices, or start the process again",
        )


class Exchanges:
    """The exchanges of a device that are not known to have ended. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._exchanges: deque[Exchange] = deque()

    def add(self, device: Peer, exchange: Exchange) -> None:
        """Add one."""
        self.oldest(device)  # drops those that have ended, so that the list stays short
        with self._lock:
            self._exchanges.append(exchange)

    def oldest(self, device: Peer) -> Exchange | None:
        """The exchange that ends next; None if all have ended."""
        with self._lock:
            while self._exchanges and self._exchanges[0].has_ended(device):
                self._exchanges.popleft()
            return self._exchanges[0] if self._exchanges else None


def settle(device: Peer) -> None:
    """Wait until all of its exchanges have ended. Errors: DeviceError if one never will."""
    # By polling, and not by waiting for the stream: that wait could never end.
    while (exchange := device.exchanges.oldest(device)) is not None:
        exchange.look(device)
        time.sleep(PAUSE)
