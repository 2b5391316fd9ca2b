"""A plan on a CUDA device: a call copies one table of arguments and launches one graph.

All that depends on sizes alone is made once for each choice of them: kernels, table, graph. A call
writes the addresses of its arguments, results and arena into the table, and launches the graph.
The first call with new sizes launches the kernels one by one, if no step decides which come next:
building a graph costs more than that, and where sizes grow step by step none occurs twice.
Where only the host can decide (graph.needs_host), it launches the same kernels one by one, and
waits only for the numbers that it has to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.driver import Context, Driver, Stream
from rune.backends.cuda.gate import MOST, Gate
from rune.backends.cuda.graph import Division, Kernel, Memory, Nodes, Recorder, Table, needs_host, word
from rune.backends.cuda.kernels import STEPS
from rune.backends.cuda.launch import Graph, Program, Retired, launch
from rune.backends.cuda.loans import Borrowed
from rune.backends.cuda.native import PUSH, Functions, Marks, Replay, replay
from rune.backends.cuda.nccl.losses import Peer
from rune.backends.cuda.staging import SIZES, Staging
from rune.backends.shared.bounded import Bounded
from rune.backends.shared.call_list import CallList
from rune.backends.shared.callbacks import is_callback
from rune.backends.shared.executor import Concrete, ConcreteStep, Place, Steps, all_concrete, run
from rune.backends.shared.interrupts import deferred
from rune.backends.shared.native_player import Repeat
from rune.backends.shared.pool import Block
from rune.backends.shared.queued import Queue, QueuedExecutable, QueuedWalker, Turn
from rune.backends.shared.sources import Sources
from rune.backends.shared.timing import Meter, TimedWalker
from rune.backends.shared.turns import Arena, DeviceBuffer
from rune.lowering.codegen.c.cuda import dialect_for
from rune.lowering.codegen.c.render import Rendered, assemble
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.work import counted_work
from rune.lowering.plan import Plan, Space
from rune.records import dataclass

M = TypeVar("M")


def address(block: Block) -> int:
    """The address of memory on the device."""
    return block.handle.address + block.offset


@dataclass(slots=True, eq=False)
class Recording:
    """A plan recorded for one choice of sizes.

    places: the positions of the table's memory among the blocks of a call
    nodes:  None where the host walks the steps
    """

    concrete: Concrete
    recorder: Recorder
    table: Table
    places: Sequence[int]
    memory: Block  # of the table on the device
    nodes: Nodes | None
    is_seen: bool = False  # whether it was launched before, or cannot be launched without a graph
    graph: Graph | None = None
    replay: Replay | None = None  # of the graph


@dataclass(frozen=True, slots=True)
class Walker(QueuedWalker["CudaExecutable"]):
    """Launches the kernels of one call, one by one. Only `read` and `fetch` wait for the device."""

    executable: CudaExecutable
    recording: Recording
    addresses: Mapping[Memory, int]

    def at(self, place: Place) -> int:
        memory, offset = word(place)
        assert memory is not None
        return self.addresses[memory] + offset

    def enqueue(self, step: ConcreteStep) -> None:
        """Launch a kernel."""
        for kernel in self.recording.recorder.kernels(step):
            self.executable.launch(kernel, self.recording)

    def write(self, place: Place, number: int) -> None:
        """Enqueue the store of an i32."""
        backend = self.executable.backend
        backend.driver.memset_d32_async(self.at(place), number, 1, backend.stream)

    def fetch(self, place: Place) -> np.ndarray:
        """The bytes at a place, after waiting for all enqueued work."""
        backend, host = self.executable.backend, np.empty(place.bytes, np.uint8)
        # First, since the wait for the stream below could be for a collective that never ends.
        backend.settle()
        backend.driver.memcpy_dtoh_async(host, self.at(place), backend.stream)
        backend.stream.synchronize()
        return host

    def send(self, place: Place, host: np.ndarray) -> None:
        """Write bytes to a place, after all enqueued work."""
        self.executable.backend.staging.send(self.at(place), host)


class CudaQueue(Queue, Peer, Protocol):
    """The part of a CUDA device that executables use."""

    number: int  # as CUDA counts its devices
    driver: Driver
    context: Context
    stream: Stream
    staging: Staging
    retired_handles: Retired
    functions: Functions
    context_handle: int
    stream_handle: int

    @property
    def marks(self) -> Marks:
        """The events behind calls that are replayed as call lists."""
        ...

    @property
    def gate(self) -> Gate:
        """The gate of the stream, for measurements."""
        ...

    @property
    def arena(self) -> Arena:
        """The memory that all plans of the device share."""
        ...

    def pinned_table(self, nbytes: int, /) -> int:
        """Pinned memory for a table, to be copied before the next one is taken. Errors:
        DeviceError."""
        ...

    def refuse(self, function: str, code: int) -> None:
        """Raise the error that a function of the driver has returned. Errors: DeviceError."""
        ...

    @property
    def in_context(self) -> AbstractContextManager[None]:
        """Inside, the context is current, and the driver's errors become DeviceErrors."""
        ...

    @property
    def step_kernels(self) -> Program:
        """Rune's own kernels, for copies and counters."""
        ...

    @property
    def conditions(self) -> Program | str:
        """Rune's own kernels for conditions, or the reason why they are missing."""
        ...

    def settle(self) -> None:
        """Wait until all of its collectives have ended. Errors: DeviceError if one never will."""
        ...


def _division(plan: Plan, target: Target) -> Division | None:
    """How to divide launches on this device; None if that is not needed."""
    if target.submission_work is None:
        return None
    work = {name: counted_work(code, target) for name, code in plan.kernels.items()}
    return Division(work, target.submission_work)


class CudaExecutable(QueuedExecutable[CudaQueue]):
    """A compiled plan; `meter` records the time of each step."""

    def __init__(
        self,
        backend: CudaQueue,
        plan: Plan,
        kernels: dict[str, Rendered],
        program: Program,
        sources: Sources[Program],
        meter: Meter | None = None,
    ):
        super().__init__(backend, plan)
        self.meter = meter
        self._kernels = kernels
        self._program = program
        self._sources = sources
        self._division = _division(plan, backend.target)
        self._shared_bytes = {r.name: r.shared_bytes for r in kernels.values()}
        self._recordings: Bounded[Concrete, Recording] = Bounded()

    def on(self, backend: CudaQueue) -> CudaExecutable:
        """The same code on another device of the kind."""
        with backend.in_context:
            program = Program(self._program.image, backend.retired_handles)
            programs = {name: Program(p.image, backend.retired_handles) for name, p in self._sources.programs.items()}
        return CudaExecutable(backend, self.plan, self._kernels, program, replace(self._sources, programs=programs))

    def turn(self, arguments: Sequence[DeviceBuffer], donated: Sequence[int] = ()) -> Turn:
        """A call that is not yet enqueued. Donated memory of other libraries is not reused."""
        return super().turn(arguments, [n for n in donated if not isinstance(arguments[n].memory, Borrowed)])

    def sources(self) -> dict[str, str]:
        """The source of each kernel as a separate program, by name."""
        ours = {name: assemble([r], dialect_for(self.backend.target)) for name, r in self._kernels.items()}
        return ours | {name: r.text for name, r in self._sources.kernels.items()}

    def run_steps(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> Callable[[], bool] | None:
        """Write the addresses of the call's memory into the table, and launch."""
        recording = self._recordings.get(concrete)
        if recording is not None and recording.replay is not None:
            return self._play(recording.replay, [memory[space][n] for space, n in recording.table.memory])
        with self.backend.in_context:
            walker = self.begin(concrete, memory)
            if walker is not None:
                run(concrete.steps, walker)
        return None

    def run_again(self, concrete: Concrete, blocks: list[Block]) -> Callable[[], bool] | None:
        """As `run_steps`, on blocks of arguments, then of results."""
        recording = self._recordings.get(concrete)
        if recording is None or recording.replay is None:
            return super().run_again(concrete, blocks)
        blocks += self.arena(concrete)
        return self._play(recording.replay, [blocks[position] for position in recording.places])

    def _play(self, replay: Replay, blocks: Sequence[Block]) -> Callable[[], bool]:
        """Launch the graph on memory in the table's order; returns a function that says whether it
        has ended."""
        words, marks = replay.calls.words, self.backend.marks
        marks.await_entry()
        # An interrupt after the launch would leave the entry in use, and look free.
        with deferred():
            for word, block in enumerate(blocks, replay.bases):
                words[word] = block.number
            self._take_table(replay)
            marks.ring.begin()
            count = replay.calls.play()
            marks.ring.end()
            has_ended = partial(marks.is_done, marks.last)
        if count < replay.calls.count:
            self._refuse(replay.calls, count)
        return has_ended

    def _take_table(self, replay: Replay) -> None:
        """Take pinned memory for a table that no entry has room for. Errors: DeviceError."""
        if replay.table is not None:
            replay.calls.words[replay.table] = self.backend.pinned_table(replay.nbytes)

    def repeat(self, concrete: Concrete) -> Repeat | None:
        """The replay of the graph as native code makes it; None where the host has to walk."""
        recording = self._recordings.get(concrete)
        replay = recording.replay if recording is not None else None
        if recording is None or replay is None:
            return None
        places = [(replay.bases + number, position) for number, position in enumerate(recording.places)]
        marks = self.backend.marks
        return Repeat(
            replay.calls,
            places,
            arena=self.backend.arena,
            nbytes=concrete.arena_bytes or 1,
            unchanged=(),
            zeros=(),
            ring=marks.ring,
            begin=None if replay.table is None else partial(self._take_table, replay),
            finish=None,
            answer=marks.numbers.last.buffer_info()[0],
            end=None,
            option=None,
            has_ended=marks.is_done,
            refuse=partial(self._refuse_again, replay),
            owner=recording,
        )

    def _refuse_again(self, replay: Replay, count: int, *_: DeviceBuffer) -> None:
        self._refuse(replay.calls, count)

    def _refuse(self, calls: CallList, count: int) -> None:
        """Raise the error of a call in a list. Errors: DeviceError."""
        if count > PUSH:
            self.backend.context.pop()
        self.backend.refuse("a replay", calls.status(count))

    def begin(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> Walker | TimedWalker | None:
        """Write the addresses into the table, and launch. Returns a walker if the host has to
        walk."""
        recording = self._prepare(concrete)
        addresses = {(s, n): address(b) for s, blocks in memory.items() for n, b in enumerate(blocks)}
        # The copy is ordered by the stream, so a call that is still running reads its own table.
        words = recording.table.words(addresses.__getitem__)
        self.backend.staging.send(address(recording.memory), words.view(np.uint8))
        if recording.nodes is None:
            return self._walker(recording, addresses)
        self._replay(recording, recording.nodes)
        return None

    def _replay(self, recording: Recording, nodes: Nodes) -> None:
        """Enqueue all nodes; from the second time on as a graph."""
        if not nodes:
            return
        if recording.graph is None and not recording.is_seen:
            recording.is_seen = True
            for kernel in nodes:
                assert isinstance(kernel, Kernel)
                self.launch(kernel, recording)
            return
        if recording.graph is None:
            recording.graph = self._with_room(lambda: self._graph(recording, nodes))
            # A larger table does not fit into a piece of pinned memory, and is sent in parts.
            if 8 * len(recording.table.numbers) <= SIZES[0]:
                at = address(recording.memory)
                marks, handle = self.backend.marks, recording.graph.handle
                recording.replay = replay(self.backend, marks, recording.table, at, handle)
        call("cuGraphLaunch", recording.graph.handle, self.backend.stream.handle)

    def _graph(self, recording: Recording, nodes: Nodes) -> Graph:
        at, context = address(recording.memory), self.backend.context.handle
        return Graph(nodes, self.function, at, context, self.backend.retired_handles)

    def needs_host(self, steps: Steps) -> bool:
        """Whether the host has to launch the steps one by one."""
        # A graph reports no times of its nodes, so a plan that is timed needs the host.
        if self.meter is not None or needs_host(steps, True):
            return True
        # Last, because this compiles the conditions: only a plan with a decision should pay for
        # that.
        return needs_host(steps, False) and isinstance(self.backend.conditions, str)

    def _walker(self, recording: Recording, addresses: Mapping[Memory, int]) -> Walker | TimedWalker:
        """The walker that runs the steps one by one."""
        walker = Walker(self, recording, addresses)
        if self.meter is None:
            return walker
        measure = partial(self._seconds, walker)
        return TimedWalker(walker, measure, self.meter, recording.concrete.sizes)

    def _seconds(self, walker: Walker, step: ConcreteStep) -> float | None:
        """Run a step; returns the seconds of its launches, None for a call of Python."""
        if is_callback(step.step):
            walker.step(step)
            return None
        driver, stream = self.backend.driver, self.backend.stream
        # More launches would fill the stream, and the host would wait for a gate that it has
        # closed.
        is_short = len(walker.recording.recorder.kernels(step)) <= MOST
        start, end = driver.Event(), driver.Event()
        with self.backend.gate.closed() if is_short else nullcontext():
            start.record(stream)
            walker.step(step)
            end.record(stream)
        end.synchronize()
        return 1e-3 * start.time_till(end)

    # --- once for each choice of sizes --------------------------------------------------------

    def _prepare(self, concrete: Concrete) -> Recording:
        recording = self._recordings.get(concrete)
        if recording is not None:
            return recording
        return self._recordings.keep(concrete, self._with_room(lambda: self._make(concrete)))

    def _with_room(self, make: Callable[[], M]) -> M:
        """The result of `make`, called again with an empty pool if memory is short. Errors:
        OutOfMemory."""
        try:
            return make()
        # Blocks cached in the pool still occupy device memory; trimming may make enough room.
        except MemoryError:
            self.backend.pool.trim()
        try:
            return make()
        except MemoryError as error:
            raise self.backend.pool.out_of_memory(0) from error

    def _make(self, concrete: Concrete) -> Recording:
        backend = self.backend
        target = backend.target
        aliases = {(Space.RESULT, r): (Space.ARGUMENT, a) for a, r in self.plan.donations}
        shape = target.cores, target.subgroup_threads
        recorder = Recorder(self._kernels, concrete.sizes, *shape, aliases, self._division, self._sources)
        on_host = self.needs_host(concrete.steps)
        nodes = None if on_host else recorder.nodes(concrete.steps)
        if on_host:
            for step in all_concrete(concrete.steps):
                # Every kernel has to be recorded before the table is laid out.
                if not is_callback(step.step):
                    recorder.kernels(step)
        table = recorder.table()
        memory = backend.pool.take(8 * len(table.numbers), ("arguments of", self.plan.name))
        places = [self.position(space, number) for space, number in table.memory]
        # Steps that decide must run as a graph from the first call on.
        return Recording(concrete, recorder, table, places, memory, nodes, needs_host(concrete.steps, False))

    def function(self, name: str) -> Any:
        """The handle of a kernel: a user's, the plan's, or rune's own."""
        source = self._sources.kernels.get(name)
        if source is not None:
            return self._sources.programs[name].function(source.name, source.shared_bytes)
        if name in self._shared_bytes:
            return self._program.function(name, self._shared_bytes[name])
        program = self.backend.step_kernels if f"void {name}(" in STEPS else self.backend.conditions
        assert isinstance(program, Program)
        return program.function(name)

    def launch(self, kernel: Kernel, recording: Recording) -> None:
        """Enqueue one kernel."""
        at, stream = address(recording.memory), self.backend.stream.handle
        launch(kernel, self.function(kernel.name), at, stream)
