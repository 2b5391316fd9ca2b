"""A call of a graph as one list of calls of the driver's C functions (shared/call_list.py).

    push the context; fill the table in pinned memory; copy it to the device; launch the graph;
    record an event; pop the context

A call writes where its memory is, where the table is filled, and which event is recorded. Events
serve in turn (`Marks`): one that is recorded again tells of the later call, and all before it.
"""

from __future__ import annotations

from typing import Protocol

from rune import locks
from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.graph import Table
from rune.backends.shared.call_list import CallList, Notes, helpers
from rune.records import dataclass

EVENTS = 16
_OLDEST = 12000  # the version of CUDA whose functions are asked for
_DISABLE_TIMING, _NOT_READY = 2, 600  # CU_EVENT_DISABLE_TIMING, CUDA_ERROR_NOT_READY


@dataclass(frozen=True, slots=True)
class Functions:
    """Addresses of cuCtxPushCurrent, cuCtxPopCurrent, cuMemcpyHtoDAsync, ..."""

    push: int
    pop: int
    copy: int
    launch: int
    record: int
    query: int


_NAMES = ("cuCtxPushCurrent", "cuCtxPopCurrent", "cuMemcpyHtoDAsync", "cuGraphLaunch", "cuEventRecord", "cuEventQuery")


def functions() -> Functions:
    """Those of the driver; the context is current. Errors: Refused."""
    return Functions(*[int(call("cuGetProcAddress", name.encode(), _OLDEST, 0)[0]) for name in _NAMES])


class Queue(Protocol):
    """A device, as its lists of calls see it. handle: of the context, and of the stream"""

    functions: Functions
    context_handle: int
    stream_handle: int
    lost: str | None

    def refuse(self, function: str, code: int) -> None:
        """Raise the error that a function of the driver has returned. Errors: DeviceError."""
        ...


@dataclass(frozen=True, slots=True)
class Replay:
    """A graph, ready to be launched.

    bases:  the first of the words for addresses of memory, in the table's order
    table:  the word for the address of pinned memory; nbytes: how much of it
    event:  the word for the event behind it
    """

    calls: CallList
    bases: int
    table: int
    nbytes: int
    event: int


def replay(queue: Queue, table: Table, device_table: int, graph: int) -> Replay:
    """The list for a graph whose kernels read their table at this address of the device."""
    notes, code, nbytes = Notes(), queue.functions, 8 * len(table.numbers)
    stream, event, pinned = notes.constant(queue.stream_handle), notes.word(), notes.word()
    bases = notes.row([0] * (1 + len(table.memory)))
    notes.call(code.push, notes.constant(queue.context_handle), checked=True)
    if nbytes:
        arrays = map(notes.constant, (len(table.numbers), table.which.ctypes.data, table.numbers.ctypes.data))
        notes.call(helpers().fill, pinned, *arrays, notes.address_of(bases))
        notes.call(code.copy, notes.constant(device_table), pinned, notes.constant(nbytes), stream, checked=True)
    notes.call(code.launch, notes.constant(graph), stream, checked=True)
    notes.call(code.record, event, stream, checked=True)
    notes.call(code.pop, notes.address_of(notes.word()), checked=True)
    notes.hold(table)
    return Replay(notes.list(), bases + 1, pinned, nbytes, event)


class Marks:
    """How far a stream has come: calls have numbers, and one of a few events stands behind each."""

    def __init__(self, queue: Queue):
        self._queue, self._lock = queue, locks.lock()
        # Never destroyed: there are few, and finalisers would need the context.
        self._events = [int(call("cuEventCreate", _DISABLE_TIMING)) for _ in range(EVENTS)]
        self._last = self._done = 0
        notes, code = Notes(), queue.functions
        self._event = notes.word()
        notes.call(code.push, notes.constant(queue.context_handle), checked=True)
        notes.call(code.query, self._event)
        notes.call(code.pop, notes.address_of(notes.word()), checked=True)
        self._query = notes.list()

    def next(self) -> int:
        """The event to record behind the next call."""
        return self._events[(self._last + 1) % EVENTS]

    def pass_on(self) -> int:
        """The next call's event is recorded: its number."""
        self._last += 1
        return self._last

    def is_done(self, number: int) -> bool:
        """Whether a call has ended. Errors: DeviceError."""
        if number <= self._done or self._queue.lost is not None:
            return True
        with self._lock:
            asked = max(number, self._last - EVENTS + 1)
            self._query.words[self._event] = self._events[asked % EVENTS]
            self._query.play()
            code = self._query.status(1)
        if code == 0:
            self._done = max(self._done, asked)
        elif code != _NOT_READY:
            self._queue.refuse("cuEventQuery", code)
        return code == 0
