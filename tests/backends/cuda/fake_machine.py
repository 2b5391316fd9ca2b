"""A machine of several CUDA devices that do not exist, behind one driver.

A call goes to the device whose context is current in the thread, as the driver's do, and an address
of another device is an error. A device only makes progress while an event is being queried. A
collective that spans several streams (`Meeting`, see fake_nccl.py) waits until all streams have
reached it; if they never can, a wait for the stream is an error instead of a deadlock.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from rune.backends import Device, cuda, devices
from rune.backends.cuda import by_bindings
from rune.lowering.kernel.nodes import KernelCode
from tests.backends.cuda.fake import Devices, FakeCuda, Stack, without_compiler

BYTES = 1 << 24  # of each device
_serials = itertools.count()


class Hang(AssertionError):
    """A stream that would wait forever."""


class FakeDevice(FakeCuda):
    """One of several."""

    def __init__(self, machine: Machine, number: int):
        super().__init__(total=BYTES, number=number, stack=machine.stack)
        self.machine, self.lock, self.modules = machine, machine.lock, machine.modules
        self.is_busy = False

    def device(self) -> Any:
        record = super().device()
        record.name = lambda: self.machine.name
        return record

    def poll(self) -> None:
        with self.lock:
            if self.queue and not (self.machine.is_paused or self.fault or self.is_stuck(1)):
                self.step()

    def step(self) -> None:
        if self.fault is not None or self.is_stuck(1):
            raise Hang(f"cuda:{self.number} waits for ever")
        assert not self.is_busy, "two streams wait for each other"
        self.is_busy = True
        try:
            super().step()
        finally:
            self.is_busy = False

    def is_stuck(self, count: int) -> bool:
        """Whether one of the commands that are next will never end."""
        return any(isinstance(work, Arrival) and work.is_stuck() for work in self.queue[:count])


@dataclass(eq=False)
class Meeting:
    """An operation on several streams, which runs when all of them have reached it.

    releases: who waits no longer. positions: by member, the number of its command
    """

    members: Mapping[int, FakeDevice]
    act: Callable[[], None]
    releases: set[int]
    positions: dict[int, int] = field(default_factory=dict)
    arrivals: set[int] = field(default_factory=set)
    has_acted: bool = False

    def enqueue(self, member: int) -> None:
        """Put it on the stream of a member."""
        device = self.members[member]
        with device.lock:
            device.enqueue(Arrival(self, member))
            self.positions[member] = device.enqueue_count

    def others(self, member: int) -> Iterator[int]:
        """Those who have still to come."""
        return (m for m in self.members if m != member and m not in self.arrivals)


@dataclass(frozen=True, eq=False)
class Arrival:
    """A member's stream comes to a meeting."""

    meeting: Meeting
    member: int

    def __call__(self) -> None:
        meeting = self.meeting
        if self.member in meeting.releases:
            return
        meeting.arrivals.add(self.member)
        for other in [*meeting.others(self.member)]:
            if other not in meeting.arrivals:  # others that came for its sake
                meeting.members[other].drain(meeting.positions[other])
        if not meeting.has_acted and meeting.arrivals == set(meeting.members):
            meeting.has_acted = True
            meeting.act()

    def is_stuck(self) -> bool:
        meeting = self.meeting
        return self.member not in meeting.releases and any(map(self._never_comes, meeting.others(self.member)))

    def _never_comes(self, other: int) -> bool:
        meeting, device = self.meeting, self.meeting.members[other]
        if other not in meeting.positions or other in meeting.releases or device.fault is not None:
            return True
        return device.is_stuck(meeting.positions[other] - device.done_count - 1)


class CurrentDevice:
    """One side of the driver, on the device whose context is current."""

    def __init__(self, machine: Machine, side: str):
        self.machine, self.side = machine, side

    def __getattr__(self, name: str) -> Any:
        if name == "Device":
            return AllDevices(self.machine)
        return getattr(getattr(self.machine.current_device(), self.side), name)


class AllDevices(Devices):
    """pycuda's class Device."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def count(self) -> int:
        return len(self.machine.devices)

    def __call__(self, number: int) -> Any:
        return self.machine.devices[number].device()


class Machine:
    """The devices, and the driver as rune sees it. is_paused: no time goes by."""

    def __init__(self, count: int):
        self.stack, self.lock = Stack(), threading.RLock()
        self.modules: dict[bytes, Mapping[str, KernelCode]] = {}
        self.name = f"Fake of machine {next(_serials)}"  # a device is opened once, by what it is
        self.is_paused = False
        self.devices = [FakeDevice(self, n) for n in range(count)]
        self.driver, self.bindings = CurrentDevice(self, "driver"), CurrentDevice(self, "bindings")

    def current_device(self) -> FakeDevice:
        """The device whose context is current; the first for what needs none."""
        contexts = self.stack.contexts
        return self.devices[contexts[-1].number if contexts else 0]

    def depths(self) -> list[int]:
        """How often the context of each device is on this thread's stack."""
        return [d.context.depth() for d in self.devices]


def opened(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> list[Device]:
    """The devices as `rune.devices()` would list them."""
    devices()  # it queries the real driver once for the process, and must not see these devices
    monkeypatch.setattr("rune.backends._open_backends", [])  # no later test waits for them
    monkeypatch.setattr(by_bindings, "bindings", lambda: machine.bindings)
    monkeypatch.setattr(cuda, "version", lambda: (13, 5))
    monkeypatch.setattr(cuda, "full_version", lambda: "13.5.37")
    monkeypatch.setattr(cuda, "supported", lambda: (80, 90))
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "load", lambda: machine.driver)
    targets, reason = cuda.probe()
    assert reason is None

    def open_device(target: Any) -> Any:
        backend = cuda.open_device(target)
        return without_compiler(monkeypatch, backend, machine.devices[backend.number])

    return [Device(target, SimpleNamespace(open_device=open_device)) for target in targets]


@contextmanager
def machine_of(count: int) -> Iterator[tuple[Machine, list[Device]]]:
    """A machine, as long as the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(count)
        yield machine, opened(patch, machine)
