"""The stand-in for NCCL refuses what NCCL's documentation forbids; otherwise it would test nothing.

Each misuse is a call through C, as rune makes it, which must return an error and be recorded in
`problems`; a correct call next to it shows that nothing else was wrong.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from rune.backends.cuda.nccl.library import DataType, Library, Operation, Refused
from tests.backends.cuda.fake import Code
from tests.backends.cuda.fake_machine import Hang, Machine, Meeting
from tests.backends.cuda.fake_nccl import FakeNccl, Misuse

F32, SUM = DataType.FLOAT32, Operation.SUM


class Two:
    """Two devices with a communicator and two arrays f32[4] each."""

    def __init__(self) -> None:
        self.machine = Machine(3)
        self.nccl = FakeNccl(self.machine)
        self.library: Library = self.nccl.library()
        self.communicators = self.clique(0, 1)
        self.source = [self.array(n, 16) for n in range(2)]
        self.target = [self.array(n, 16) for n in range(2)]
        self.streams = [d.stream for d in self.machine.devices]

    def clique(self, *devices: int) -> list[int]:
        handles = (ctypes.c_void_p * len(devices))()
        self.library.call("ncclCommInitAll", handles, len(devices), (ctypes.c_int * len(devices))(*devices))
        return [h or 0 for h in handles]

    def require_clique(self, *devices: int) -> None:
        self.clique(*devices)

    def array(self, number: int, nbytes: int) -> int:
        device = self.machine.devices[number]
        device.context.push()
        address = device.mem_alloc(nbytes).address
        device.context.pop()
        device.at(address, nbytes).view(np.float32)[:] = number + 1
        return address

    def all_reduce(self, number: int, count: int = 4, dtype: int = F32, stream: int | None = None) -> None:
        where = self.communicators[number], self.streams[number] if stream is None else stream
        self.library.call("ncclAllReduce", self.source[number], self.target[number], count, dtype, SUM, *where)

    def send(self, number: int, peer: int, count: int = 4) -> None:
        where = self.communicators[number], self.streams[number]
        self.library.call("ncclSend", self.source[number], count, F32, peer, *where)

    def receive(self, number: int, peer: int, count: int = 4) -> None:
        where = self.communicators[number], self.streams[number]
        self.library.call("ncclRecv", self.target[number], count, F32, peer, *where)

    def result(self, number: int) -> list[float]:
        device = self.machine.devices[number]
        device.drain()
        return device.at(self.target[number], 16).view(np.float32).tolist()


@pytest.fixture
def two() -> Two:
    return Two()


def test_a_legal_collective_runs_when_its_streams_reach_it(two: Two):
    with two.library.grouped():
        two.all_reduce(0)
        two.all_reduce(1)

    assert two.result(1) == two.result(0) == [3.0] * 4
    assert two.nccl.problems == []


def test_a_thread_that_waits_while_a_group_starts_finds_all_its_ranks_or_none(
    two: Two, monkeypatch: pytest.MonkeyPatch
):
    enqueue = Meeting.enqueue
    hangs: list[Hang] = []

    def drain() -> None:
        try:
            two.machine.devices[0].drain()
        except Hang as hang:
            hangs.append(hang)

    def enqueue_while_another_drains(meeting: Meeting, rank: int) -> None:
        enqueue(meeting, rank)
        if rank == 0:
            thread.start()
            time.sleep(0.05)  # in which a hang would show

    thread = threading.Thread(target=drain)
    monkeypatch.setattr(Meeting, "enqueue", enqueue_while_another_drains)

    with two.library.grouped():
        two.all_reduce(0)
        two.all_reduce(1)
    thread.join()

    assert hangs == []
    assert two.result(0) == [3.0] * 4


def test_sends_and_receives_of_a_group_happen_at_once(two: Two):
    with two.library.grouped():
        for number in range(2):
            two.send(number, 1 - number)
            two.receive(number, 1 - number)

    assert (two.result(0), two.result(1)) == ([2.0] * 4, [1.0] * 4)


def grouped(*calls: Callable[[Two], None]) -> Callable[[Two], None]:
    def misuse(two: Two) -> None:
        with two.library.grouped():
            for call in calls:
                call(two)

    return misuse


def aborted(two: Two) -> None:
    two.library.call("ncclCommAbort", two.communicators[0])
    grouped(lambda t: t.all_reduce(0), lambda t: t.all_reduce(1))(two)


def aborted_twice(two: Two) -> None:
    two.library.call("ncclCommAbort", two.communicators[0])
    two.library.call("ncclCommAbort", two.communicators[0])


def asked_after_abort(two: Two) -> None:
    two.library.call("ncclCommAbort", two.communicators[0])
    two.library.call("ncclCommGetAsyncError", two.communicators[0], ctypes.byref(ctypes.c_int()))


def freed(two: Two) -> None:
    del two.machine.devices[0].allocations[two.source[0]]
    two.all_reduce(0)


def into_its_own_source(two: Two) -> None:
    two.target[0] = two.source[0]
    with two.library.grouped():
        two.send(0, 1)
        two.receive(0, 1)
        two.send(1, 0)
        two.receive(1, 0)


def twice_into_one_array(two: Two) -> None:
    grouped(*(lambda t, n=n: t.all_reduce(n) for n in (0, 1, 0, 1)))(two)


MISUSES: dict[str, tuple[Callable[[Two], None], str]] = {
    "a rank stays away": (grouped(lambda t: t.all_reduce(0)), "a rank stays away"),
    "counts differ": (grouped(lambda t: t.all_reduce(0), lambda t: t.all_reduce(1, 3)), "ranks disagree"),
    "dtypes differ": (
        grouped(lambda t: t.all_reduce(0), lambda t: t.all_reduce(1, 4, DataType.INT32)),
        "ranks disagree",
    ),
    "no group": (lambda t: t.all_reduce(0), "several ranks and no group"),
    "a group that nobody began": (lambda t: t.library.call("ncclGroupEnd"), "no group was started"),
    "another device's stream": (grouped(lambda t: t.all_reduce(0, stream=t.streams[1])), "another device's"),
    "no such dtype": (grouped(lambda t: t.all_reduce(0, dtype=99)), "no dtype 99"),
    "memory beyond the end": (grouped(lambda t: t.all_reduce(0, 5)), "not allocated"),
    "memory that was given back": (grouped(freed), "not allocated"),
    "a send without a receive": (grouped(lambda t: t.send(0, 1)), "nobody receives"),
    "a receive without a send": (grouped(lambda t: t.receive(0, 1)), "nobody sends"),
    "sent and received counts differ": (grouped(lambda t: t.send(0, 1), lambda t: t.receive(1, 0, 3)), "received"),
    "no such rank": (grouped(lambda t: t.send(0, 2)), "no rank 2"),
    "a communicator that was aborted": (aborted, "not alive"),
    "a communicator that is aborted twice": (aborted_twice, "not alive"),
    "a question to one that was aborted": (asked_after_abort, "not alive"),
    "memory that is sent and received into": (into_its_own_source, "the same memory"),
    "one result of two calls": (twice_into_one_array, "the same memory"),
    "a device with two ranks": (lambda t: t.require_clique(1, 1), "two ranks"),
    "a device that is not there": (lambda t: t.require_clique(0, 5), "no such device"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_refused_and_noted(two: Two, name: str):
    misuse, reason = MISUSES[name]

    with pytest.raises(Refused, match="invalid usage"):
        misuse(two)
    assert any(isinstance(p, Misuse) and reason in str(p) for p in two.nccl.problems), two.nccl.problems


def test_a_stream_that_waits_for_a_lost_device_hangs(two: Two):
    with two.library.grouped():
        two.all_reduce(0)
        two.all_reduce(1)
    two.machine.devices[1].fault = Code.CUDA_ERROR_ILLEGAL_ADDRESS

    with pytest.raises(Hang, match="cuda:0 waits for ever"):
        two.machine.devices[0].drain()


def test_streams_that_wait_for_each_other_hang(two: Two):
    with two.library.grouped():
        two.all_reduce(0)
        two.all_reduce(1)
    first, second = two.machine.devices[:2]
    first.enqueue(lambda: None)
    second.queue.insert(0, first.drain)  # for the commands after the meeting

    with pytest.raises(AssertionError, match="wait for each other"):
        first.drain()


def test_an_abort_ends_the_waits_of_a_device(two: Two):
    two.nccl.start_limit = 1
    with pytest.raises(Refused, match="unhandled cuda error"):
        grouped(lambda t: t.all_reduce(0), lambda t: t.all_reduce(1))(two)
    with pytest.raises(Hang):
        two.machine.devices[0].drain()

    two.library.call("ncclCommAbort", two.communicators[0])
    two.machine.devices[0].drain()
