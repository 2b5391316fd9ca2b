"""The common part of devices with one queue and memory that the host cannot address.

Calls take turns on a device: each enqueues all of its steps before the next one starts. A callback
runs within the turn of its call: it may copy from and to the device, but not run programs there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from rune.backends.shared import shortage
from rune.backends.shared.callbacks import fill, function_of, is_callback
from rune.backends.shared.executor import (
    Concrete,
    Concretes,
    ConcreteStep,
    Place,
    result_buffers,
    size_bytes,
    static_shape,
)
from rune.backends.shared.native_player import Repeat, ResultMaker, native_player
from rune.backends.shared.pool import Block, Pool, Request
from rune.backends.shared.protocol import Played
from rune.backends.shared.stock import Stock
from rune.backends.shared.turns import DeviceBuffer, Turns
from rune.backends.shared.work import Work, WorkStats
from rune.core.types import ArrayType
from rune.errors import ArgumentError, OutOfMemory
from rune.lowering.codegen.target import Target
from rune.lowering.plan import Call, Plan, Space, all_steps, slots_of
from rune.records import dataclass


class Queue(Protocol):
    """The part of a device that its executables use."""

    target: Target
    pool: Pool
    turns: Turns
    work: Work

    @property
    def arena(self) -> Callable[[int], Block]:
        """The memory that all plans of the device share: at least so many bytes."""
        ...

    def check(self) -> None:
        """Errors: DeviceError in a forked process, or once the device is lost."""
        ...

    def alloc(self, type: ArrayType, maker: str = "alloc") -> DeviceBuffer:
        """Uninitialised device memory for one array, made by `maker`."""
        ...

    def request(self, type: ArrayType, maker: str) -> Request:
        """What the pool serves for one array, made by `maker`."""
        ...

    def marker(self) -> Callable[[], bool]:
        """The question whether all that was enqueued until now has ended."""
        ...


Q = TypeVar("Q", bound=Queue)


@dataclass(slots=True, eq=False)  # not frozen, as DeviceBuffer
class Turn:
    """A call of a plan, which is enqueued under the lock of the device's turns.

    memory: of arguments and results; `begin` adds that of the arena, if the plan uses it
    """

    queue: Queue
    concrete: Concrete
    results: Sequence[DeviceBuffer]
    memory: dict[Space, list[Block]]
    uses_arena: bool

    def begin(self) -> None:
        """Prepare to enqueue steps. Under the lock, since the arena may grow."""
        arena = [self.queue.arena(max(1, self.concrete.arena_bytes))] if self.uses_arena else []
        self.memory[Space.ARENA] = arena

    def end(self) -> None:
        """Count the call: all of its steps are enqueued, or one has failed."""
        self.queue.work.follow(self.queue.marker())


class QueuedBackend(ABC):
    """The common part of devices with one queue: memory of a pool, copies, counts.

    A backend defines how bytes get to the device (`send`) and back (`start_fetch`), and has
    `target`, `pool`, `work` and `check()`.
    """

    target: Target
    pool: Pool
    work: Work
    turns: Turns
    check: Callable[[], None]

    @property
    def has_clock(self) -> bool:
        """Whether steps are timed by the device's own clock."""
        return True

    def room(self, nbytes: int) -> int:
        """The bytes to request from the pool for an array of `nbytes`."""
        return nbytes

    @abstractmethod
    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Write bytes (u8) to the block, after all enqueued work; `data` may change after the
        return."""

    @abstractmethod
    def start_fetch(self, block: Block, offset: int, nbytes: int) -> Callable[[], np.ndarray]:
        """Begin to copy bytes to the host; the function returned waits for them and returns u8."""

    def alloc(self, type: ArrayType, maker: str = "alloc") -> DeviceBuffer:
        """Uninitialised device memory for one array, made by `maker`."""
        self.check()
        return DeviceBuffer(self.pool.serve(self.request(type, maker)), type, static_shape(type))

    def request(self, type: ArrayType, maker: str) -> Request:
        """What the pool serves for one array, made by `maker`. Errors: OutOfMemory."""
        return self.pool.request(self.room(size_bytes(type)), (type, maker))

    def copy_in(self, array: np.ndarray) -> DeviceBuffer:
        """The array on the device; returns when the host array may change."""
        buffer = self.alloc(ArrayType(array.shape, array.dtype), "copy_in")
        # Some drivers refuse copies of no bytes.
        if array.size:
            self.send(buffer.memory, 0, bytes_of(array))
        return buffer

    def copy_out(self, buffer: DeviceBuffer, type: ArrayType) -> np.ndarray:
        """The contents as a new host array."""
        return self.start_copy_out(buffer, type)()

    def start_copy_out(self, buffer: DeviceBuffer, type: ArrayType) -> Callable[[], np.ndarray]:
        """Begin to copy the contents; the function returned waits for them."""
        self.check()
        nbytes, shape = size_bytes(type), static_shape(type)
        if not nbytes:
            return lambda: np.empty(shape, type.dtype)
        wait_for_bytes = self.start_fetch(buffer.memory, 0, nbytes)
        return lambda: wait_for_bytes().view(type.dtype).reshape(shape)

    def work_stats(self) -> WorkStats:
        """Counts of calls so far."""
        return self.work.stats()


class QueuedExecutable(ABC, Generic[Q]):
    """A compiled plan; subclasses enqueue its steps in `run_steps`."""

    def __init__(self, backend: Q, plan: Plan):
        self.plan, self.backend = plan, backend
        self._alloc = partial(backend.alloc, maker=plan.name)
        self._concretes = Concretes(plan)
        slots = (slot for step in all_steps(plan) for slot in slots_of(step))
        # A plan without intermediates need not allocate or grow the arena.
        self._uses_arena = any(slot.space is Space.ARENA for slot in slots)

    def __call__(self, arguments: Sequence[DeviceBuffer], donated: Sequence[int] = ()) -> list[DeviceBuffer]:
        """Enqueue all steps; returns at once."""
        try:
            turn = self.turn(arguments, donated)
            self.enqueue_turn(turn)
        except OutOfMemory as error:
            raise self._shortage(error, self._concretes([a.shape for a in arguments])) from error
        return [*turn.results]

    def enqueue_turn(self, turn: Turn) -> None:
        """Enqueue all steps of a call. Errors: OutOfMemory."""
        # Under the lock, so that the steps of two calls do not interleave in the queue: they share
        # the arena.
        with self.backend.turns.lock:
            turn.begin()
            has_ended = None
            try:
                has_ended = self.run_steps(turn.concrete, turn.memory)
            finally:
                # After an error, too: the steps before it are enqueued, and end before the marker.
                self.backend.work.follow(has_ended or self.backend.marker())

    def _shortage(self, error: OutOfMemory, concrete: Concrete) -> OutOfMemory:
        return shortage.of_plan(error, self.plan, concrete.sizes, self.backend.target.name)

    def player(self, arguments: Sequence[DeviceBuffer]) -> Played | None:
        """Calls with arguments of these shapes and dtypes, which are checked once, here."""
        concrete = self._concretes([a.shape for a in arguments])
        check_dtypes(self.plan, arguments)
        shapes, backend = tuple(map(static_shape, concrete.results)), self.backend
        stocks = [Stock(backend.pool, backend.request(t, self.plan.name)) for t in concrete.results]
        makers = tuple(zip(stocks, concrete.results, shapes, strict=True))
        play, repeat = partial(self._call_again, concrete, makers), self.repeat(concrete)
        if repeat is not None:
            play = native_player(play, repeat, backend, len(arguments), makers)
        return Played(play, shapes)

    def repeat(self, concrete: Concrete) -> Repeat | None:
        """What native code does in a call; None where only Python can make it."""
        return None

    def _call_again(
        self, concrete: Concrete, makers: tuple[ResultMaker, ...], *arguments: DeviceBuffer
    ) -> tuple[DeviceBuffer, ...] | None:
        """Make a call whose arguments fit. Returns None, having done nothing, where memory is short
        and while a callback runs."""
        # Every small program's call comes here: few functions, and no object that is not needed.
        backend, results = self.backend, []
        backend.check()
        if backend.turns.caller is not None:
            return None
        blocks = [a.memory for a in arguments]
        # `__call__` then raises the error with the plan's arena and lines, or refuses the callback.
        try:
            for stock, type, shape in makers:
                blocks.append(block := stock.take())
                results.append(DeviceBuffer(block, type, shape))
        except OutOfMemory:
            return None
        try:
            with backend.turns.lock:
                has_ended = None
                try:
                    has_ended = self.run_again(concrete, blocks)
                finally:
                    backend.work.follow(has_ended or backend.marker())
        except OutOfMemory as error:
            raise self._shortage(error, concrete) from error
        return tuple(results)

    def run_again(self, concrete: Concrete, blocks: list[Block]) -> Callable[[], bool] | None:
        """As `run_steps`, on blocks of arguments, then of results. Under the lock of turns."""
        count = len(self.plan.arguments)
        memory = {Space.ARGUMENT: blocks[:count], Space.RESULT: blocks[count:], Space.ARENA: self.arena(concrete)}
        return self.run_steps(concrete, memory)

    def position(self, space: Space, number: int) -> int:
        """The position of memory among the blocks of arguments, results and, last, the arena."""
        first = {Space.ARGUMENT: 0, Space.RESULT: len(self.plan.arguments), Space.ARENA: -1}
        return first[space] + number

    def arena(self, concrete: Concrete) -> list[Block]:
        """The device's arena, if the plan uses it. Under the lock of turns, since it may grow."""
        return [self.backend.arena(max(1, concrete.arena_bytes))] if self._uses_arena else []

    def turn(self, arguments: Sequence[DeviceBuffer], donated: Sequence[int] = ()) -> Turn:
        """A call that is not yet enqueued, with memory for its results."""
        self.backend.check()
        concrete = self._concretes([a.shape for a in arguments])
        check_dtypes(self.plan, arguments)
        self.backend.turns.refuse_callback(self.plan.name)
        results = result_buffers(self.plan, concrete, arguments, donated, self._alloc, _reuse)
        memory = {Space.ARGUMENT: [a.memory for a in arguments], Space.RESULT: [r.memory for r in results]}
        return Turn(self.backend, concrete, results, memory, self._uses_arena)

    @abstractmethod
    def run_steps(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> Callable[[], bool] | None:
        """Enqueue all steps on this memory.

        Returns a function that says whether they have ended; None to use the backend's marker.
        """


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The elements of an array as u8, in their order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _reuse(buffer: DeviceBuffer, type: ArrayType) -> DeviceBuffer:
    return DeviceBuffer(buffer.memory, type, static_shape(type))


def check_dtypes(plan: Plan, arguments: Sequence[Any]) -> None:
    """Errors: ArgumentError "f: cannot run with this argument (argument 0 must be f32[3], ...)"."""
    for number, (buffer, type_) in enumerate(zip(arguments, plan.arguments, strict=True)):
        if buffer.type.dtype != type_.dtype:
            misfit = f"argument {number} must be {type_}, not {buffer.type}"
            raise ArgumentError(f"{plan.name}: cannot run with this argument ({misfit})")


E = TypeVar("E", bound=QueuedExecutable[Any])


class QueuedWalker(ABC, Generic[E]):
    """Walks the steps of one call on the host, which enqueues kernels and calls Python."""

    __slots__ = ()
    executable: E

    def step(self, step: ConcreteStep) -> None:
        """Enqueue a kernel or copy, or call Python."""
        if is_callback(step.step):
            calling_back = self.executable.backend.turns.calling_back()
            call_python(step.step, step.places, self.fetch, self.send, calling_back)
        else:
            self.enqueue(step)

    @abstractmethod
    def enqueue(self, step: ConcreteStep) -> None:
        """Enqueue a kernel or copy."""

    def read(self, place: Place) -> int:
        """The number at a place, after waiting for all enqueued work."""
        return int(self.fetch(place).view(place.type.dtype)[0])

    @abstractmethod
    def fetch(self, place: Place) -> np.ndarray:
        """The bytes at a place, after waiting for all enqueued work."""

    @abstractmethod
    def send(self, place: Place, host: np.ndarray) -> None:
        """Write bytes to a place, after all enqueued work."""


def call_python(
    call: Call,
    places: Sequence[Place],
    fetch: Callable[[Place], np.ndarray],
    send: Callable[[Place, np.ndarray], None],
    calling_back: AbstractContextManager[None],
) -> None:
    """Fetch a Python function's operands, call it, and send its results."""
    count = len(call.outputs)
    # The function fills its outputs, so their old contents are not fetched.
    hosts = [np.zeros(p.bytes, np.uint8) for p in places[:count]]
    hosts += [fetch(p) if p.bytes else np.empty(0, np.uint8) for p in places[count:]]
    with calling_back:
        arrays = [h.view(p.type.dtype) for h, p in zip(hosts, places, strict=True)]
        fill(function_of(call), arrays, [p.type for p in places], count)
    for host, place in zip(hosts[:count], places):
        if place.bytes:
            send(place, host)
