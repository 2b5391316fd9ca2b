"""Meetings: how the devices that run one program exchange values, in the middle of it.

A run of a program on a mesh has a `Table`, and each device a `Seat` at it. A collective is a host
function: it finds the seat of the device whose thread calls it, and meets the group of devices that
differ from it along one axis. The last to arrive combines the operands of all, in the order of
their places, so that nothing depends on timing.

    table = Table({"data": 2}, ("cpu:0", "cpu:1"))
    table.run(0, executable, buffers)                # in the thread of the first device

No device waits forever. A device that fails, ends, or comes to another collective ends the waits of
all; so does the last device to begin a wait if no running device could end one.

If a mesh has devices of other processes, those of this process meet first, and the last of them to
arrive crosses to the others (lowering/crossings.py).
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from queue import SimpleQueue
from typing import Protocol, TypeVar

import numpy as np

from rune import locks
from rune.core.axes import names_of
from rune.core.primitive import Collective
from rune.core.types import ArrayType
from rune.errors import CollectiveError
from rune.records import dataclass

R = TypeVar("R")
Arrays = list[np.ndarray]
Wait = SimpleQueue[None]  # of one device; it gets an item at the end of a meeting
Key = tuple[Hashable, int]  # of a group: the axis, None for all, and the number of its first member
Params = Mapping[str, Hashable]  # of a collective
HostFunction = Callable[[Sequence[np.ndarray], Sequence[ArrayType]], Arrays]


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """A collective as a host function, which the thread of a device calls.

    With several operands it is as many collectives of one kind, in one message (messages.py).
    """

    primitive: Collective
    params: tuple[tuple[str, Hashable], ...]

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> Arrays:
        """The results of this device."""
        return _current_seat().exchange(self, list(arrays), types)

    @property
    def axis_name(self) -> Hashable:
        """The axis along which the devices of a group differ."""
        return dict(self.params)["axis_name"]

    def among(self, operands: Sequence[Arrays], types: Sequence[ArrayType]) -> list[Arrays]:
        """The results of all devices of a group; operands and results in their order."""
        assert self.primitive.among is not None
        with np.errstate(all="ignore"):
            columns = [self.primitive.among(column, **dict(self.params)) for column in zip(*operands, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    def __str__(self) -> str:
        return f"{self.primitive.name} over {self.axis_name!r}"


def axis_of(params: Params, name: str) -> int:
    """An axis among the parameters of a collective."""
    axis = params[name]
    assert isinstance(axis, int)
    return axis


@dataclass(frozen=True, slots=True, eq=False)
class OnceCall:
    """A host function that one device calls for all of them, as all have the same operands.

    With several processes, each process calls it once.
    """

    call: HostFunction
    axis_name: None = None

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> Arrays:
        """The results of the function."""
        return _current_seat().exchange(self, list(arrays), types)

    def among(self, operands: Sequence[Arrays], types: Sequence[ArrayType]) -> list[Arrays]:
        """The results of one call, for everyone."""
        return [self.call([np.array(x) for x in operands[0]], types)] * len(operands)

    def __str__(self) -> str:
        return str(self.call)


@dataclass(frozen=True, slots=True)
class PlaceCall:
    """The place of this device along an axis, as a host function."""

    axis_name: Hashable

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> Arrays:
        """i32[]: a number below the size of the axis."""
        return [np.asarray(_current_seat().place(self.axis_name), types[0].dtype)]

    def __str__(self) -> str:
        return f"place along {self.axis_name!r}"


Call = CollectiveCall | OnceCall


class Crosses(Protocol):
    """How a run reaches the devices of other processes: see lowering/crossings.py.

    local: the numbers of the devices of this process
    """

    local: frozenset[int]

    def meet(self, call: CollectiveCall, members: Sequence[int], operands: Mapping[int, Arrays]) -> dict[int, Arrays]:
        """The results of the local members of a group, from their operands and those of others.

        Errors: DistributedError.
        """
        ...

    def alarm(self, error: BaseException) -> None:
        """Tell the other processes that this one cannot continue the run."""
        ...


@dataclass(slots=True, eq=False)
class Meeting:
    """One call of one group: its members, operands and results.

    members:  the numbers of the devices, in the order of their places along the axis
    local:    the members of this process
    operands: of the members that have arrived
    results:  of the local members, once `combine` has computed them
    """

    call: Call
    types: Sequence[ArrayType]
    members: tuple[int, ...]
    local: tuple[int, ...]
    operands: dict[int, Arrays] = field(default_factory=dict)
    results: dict[int, Arrays] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)

    def combine(self, crossing: Crosses | None) -> None:
        """Compute all results, in the thread of the last member to arrive."""
        if self.local != self.members and crossing is not None and isinstance(self.call, CollectiveCall):
            self.results.update(crossing.meet(self.call, self.members, self.operands))
            return
        results = self.call.among([self.operands[n] for n in self.local], self.types)
        self.results.update(zip(self.local, results, strict=True))

    def new_wait(self) -> Wait:
        """The wait of one more device for the end of the meeting."""
        wait: Wait = SimpleQueue()
        self.waits.append(wait)
        return wait

    def end(self) -> None:
        """Let all waiting members continue."""
        while self.waits:
            self.waits.pop().put(None)

    @property
    def absent(self) -> list[int]:
        """The local members that have not arrived yet."""
        return [n for n in self.local if n not in self.operands]


@dataclass(frozen=True, slots=True)
class Grid:
    """The devices of a mesh: the axes with their sizes, and the names of the devices in order.

    >>> grid = Grid({"a": 2, "b": 3}, tuple("uvwxyz"))
    >>> grid.group(4, "a"), grid.group(4, "b"), grid.place(4, "b")
    ((1, 4), (3, 4, 5), 1)
    >>> grid.group(4, ("b", "a")), grid.place(4, ("b", "a"))
    ((0, 3, 1, 4, 2, 5), 3)
    """

    axes: Mapping[Hashable, int]
    devices: Sequence[str]

    def place(self, number: int, axis_name: Hashable) -> int:
        """The place of a device along an axis, or along several, the first outermost."""
        place = 0
        for name in names_of(axis_name):
            place = place * self.axes[name] + self._along(number, name)
        return place

    def group(self, number: int, axis_name: Hashable) -> tuple[int, ...]:
        """This device and those that differ from it along the axes, in order; all for no axis."""
        if axis_name is None:
            return tuple(range(len(self.devices)))
        names = names_of(axis_name)
        members = [number - sum(self._along(number, name) * self._stride(name) for name in names)]
        for name in names:
            places = range(self.axes[name])
            members = [member + place * self._stride(name) for member in members for place in places]
        return tuple(members)

    def _along(self, number: int, name: Hashable) -> int:
        return number // self._stride(name) % self.axes[name]

    def _stride(self, name: Hashable) -> int:
        """The distance of neighbours along an axis in the order of the devices."""
        sizes = itertools.dropwhile(lambda item: item[0] != name, self.axes.items())
        return math.prod(size for other, size in sizes if other != name)

    def disagreement(self, number: int, call: object, other: int, other_call: object) -> CollectiveError:
        """The error of two devices of a group that make different calls."""
        pair = f"{self.devices[number]} cannot meet {self.devices[other]}"
        return CollectiveError(
            f"{call}: {pair}, which is in {other_call}", hint="all devices run the same collectives in one order"
        )

    def mismatch(self, number: int, call: object, operands: str, other: int, others: str) -> CollectiveError:
        """The error of two devices that make one call with operands of different types."""
        pair = f"{self.devices[number]} cannot meet {self.devices[other]}"
        return CollectiveError(f"{call}: {pair} ({operands} and {others})")

    def standstill(self, meetings: Iterable[tuple[object, Sequence[int], Sequence[int]]]) -> CollectiveError:
        """The error of devices that wait in vain: calls, members that arrived, and those absent."""
        waits = "; ".join(
            f"{self._names(present)} in {call} for {self._names(absent)}" for call, present, absent in meetings
        )
        return CollectiveError(f"collective: cannot go on, since devices wait for others in vain ({waits})")

    def _names(self, numbers: Sequence[int]) -> str:
        return ", ".join(self.devices[n] for n in numbers)


class Table:
    """The meetings of one run on a grid; with a crossing, some devices are in other processes."""

    def __init__(self, axes: Mapping[Hashable, int], devices: Sequence[str], crossing: Crosses | None = None):
        self.grid = Grid(axes, devices)
        self.failure: BaseException | None = None
        self._crossing = crossing
        self._local = frozenset(range(len(devices))) if crossing is None else crossing.local
        self._lock = locks.lock()
        self._open: dict[Key, Meeting] = {}
        self._running, self._waiting = len(self._local), 0

    def run(self, number: int, function: Callable[..., R], *args: object) -> R:
        """`function(*args)` as this device's part of the program, in the current thread.

        An error in it ends the waits of all other devices.
        """
        _seats.seat = Seat(self, number)
        try:
            result = function(*args)
            self._leave()
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            _seats.seat = None
        return result

    def exchange(self, number: int, call: Call, operands: Arrays, types: Sequence[ArrayType]) -> Arrays:
        """The results of a device for its operands. Errors: CollectiveError; those of its call."""
        meeting, wait = self._attend(number, call, operands, types)
        if wait is None:
            self._combine(meeting)
        else:
            wait.get()
        if number not in meeting.results:
            raise self._broken(call)
        return meeting.results[number]

    def _broken(self, call: Call) -> BaseException:
        """The error of a device whose collective cannot end."""
        if isinstance(self.failure, CollectiveError):
            return self.failure
        return CollectiveError(f"{call}: cannot go on (another device raised {self.failure!r})")

    def _attend(
        self, number: int, call: Call, operands: Arrays, types: Sequence[ArrayType]
    ) -> tuple[Meeting, Wait | None]:
        """The meeting of a device's group, and its wait; no wait for the last to arrive."""
        members = self.grid.group(number, call.axis_name)
        local = tuple(n for n in members if n in self._local)
        key = call.axis_name, members[0]
        with self._lock:
            if self.failure is not None:
                raise self._broken(call)
            meeting = self._open.setdefault(key, Meeting(call, types, members, local))
            self._check_agreement(meeting, number, call, operands)
            meeting.operands[number] = operands
            if len(meeting.operands) == len(local):
                del self._open[key]
                self._waiting -= len(local) - 1
                return meeting, None
            self._waiting += 1
            self._check_progress()
            return meeting, meeting.new_wait()

    def _combine(self, meeting: Meeting) -> None:
        try:
            meeting.combine(self._crossing)
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            meeting.end()

    def _check_agreement(self, meeting: Meeting, number: int, call: Call, operands: Arrays) -> None:
        """Raise CollectiveError if the device cannot take part in the meeting."""
        if not meeting.operands:
            return
        other, other_operands = next(iter(meeting.operands.items()))
        if meeting.call != call:
            raise self.grid.disagreement(number, call, other, meeting.call)
        if [(x.shape, x.dtype) for x in operands] != [(x.shape, x.dtype) for x in other_operands]:
            raise self.grid.mismatch(number, call, _described(operands), other, _described(other_operands))

    def _leave(self) -> None:
        """Record that a device has reached the end of its program."""
        with self._lock:
            self._running -= 1
            try:
                self._check_progress()
            except CollectiveError as error:
                standstill = error
            else:
                return
        self.fail(standstill)

    def _check_progress(self) -> None:
        """Raise CollectiveError if devices wait and no running device could end a wait."""
        if self._waiting and self._waiting >= self._running:
            raise self.grid.standstill((m.call, sorted(m.operands), m.absent) for m in self._open.values())

    def fail(self, error: BaseException) -> None:
        """End all waits, since a device cannot continue."""
        with self._lock:
            is_first = self.failure is None
            self.failure = self.failure or error
            meetings = tuple(self._open.values())
        if is_first and self._crossing is not None:
            self._crossing.alarm(error)
        for meeting in meetings:
            meeting.end()


def _described(arrays: Arrays) -> str:
    return ", ".join(f"{x.dtype}{list(x.shape)}" for x in arrays)


@dataclass(frozen=True, slots=True)
class Seat:
    """A device's part in a run."""

    table: Table
    number: int

    def place(self, axis_name: Hashable) -> int:
        """The place of the device along an axis."""
        return self.table.grid.place(self.number, axis_name)

    def exchange(self, call: Call, operands: Arrays, types: Sequence[ArrayType]) -> Arrays:
        """The results of the device for its operands."""
        return self.table.exchange(self.number, call, operands, types)


class _Seats(threading.local):
    """The seat of the device whose part of a program this thread runs."""

    seat: Seat | None = None


_seats = _Seats()


def is_seated() -> bool:
    """Whether this thread runs a device's part of a program on a mesh."""
    return _seats.seat is not None


def _current_seat() -> Seat:
    assert _seats.seat is not None, "a collective runs in a program of a mesh"
    return _seats.seat
