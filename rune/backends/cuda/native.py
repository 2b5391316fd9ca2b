"""A graph's launch as one list of calls of the driver's C functions (shared/call_list.py).

    push the context; fill the table in pinned memory; copy it to the device; launch the graph;
    record an event; pop the context

Before each replay, the words of the buffers' addresses, of the pinned table and of the event are
set. A few events are used in turn (`Marks`): one that is recorded again marks the end of the later
call, and so of all before it.
"""

from __future__ import annotations

from typing import Protocol

from rune import locks
from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.graph import Table
from rune.backends.shared.call_list import CallList, Notes, helpers
from rune.backends.shared.turns import Turns
from rune.records import dataclass

EVENTS = 16  # the calls that can be told apart; older ones seem to end with a later one
_OLDEST = 12000  # the version of CUDA whose functions are looked up
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
    """The addresses of the driver's functions. Errors: Refused."""
    # cuGetProcAddress selects the variant of a function: names such as cuMemcpyHtoDAsync_v2 are
    # macros in C.
    return Functions(*[int(call("cuGetProcAddress", name.encode(), _OLDEST, 0)[0]) for name in _NAMES])


class Queue(Protocol):
    """The part of a device that call lists use."""

    functions: Functions
    context_handle: int
    stream_handle: int
    turns: Turns

    def refuse(self, function: str, code: int) -> None:
        """Raise the error that a function of the driver has returned. Errors: DeviceError."""
        ...


@dataclass(frozen=True, slots=True)
class Replay:
    """A graph's launch as a call list.

    bases:  the first of the words for addresses of memory, in the table's order
    table:  the word for the address of the table in pinned memory
    nbytes: of the table
    event:  the word for the event that is recorded after the launch
    """

    calls: CallList
    bases: int
    table: int
    nbytes: int
    event: int


def replay(queue: Queue, table: Table, device_table: int, graph: int) -> Replay:
    """The call list for a graph whose kernels read their table at this address of the device."""
    notes, code, nbytes = Notes(), queue.functions, 8 * len(table.numbers)
    stream, event, pinned_table = notes.constant(queue.stream_handle), notes.word(), notes.word()
    bases = notes.row([0] * (1 + len(table.memory)))
    notes.call(code.push, notes.constant(queue.context_handle), checked=True)
    if nbytes:
        arrays = map(notes.constant, (len(table.numbers), table.which.ctypes.data, table.numbers.ctypes.data))
        notes.call(helpers().fill, pinned_table, *arrays, notes.address_of(bases))
        notes.call(code.copy, notes.constant(device_table), pinned_table, notes.constant(nbytes), stream, checked=True)
    notes.call(code.launch, notes.constant(graph), stream, checked=True)
    notes.call(code.record, event, stream, checked=True)
    notes.call(code.pop, notes.address_of(notes.word()), checked=True)
    notes.hold(table)
    # The first base stays 0: it is that of words that are plain numbers.
    return Replay(notes.list(), bases + 1, pinned_table, nbytes, event)


class Marks:
    """Tells which calls on a stream have ended: they are numbered, and an event is behind each."""

    def __init__(self, queue: Queue):
        self._queue, self._lock = queue, locks.lock()
        # Never destroyed: there are few, and a finaliser would need the context.
        self._events = [int(call("cuEventCreate", _DISABLE_TIMING)) for _ in range(EVENTS)]
        self._last = self._ended_number = 0
        notes, code = Notes(), queue.functions
        self._event = notes.word()
        notes.call(code.push, notes.constant(queue.context_handle), checked=True)
        notes.call(code.query, self._event)
        notes.call(code.pop, notes.address_of(notes.word()), checked=True)
        self._query = notes.list()

    def next(self) -> int:
        """The event to record after the next call."""
        return self._events[(self._last + 1) % EVENTS]

    def pass_on(self, _: int) -> int:
        """Count the call whose event, this one, was recorded; returns its number."""
        self._last += 1
        return self._last

    def is_done(self, number: int) -> bool:
        """Whether a call has ended. Errors: DeviceError."""
        if number <= self._ended_number or self._queue.turns.loss is not None:
            return True
        with self._lock:
            # Events of older calls have been recorded again: the oldest one left stands for them.
            event_number = max(number, self._last - EVENTS + 1)
            self._query.words[self._event] = self._events[event_number % EVENTS]
            self._query.play()
            code = self._query.status(1)
        if code == 0:
            self._ended_number = max(self._ended_number, event_number)
        elif code != _NOT_READY:
            self._queue.refuse("cuEventQuery", code)
        return code == 0
