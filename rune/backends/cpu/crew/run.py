"""Programs on several devices of the CPU, each on a native thread, without Python meanwhile.

The caller's thread runs the part of the first device, and each other device has its own thread. The
moves of all collectives are laid out in records before the first run (records.py, moves.py), from
which native code performs them (native.py).

Invariant: a crew is in one run at a time; its caller has the turn of all its devices.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, entry, host_abi, threads
from rune.backends.cpu.crew import moves, native
from rune.backends.cpu.crew.messages import Message
from rune.backends.cpu.crew.records import DISAGREE, GROUP, MESSAGE, MOVE, SEAT, TABLE, THREAD, Memory, address
from rune.backends.cpu.crew.words import Spin
from rune.backends.cpu.run import CpuExecutable
from rune.backends.shared.protocol import Buffer, Executable
from rune.errors import CollectiveError, DeviceError
from rune.lowering.meetings import Grid
from rune.lowering.plan import Plan
from rune.records import dataclass

LOOKS = 4_000  # polls before a thread sleeps, about 100 µs
ALONE_BYTES = 1 << 16  # the most of all operands for which one device does a collective for all


def crew_for(executables: Sequence[Executable], grid: Grid) -> Crew | None:
    """The devices of a grid as one crew; None if they need Python while they run."""
    parts = [e for e in executables if isinstance(e, CpuExecutable) and e.runs_natively and e.talk.is_native]
    if not threads.is_available() or len(parts) < len(executables):
        return None
    # All parts must number the same messages in the same way.
    return Crew(parts, grid) if len({e.talk.messages for e in parts}) == 1 else None


class Crew:
    """Executables, one for each device of a grid, that run together."""

    def __init__(self, parts: Sequence[CpuExecutable], grid: Grid):
        self.parts, self.grid = parts, grid
        for part in parts:
            # The records below contain addresses of code, so it has to be the code that stays.
            part.refine()
        self.messages = parts[0].talk.messages
        self._memory = Memory()
        # Devices that run one plan share the function that checks its arguments.
        plans = {id(part.plan): part.plan for part in parts}
        entries = {number: _prepare(plan) for number, plan in plans.items()}
        self._prepare = [entries[id(part.plan)] for part in parts]
        self._words = [self._memory.row([0] * _word_count(part.plan)) for part in parts]
        self._table = self._memory.record(TABLE)
        groups = self._groups()
        messages = {(m, size): self._message(m, size) for m in self.messages for size in self._sizes(m)}
        self._seats = [self._seat(n, groups, messages) for n in range(len(parts))]
        self._line = self._memory.row([len(parts), *map(address, self._seats)])
        self._numbers = tuple(int(name.partition(":")[2]) for name in grid.devices)

    def __call__(self, blocks: Sequence[Sequence[Buffer]], donated: Sequence[int] = ()) -> list[list[Buffer]]:
        """The results of each device for its operands; memory of `donated` ones may be reused.

        Errors: CollectiveError if the devices disagree; OutOfMemory; those of arguments.
        """
        for part in self.parts:
            part.work.begin()
        try:
            memories = [part.memory(operands, donated) for part, operands in zip(self.parts, blocks, strict=True)]
            operands = [self._fill(n, blocks[n], *memories[n]) for n in range(len(blocks))]
            failure = _play().call(self._line, _threads(self._numbers))
            del operands  # may be views of arguments, which had to live until now
            if failure:
                raise self._error(failure)
            for part, (_, arena) in zip(self.parts, memories, strict=True):
                part.give_back(arena)
        finally:
            for part in self.parts:
                part.work.end()
        return [results for results, _ in memories]

    def _fill(
        self, number: int, operands: Sequence[Buffer], results: list[Buffer], arena: np.ndarray
    ) -> Sequence[Buffer]:
        """Write the addresses of a device's arrays to its words; returns the accepted arguments."""
        return self.parts[number].checked(
            self._prepare[number].function.call, operands, (*results, arena, self._words[number])
        )

    def _error(self, failure: int) -> CollectiveError:
        """The error for the reason why the devices stopped."""
        if failure == DISAGREE:
            device, number, other = (int(self._table[TABLE[name]]) for name in ("device", "number", "other"))
            call, other_call = self.messages[number], self.messages[self._at(other)]
            if call.call == other_call.call:
                return self.grid.mismatch(device, call, call.types, other, other_call.types)
            return self.grid.disagreement(device, call, other, other_call)
        waiting: dict[tuple[Hashable, int], list[int]] = {}
        for device in range(len(self.parts)):
            if self._at(device) >= 0:
                axis = self.messages[self._at(device)].axis_name
                waiting.setdefault((axis, self.grid.group(device, axis)[0]), []).append(device)
        return self.grid.standstill(self._waiting(axis, present) for (axis, _), present in waiting.items())

    def _waiting(self, axis: Hashable, present: list[int]) -> tuple[Message, list[int], list[int]]:
        group = self.grid.group(present[0], axis)
        return self.messages[self._at(present[0])], present, [n for n in group if n not in present]

    def _at(self, device: int) -> int:
        """The number of the message at which a device waits; -1 for none."""
        return int(self._seats[device][SEAT["at"]]) - 1

    # --- records

    def _groups(self) -> dict[tuple[int, ...], np.ndarray]:
        """A record for each group that meets, and the table of them."""
        axes = {m.axis_name for m in self.messages}
        meeting_groups = {self.grid.group(n, axis) for axis in axes for n in range(len(self.parts))}
        groups = {g: self._group(len(g)) for g in sorted(meeting_groups)}
        row = self._memory.row(map(address, groups.values()))
        self._table[TABLE["groups"]], self._table[TABLE["count"]] = address(row), len(groups)
        return groups

    def _group(self, size: int) -> np.ndarray:
        return self._memory.record(GROUP, size=size, rows=address(self._memory.row([0] * size)))

    def _sizes(self, message: Message) -> set[int]:
        return {len(self.grid.group(n, message.axis_name)) for n in range(len(self.parts))}

    def _message(self, message: Message, size: int) -> np.ndarray:
        """The record of a message, for groups of this size."""
        moves_by_place = [self._moves(message, place, size) for place in range(size)]
        bytes_in = size * sum(moves.bytes_of(t) for t in message.operands)
        return self._memory.record(
            MESSAGE,
            alone=bytes_in <= ALONE_BYTES,
            moves=address(self._memory.row(address(row) for row, _ in moves_by_place)),
            counts=address(self._memory.row(count for _, count in moves_by_place)),
        )

    def _moves(self, message: Message, place: int, size: int) -> tuple[np.ndarray, int]:
        """The moves of a place as one row of records, and their number."""
        words: list[int] = []
        operands = len(message.operands)
        for number, type in enumerate(message.operands):
            for move in moves.moves(message.call, type, place, size):
                sources = self._memory.row(move.sources)
                words += [move.kind, move.function, address(sources), len(move.sources), operands + number, number]
                words += [getattr(move.rows, name) for name in [*MOVE][6:-1]]
        return self._memory.row(words), len(words) // MOVE["end"]

    def _seat(
        self,
        number: int,
        groups: Mapping[tuple[int, ...], np.ndarray],
        messages: Mapping[tuple[Message, int], np.ndarray],
    ) -> np.ndarray:
        """The seat of a device, whose address is the last of the device's words."""
        part, row = self.parts[number], self._memory.row
        device_groups = [self.grid.group(number, m.axis_name) for m in self.messages]
        seat = self._memory.record(
            SEAT,
            table=address(self._table),
            device=number,
            groups=address(row(address(groups[g]) for g in device_groups)),
            places=address(row(g.index(number) for g in device_groups)),
            messages=address(
                row(address(messages[m, len(g)]) for m, g in zip(self.messages, device_groups, strict=True))
            ),
            axes=address(row(self.grid.place(number, axis) for axis in part.talk.axes)),
            run=part.code.address("run"),
            words=address(self._words[number]),
        )
        self._words[number][_word_count(part.plan) - 1] = address(seat)
        return seat


def _word_count(plan: Plan) -> int:
    """The number of words: arguments, results, the arena, sizes and the seat."""
    return len(plan.arguments) + len(plan.results) + 1 + len(plan.size_sources) + 1


@dataclass(frozen=True, slots=True)
class Prepare:
    """The function that checks arguments and writes the words of a device, with its code."""

    function: host_abi.NativeFunction
    code: compiler.Code


def _prepare(plan: Plan) -> Prepare:
    code = compiler.compile_module(f"{plan.name}.prepare", entry.prepare(plan, _abi()))
    return Prepare(host_abi.native_function(plan.name, code.address("prepare")), code)


def _abi() -> host_abi.Abi:
    abi = host_abi.abi()
    assert abi is not None
    return abi


# --- native code and threads --------------------------------------------------------------------


def meet_address() -> int:
    """The address of @meet."""
    return _code().address("meet")


@functools.cache
def _code() -> compiler.Code:
    # With more devices than cores, a thread that polls keeps another one from running.
    is_crowded = threads.device_count() > compiler.available_cores()
    pause_declaration, pause = threads.pause()
    spin, can_place = Spin(pause, 0 if is_crowded else LOOKS), threads.can_place() and not is_crowded
    system = native.System(pause_declaration, spin, can_place, threads.detached(), threads.STACK_BYTES, _abi())
    code = compiler.compile_module("crew", native.text(system))
    if can_place:
        threads.allow(code, os.sched_getaffinity(0))
    _keep_for_ever(code)
    return code


@functools.cache
def _play() -> host_abi.NativeFunction:
    return host_abi.native_function("play", _code().address("play"))


def _keep_for_ever(value: object) -> None:
    """Never free an object: threads that are never joined read it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


_lock = locks.lock()


@functools.cache
def _thread(number: int) -> np.ndarray:
    """The record of a device's thread, which is started on first use."""
    record = Memory().record(THREAD)
    _keep_for_ever(record)
    start = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(_code().address("start"))
    with threads.without_signals():
        failure = start(address(record))
    if failure:
        raise DeviceError(f"cpu: cannot start the thread of cpu:{number} (the system gives none, error {failure})")
    return record


@functools.cache
def _threads(numbers: tuple[int, ...]) -> np.ndarray:
    """The threads of these devices, in order. The first has none: the caller runs its part."""
    with _lock:
        # Two calls at once would both start a thread: a cache does not make one wait for the other.
        return np.array([0, *(address(_thread(n)) for n in numbers[1:])], np.int64)


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    _thread.cache_clear()
    _threads.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
