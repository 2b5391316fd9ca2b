"""Devices that are lost while others wait for them: nobody waits for ever.

A collective on a stream ends when all devices of its group have come to it. One that is lost, by
the fault of a kernel, never comes; the driver does not tell the others. So whoever waits for a
device that may still be in a collective looks at the others now and then, and at NCCL. Where
something went wrong, the communicators are aborted, which ends what waits; the devices that did
wait are lost too, since what stands behind the collective on their streams comes from nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from rune import locks
from rune.backends.cuda.nccl.communicators import Clique, Communicators
from rune.backends.cuda.nccl.library import Refused
from rune.errors import DeviceError
from rune.lowering.codegen.target import Target
from rune.records import dataclass

PAUSE = 5e-5  # between two looks [s]


class Peer(Protocol):
    """The part of a device that this is about."""

    target: Target
    lost: str | None
    exchanges: Exchanges

    def marker(self) -> Callable[[], bool]:
        """The question whether all that was enqueued until now has ended."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """The collectives of one run. markers: whether they have ended, for each device."""

    devices: Sequence[Peer]
    markers: Sequence[Callable[[], bool]]
    cliques: Sequence[Clique]
    nccl: Communicators

    @staticmethod
    def watch(devices: Sequence[Peer], cliques: Sequence[Clique], nccl: Communicators) -> None:
        """From now on look at the devices, which have what the run is for them on their streams."""
        exchange = Exchange(devices, [d.marker() for d in devices], cliques, nccl)
        for device in devices:
            device.exchanges.add(device, exchange)

    def has_ended(self, device: Peer) -> bool:
        """Whether it has for this device."""
        return self.markers[self.devices.index(device)]()

    def look(self, device: Peer) -> None:
        """Errors: DeviceError where the device waits for another in vain."""
        for other, has_ended in zip(self.devices, self.markers, strict=True):
            if other is not device:
                try:
                    has_ended()
                except DeviceError as error:
                    raise self._lost(f"{other.target.name}, which it waits for in a collective, is lost") from error
        try:
            for clique in self.cliques:
                clique.check()
        except Refused as error:
            raise self._lost(f"a collective that it waits for has failed: {error}") from error

    def _lost(self, why: str) -> DeviceError:
        """Give up all devices that wait, and end their waits."""
        waiting = [d for d in self.devices if d.lost is None and not self.has_ended(d)]
        for clique in self.cliques:
            self.nccl.abort(clique)
        for device in waiting:
            device.lost = why
        names = ", ".join(d.target.name for d in waiting)
        return DeviceError(
            f"{names}: cannot go on ({why})",
            hint="arrays there are gone; use other devices, or start the process again",
        )


class Exchanges:
    """The exchanges of a device that are not known to have ended, for any number of threads."""

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._listed: deque[Exchange] = deque()

    def add(self, device: Peer, exchange: Exchange) -> None:
        """One more; few are kept, as they end in their order."""
        self.oldest(device)
        with self._lock:
            self._listed.append(exchange)

    def oldest(self, device: Peer) -> Exchange | None:
        """The one that ends next; None if all have."""
        with self._lock:
            while self._listed and self._listed[0].has_ended(device):
                self._listed.popleft()
            return self._listed[0] if self._listed else None


def settle(device: Peer) -> None:
    """Wait until the device is in no exchange. Errors: DeviceError if one will never end."""
    while (exchange := device.exchanges.oldest(device)) is not None:
        exchange.look(device)
        time.sleep(PAUSE)
