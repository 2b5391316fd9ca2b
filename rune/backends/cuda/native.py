"""A graph's launch as one list of calls of the driver's C functions (shared/call_list.py).

    count the call; push the context; fill the table in pinned memory; copy it to the device;
    launch the graph; record an event; pop the context

Before each replay, the words of the buffers' addresses are set. Event and pinned table are the next
of a ring (`Marks`), which native code passes on: an event that is recorded again marks the end of
the later call, and so of all before it.
"""

from __future__ import annotations

from array import array
from contextlib import AbstractContextManager
from typing import Protocol

from rune import locks
from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.graph import Table
from rune.backends.cuda.staging import Staging
from rune.backends.shared.call_list import CallList, Notes, helpers
from rune.backends.shared.ring import Numbers, Ring
from rune.backends.shared.turns import Turns
from rune.records import dataclass

# Calls that may be under way before the host waits; older ones seem to end with a later one.
CALLS = 256
TABLE_BYTES = 1 << 12  # of the pinned memory of a call: 512 arguments of kernels
_OLDEST = 12000  # the version of CUDA whose functions are looked up
_DISABLE_TIMING, _NOT_READY = 2, 600  # CU_EVENT_DISABLE_TIMING, CUDA_ERROR_NOT_READY
PUSH = 1  # the number of the call that makes the context current, in a replay
_QUERY = 1  # the number of the query among the calls of a question


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
    staging: Staging

    @property
    def in_context(self) -> AbstractContextManager[None]:
        """Inside, the context is current, and the driver's errors become DeviceErrors."""
        ...

    def settle(self) -> None:
        """Wait until all of its collectives have ended. Errors: DeviceError if one never will."""
        ...

    def refuse(self, function: str, code: int) -> None:
        """Raise the error that a function of the driver has returned. Errors: DeviceError."""
        ...


@dataclass(frozen=True, slots=True)
class Replay:
    """A graph's launch as a call list.

    bases: the first of the words for addresses of memory, in the table's order
    table: the word for the address of the table in pinned memory; None where the ring has it
    nbytes: of the table
    """

    calls: CallList
    bases: int
    table: int | None
    nbytes: int


def replay(queue: Queue, marks: Marks, table: Table, device_table: int, graph: int) -> Replay:
    """The call list for a graph whose kernels read their table at this address of the device."""
    notes, code, nbytes = Notes(), queue.functions, 8 * len(table.numbers)
    stream, is_short = notes.constant(queue.stream_handle), nbytes <= TABLE_BYTES
    pinned_table = notes.at(marks.table) if is_short else notes.word()
    bases = notes.row([0] * (1 + len(table.memory)))
    # First, so that a call has a number even if the driver refuses it.
    notes.call(helpers().number, notes.constant(marks.numbers.last.buffer_info()[0]))
    notes.call(code.push, notes.constant(queue.context_handle), checked=True)
    if nbytes:
        arrays = map(notes.constant, (len(table.numbers), table.which.ctypes.data, table.numbers.ctypes.data))
        notes.call(helpers().fill, pinned_table, *arrays, notes.address_of(bases))
        notes.call(code.copy, notes.constant(device_table), pinned_table, notes.constant(nbytes), stream, checked=True)
    notes.call(code.launch, notes.constant(graph), stream, checked=True)
    notes.call(code.record, notes.at(marks.event), stream, checked=True)
    notes.call(code.pop, notes.address_of(notes.word()), checked=True)
    notes.hold(table, marks)
    # The first base stays 0: it is that of words that are plain numbers.
    return Replay(notes.list(), bases + 1, None if is_short else pinned_table, nbytes)


class Marks:
    """Tells which calls on a stream have ended: they are numbered, and an event is behind each.

    The entries of `ring` are events, each with pinned memory for a table; calls use them in turn.
    event, table: the addresses of the words where the next call finds them
    """

    def __init__(self, queue: Queue):
        self._queue, self._lock = queue, locks.lock()
        # Never destroyed: there are few, and a finaliser would need the context.
        self._events = [int(call("cuEventCreate", _DISABLE_TIMING)) for _ in range(CALLS)]
        self._ended = array("Q", [0])
        notes, self._event = self._question()
        self._query = notes.list()
        self.numbers, self.ring = self._entries(queue.staging.tables(CALLS, TABLE_BYTES))

    def _question(self) -> tuple[Notes, int]:
        """Ask whether a call has ended: the first word of its number, event and table."""
        notes, queue = Notes(), self._queue
        number = notes.row([0, 0, 0])
        notes.call(queue.functions.push, notes.constant(queue.context_handle), checked=True)
        status = notes.call(queue.functions.query, number + 1)
        notes.call(queue.functions.pop, notes.address_of(notes.word()), checked=True)
        notes.call(helpers().settle, status, number, notes.constant(self._ended.buffer_info()[0]))
        return notes, number

    def _entries(self, tables: int) -> tuple[Numbers, Ring]:
        """The entries, with tables from this address on."""
        notes, first = self._question()
        ask = notes.list()
        self.event, self.table = ask.address(first + 1), ask.address(first + 2)
        numbers = Numbers(array("Q", [0, 1]), self._ended.buffer_info()[0], ask)
        ring = Ring(ask, first, 2, CALLS, numbers)
        # Each new entry is the next one: so the call with number 1 uses the first event.
        for k in reversed(range(CALLS)):
            ring.add([self._events[k], tables + k * TABLE_BYTES])
        return numbers, ring

    @property
    def last(self) -> int:
        """The number of the last call."""
        return self.numbers.last[0]

    def await_entry(self) -> None:
        """Wait until no call uses the next entry. Errors: DeviceError."""
        use = self.ring.next_use
        if not self.is_done(use):
            # `cuEventSynchronize` cannot be ended from outside: collectives are waited for first.
            self._queue.settle()
            with self._queue.in_context:
                call("cuEventSynchronize", self._events[(use - 1) % CALLS])

    def is_done(self, number: int) -> bool:
        """Whether a call has ended. Errors: DeviceError."""
        if number <= self._ended[0] or self._queue.turns.loss is not None:
            return True
        with self._lock:
            # Events of older calls have been recorded again: the oldest one left stands for them.
            event_number = max(number, self.last - CALLS + 1)
            first = self._event
            self._query.words[first : first + 2] = array("Q", [event_number, self._events[(event_number - 1) % CALLS]])
            self._query.play()
            code = self._query.status(_QUERY)
        if code not in (0, _NOT_READY):
            self._queue.refuse("cuEventQuery", code)
        return code == 0
