"""A stand-in for NCCL: it checks every call, and runs the collectives on the streams.

The functions are C functions with the signatures of library.py, so what rune passes goes through
ctypes. A misuse that would hang, crash or go unnoticed in NCCL is recorded in `problems` and
answered with ncclInvalidUsage: a communicator that is not alive, the stream of another device,
memory that was not allocated, ranks that disagree or stay away, sends without receives, memory used
twice.

All ranks of a clique belong to this process, so a group of calls has to have all of them.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from rune import dtypes
from rune.backends.cuda.nccl import library
from rune.backends.cuda.nccl.library import SIGNATURES, DataType, Library, Operation
from tests.backends.cuda.fake_machine import FakeDevice, Machine, Meeting

UNHANDLED, INVALID_USAGE, REMOTE_ERROR = 1, 5, 6  # of ncclResult_t
TEXTS = {UNHANDLED: b"unhandled cuda error", INVALID_USAGE: b"invalid usage", REMOTE_ERROR: b"remote error"}
VERSION = 23203
DTYPES = {
    DataType.INT8: dtypes.i8,
    DataType.UINT8: dtypes.u8,
    DataType.INT32: dtypes.i32,
    DataType.UINT32: dtypes.u32,
    DataType.INT64: dtypes.i64,
    DataType.UINT64: dtypes.u64,
    DataType.FLOAT16: dtypes.f16,
    DataType.FLOAT32: dtypes.f32,
    DataType.FLOAT64: dtypes.f64,
    DataType.BFLOAT16: dtypes.bf16,
}
COMBINE = {Operation.SUM: np.add, Operation.MAX: np.fmax, Operation.MIN: np.fmin}  # NaN is lost


class Misuse(Exception):
    """A call that NCCL's documentation forbids."""


def require(condition: object, text: str) -> None:
    """Errors: Misuse where the condition does not hold."""
    if not condition:
        raise Misuse(text)


@dataclass(eq=False)
class Clique:
    """The communicators of one ncclCommInitAll."""

    devices: list[FakeDevice]
    aborts: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Rank:
    """A communicator: its clique, and its number in the clique."""

    clique: Clique
    number: int

    @property
    def device(self) -> FakeDevice:
        return self.clique.devices[self.number]


@dataclass(frozen=True)
class Posted:
    """A call of one rank. `says`: the arguments that all ranks must agree on."""

    name: str
    rank: Rank
    says: tuple[int, ...]
    source: tuple[int, int] | None  # address and bytes
    target: tuple[int, int] | None
    peer: int = -1

    @property
    def is_between_two(self) -> bool:
        return self.name in ("ncclSend", "ncclRecv")


class Group(threading.local):
    """The calls that a thread has posted since it began a group; groups are nested to a depth."""

    def __init__(self) -> None:
        self.depth = 0
        self.calls: list[Posted] = []


class FakeNccl:
    """The library. log: the calls; start_limit: how many ranks the next group still starts."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.log: list[str] = []
        self.problems: list[Exception] = []
        self.ranks: dict[int, Rank] = {}
        self.handles = itertools.count(1000)
        self.group = Group()
        self.start_limit: int | None = None
        self.async_error = 0
        self.refusals: dict[str, int] = {}  # what a function answers next

    def library(self) -> Library:
        """It, as rune sees it."""
        functions: dict[str, Callable[..., int]] = {
            name: ctypes.CFUNCTYPE(*types)(partial(self._answer, name)) for name, types in SIGNATURES.items()
        }
        return Library(functions, TEXTS.__getitem__, "a stand-in")

    def _answer(self, name: str, *arguments: Any) -> int:
        self.log.append(name)
        if name in self.refusals:
            return self.refusals.pop(name)
        try:
            return getattr(self, name)(*arguments) or 0
        except Exception as error:
            self.problems.append(error)
            return INVALID_USAGE

    # --- communicators

    def ncclGetVersion(self, version: Any) -> None:
        version[0] = VERSION

    def ncclCommInitAll(self, communicators: Any, count: int, devices: Any) -> int | None:
        numbers = devices[:count]
        require(len(set(numbers)) == count, f"a device has two ranks: {numbers}")
        require(all(n < len(self.machine.devices) for n in numbers), f"no such device: {numbers}")
        clique = Clique([self.machine.devices[n] for n in numbers])
        if any(d.fault is not None for d in clique.devices):
            return UNHANDLED
        for number in range(count):
            communicators[number] = next(self.handles)
            self.ranks[communicators[number]] = Rank(clique, number)
        return None

    def ncclCommAbort(self, communicator: int) -> None:
        rank = self._rank(communicator)
        rank.clique.aborts.add(rank.number)
        del self.ranks[communicator]

    def ncclCommGetAsyncError(self, communicator: int, code: Any) -> None:
        self._rank(communicator)
        code[0] = self.async_error

    def _rank(self, communicator: int | None) -> Rank:
        require(communicator in self.ranks, "the communicator is not alive")
        return self.ranks[communicator or 0]

    # --- groups

    def ncclGroupStart(self) -> None:
        self.group.depth += 1

    def ncclGroupEnd(self) -> int | None:
        require(self.group.depth, "no group was started")
        self.group.depth -= 1
        if self.group.depth:
            return None
        calls, self.group.calls = self.group.calls, []
        meetings = [*_meetings(calls)]
        for device in self.machine.devices:
            _require_memory_for_one(device, [p for p in calls if p.rank.device is device])
        commands = [(m, rank) for m in meetings for rank in m.members]
        with self.machine.lock:  # a thread that drains a stream meanwhile finds all ranks or none
            for meeting, rank in commands[: self.start_limit]:
                meeting.enqueue(rank)
        if self.start_limit is None:
            return None
        self.start_limit, self.machine.is_paused = None, False
        return UNHANDLED

    def _post(
        self,
        name: str,
        communicator: int,
        stream: int,
        dtype: int,
        says: tuple[int, ...],
        source: tuple[int | None, int] | None,
        target: tuple[int | None, int] | None,
        peer: int = -1,
    ) -> None:
        rank = self._rank(communicator)
        require(dtype in DTYPES, f"{name}: no dtype {dtype}")
        require(stream == rank.device.stream, f"{name}: the stream is another device's")
        require(self.group.depth or len(rank.clique.devices) == 1, f"{name}: one thread has several ranks and no group")
        size = DTYPES[DataType(dtype)].itemsize
        source, target = (None if m is None else (m[0] or 0, size * m[1]) for m in (source, target))
        for memory in filter(None, (source, target)):
            require(_is_allocated(rank.device, *memory), f"{name}: memory of {rank.device.number} is not allocated")
        self.group.calls.append(Posted(name, rank, (dtype, *says), source, target, peer))

    # --- collectives

    def ncclAllReduce(self, source: Any, target: Any, count: int, dtype: int, op: int, comm: int, stream: int) -> None:
        require(op in list(Operation), f"no operation {op}")
        self._post("ncclAllReduce", comm, stream, dtype, (count, op), (source, count), (target, count))

    def ncclReduceScatter(
        self, source: Any, target: Any, count: int, dtype: int, op: int, comm: int, stream: int
    ) -> None:
        size = len(self._rank(comm).clique.devices)
        self._post("ncclReduceScatter", comm, stream, dtype, (count, op), (source, count * size), (target, count))

    def ncclAllGather(self, source: Any, target: Any, count: int, dtype: int, comm: int, stream: int) -> None:
        size = len(self._rank(comm).clique.devices)
        self._post("ncclAllGather", comm, stream, dtype, (count,), (source, count), (target, count * size))

    def ncclSend(self, source: Any, count: int, dtype: int, peer: int, comm: int, stream: int) -> None:
        require(peer < len(self._rank(comm).clique.devices), f"no rank {peer}")
        self._post("ncclSend", comm, stream, dtype, (count,), (source, count), None, peer)

    def ncclRecv(self, target: Any, count: int, dtype: int, peer: int, comm: int, stream: int) -> None:
        require(peer < len(self._rank(comm).clique.devices), f"no rank {peer}")
        self._post("ncclRecv", comm, stream, dtype, (count,), None, (target, count), peer)


def _is_allocated(device: FakeDevice, address: int, nbytes: int) -> bool:
    return any(a <= address and address + nbytes <= a + size for a, size in device.allocations.items())


def _require_memory_for_one(device: FakeDevice, calls: Sequence[Posted]) -> None:
    """Errors: Misuse where calls of one group write to what others read or write."""
    for a, b in itertools.permutations(calls, 2):
        for memory in (b.source, b.target):
            if a.target is not None and memory is not None:
                (start, size), (other, other_size) = a.target, memory
                overlaps = start < other + other_size and other < start + size
                require(not overlaps, f"cuda:{device.number}: {a.name} and {b.name} use the same memory")


def _meetings(all_calls: Sequence[Posted]) -> Iterator[Meeting]:
    """The operations between devices for the calls of one group. Errors: Misuse."""
    for clique in {id(p.rank.clique): p.rank.clique for p in all_calls}.values():
        calls = [p for p in all_calls if p.rank.clique is clique]
        by_rank = [
            [p for p in calls if p.rank.number == n and not p.is_between_two] for n in range(len(clique.devices))
        ]
        require(len({len(c) for c in by_rank}) == 1, "a rank stays away from a collective")
        for ranks in zip(*by_rank, strict=True):
            require(len({(p.name, p.says) for p in ranks}) == 1, f"ranks disagree: {[(p.name, p.says) for p in ranks]}")
            members = dict(enumerate(clique.devices))
            yield Meeting(members, partial(PERFORM[ranks[0].name], ranks), clique.aborts)
        pairs = [*_pairs([p for p in calls if p.is_between_two])]
        if pairs:
            members = {p.rank.number: p.rank.device for pair in pairs for p in pair}
            yield Meeting(members, partial(_deliver, pairs), clique.aborts)


def _pairs(calls: Sequence[Posted]) -> Iterator[tuple[Posted, Posted]]:
    """Each send with its receive, in order."""
    receives = [p for p in calls if p.name == "ncclRecv"]
    for send in (p for p in calls if p.name == "ncclSend"):
        ends = send.rank.number, send.peer
        receive = next((r for r in receives if (r.peer, r.rank.number) == ends), None)
        require(receive is not None, f"nobody receives what rank {ends[0]} sends to {ends[1]}")
        assert receive is not None
        require(receive.says == send.says, f"sent is {send.says}, received {receive.says}")
        receives.remove(receive)
        yield send, receive
    require(not receives, f"nobody sends what ranks {[r.rank.number for r in receives]} receive")


# --- what they do


def _array(call: Posted, memory: tuple[int, int] | None) -> np.ndarray:
    assert memory is not None
    return call.rank.device.at(*memory).view(DTYPES[DataType(call.says[0])])


def _combined(calls: Sequence[Posted]) -> np.ndarray:
    """Around the ring, from the second rank on."""
    combine = COMBINE[Operation(calls[0].says[2])]
    first, *others = [_array(p, p.source) for p in (*calls[1:], calls[0])]
    total = first.copy()
    for other in others:
        total = combine(total, other)
    return total


def _all_reduce(calls: Sequence[Posted]) -> None:
    total = _combined(calls)
    for call in calls:
        _array(call, call.target)[...] = total


def _reduce_scatter(calls: Sequence[Posted]) -> None:
    for call, block in zip(calls, np.split(_combined(calls), len(calls)), strict=True):
        _array(call, call.target)[...] = block


def _all_gather(calls: Sequence[Posted]) -> None:
    rows = np.concatenate([_array(p, p.source) for p in calls])
    for call in calls:
        _array(call, call.target)[...] = rows


def _deliver(pairs: Sequence[tuple[Posted, Posted]]) -> None:
    blocks = [_array(send, send.source).copy() for send, _ in pairs]
    for (_, receive), block in zip(pairs, blocks, strict=True):
        _array(receive, receive.target)[...] = block


PERFORM: dict[str, Callable[[Sequence[Posted]], None]] = {
    "ncclAllReduce": _all_reduce,
    "ncclReduceScatter": _reduce_scatter,
    "ncclAllGather": _all_gather,
}


def installed(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> FakeNccl:
    """The library that rune finds on this machine."""
    nccl = FakeNccl(machine)
    library_of_nccl = nccl.library()
    monkeypatch.setattr(library, "find", lambda: library_of_nccl)
    return nccl
