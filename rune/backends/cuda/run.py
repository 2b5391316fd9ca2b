"""A plan on a CUDA device: one table of arguments, one copy of it and one launch per call.

What depends on sizes alone is made once for each choice of them: kernels, table, graph. A call
writes the addresses of its arguments, results and arena into the table, and launches the graph.
The first call of a size launches the kernels one by one, if nothing is decided between them: making
a graph costs more than that, and where sizes grow step by step no size comes twice.
Where only the host can decide what comes next (graph.needs_host) it launches the same kernels
one by one; it waits only for a number that it has to read.
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
from rune.backends.cuda.graph import Divided, Kernel, Memory, Nodes, Recorder, Table, needs_host, word
from rune.backends.cuda.kernels import STEPS
from rune.backends.cuda.launch import Graph, Program, Retired, launch
from rune.backends.cuda.loans import Borrowed
from rune.backends.cuda.native import Functions, Marks, Replay, replay
from rune.backends.cuda.nccl.losses import Peer
from rune.backends.cuda.staging import SIZES, Staging
from rune.backends.shared.bounded import Bounded
from rune.backends.shared.call_list import CallList
from rune.backends.shared.callbacks import is_callback
from rune.backends.shared.executor import Concrete, ConcreteStep, Place, Steps, all_concrete, run
from rune.backends.shared.pool import Block
from rune.backends.shared.queued import DeviceBuffer, Queue, QueuedExecutable, Turn, call_python
from rune.backends.shared.sources import Sources
from rune.backends.shared.timing import Meter, TimedWalker
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
class Prepared:
    """A plan for one choice of sizes. `nodes`: None where the host walks the steps."""

    concrete: Concrete
    recorder: Recorder
    table: Table
    memory: Block  # of the table on the device
    nodes: Nodes | None
    is_seen: bool = False  # launched before, or not to be launched without a graph
    graph: Graph | None = None
    replay: Replay | None = None  # of the graph


@dataclass(frozen=True, slots=True)
class Walker:
    """Launches the kernels of one call, as loops and branches say. Only reading waits."""

    executable: CudaExecutable
    prepared: Prepared
    addresses: Mapping[Memory, int]

    def at(self, place: Place) -> int:
        memory, offset = word(place)
        assert memory is not None
        return self.addresses[memory] + offset

    def step(self, step: ConcreteStep) -> None:
        """Launch a kernel, or call Python."""
        if is_callback(step.step):
            calling_back = self.executable.backend.turns.calling_back()
            call_python(step.step, step.places, self.fetch, self.send, calling_back)
            return
        for kernel in self.prepared.recorder.kernels(step):
            self.executable.launch(kernel, self.prepared)

    def write(self, place: Place, number: int) -> None:
        """Enqueue the store of an i32."""
        backend = self.executable.backend
        backend.driver.memset_d32_async(self.at(place), number, 1, backend.stream)

    def read(self, place: Place) -> int:
        """Wait for all that was enqueued; the number there."""
        return int(self.fetch(place).view(place.type.dtype)[0])

    def fetch(self, place: Place) -> np.ndarray:
        """The bytes there, when all that was enqueued is done."""
        backend, host = self.executable.backend, np.empty(place.bytes, np.uint8)
        backend.settle()
        backend.driver.memcpy_dtoh_async(host, self.at(place), backend.stream)
        backend.stream.synchronize()
        return host

    def send(self, place: Place, host: np.ndarray) -> None:
        """Put bytes there, behind all that was enqueued."""
        self.executable.backend.staging.send(self.at(place), host)


class CudaQueue(Queue, Peer, Protocol):
    """The part of a CUDA device that executables use."""

    number: int  # as CUDA counts its devices
    driver: Driver
    context: Context
    stream: Stream
    staging: Staging
    retired: Retired
    functions: Functions
    context_handle: int
    stream_handle: int

    @property
    def marks(self) -> Marks:
        """Events behind calls that are played from lists."""
        ...

    @property
    def gate(self) -> Gate:
        """In its stream, for those who measure."""
        ...

    def pinned_table(self, nbytes: int, /) -> int:
        """Pinned memory for a table that is copied at once. Errors: DeviceError."""
        ...

    def refuse(self, function: str, code: int) -> None:
        """Raise the error that a function of the driver has returned. Errors: DeviceError."""
        ...

    @property
    def entered(self) -> AbstractContextManager[None]:
        """Within, the context is current, and what the driver refuses is a DeviceError."""
        ...

    @property
    def own(self) -> Program:
        """Rune's own kernels of steps."""
        ...

    @property
    def conditions(self) -> Program | str:
        """Rune's own kernels of conditions, or the reason why they are missing."""
        ...

    def settle(self) -> None:
        """Wait until it is in no collective. Errors: DeviceError if one will never end."""
        ...


def _divided(plan: Plan, target: Target) -> Divided | None:
    """How long launches are divided on this device."""
    if target.submission_work is None:
        return None
    work = {name: counted_work(code, target) for name, code in plan.kernels.items()}
    return Divided(work, target.submission_work)


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
        self._rendered = kernels
        self._program = program
        self._sources = sources
        self._divided = _divided(plan, backend.target)
        self._shared_bytes = {r.name: r.shared_bytes for r in kernels.values()}
        self._prepared: Bounded[Concrete, Prepared] = Bounded()

    def on(self, backend: CudaQueue) -> CudaExecutable:
        """The same code on another device of the kind."""
        with backend.entered:
            program = Program(self._program.image, backend.retired)
            programs = {name: Program(p.image, backend.retired) for name, p in self._sources.programs.items()}
        return CudaExecutable(backend, self.plan, self._rendered, program, replace(self._sources, programs=programs))

    def turn(self, arguments: Sequence[DeviceBuffer], donated: Sequence[int] = ()) -> Turn:
        """A call whose turn has not come. Memory of other libraries is never written."""
        return super().turn(arguments, [n for n in donated if not isinstance(arguments[n].memory, Borrowed)])

    def sources(self) -> dict[str, str]:
        """Each kernel as a program of its own, by name."""
        ours = {name: assemble([r], dialect_for(self.backend.target)) for name, r in self._rendered.items()}
        return ours | {name: r.text for name, r in self._sources.rendered.items()}

    def run_steps(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> Callable[[], bool] | None:
        """Write the addresses of this memory into the table, and launch."""
        prepared = self._prepared.get(concrete)
        if prepared is not None and prepared.replay is not None:
            return self._play(prepared.table, prepared.replay, memory)
        with self.backend.entered:
            walker = self.begin(concrete, memory)
            if walker is not None:
                run(concrete.steps, walker)
        return None

    def _play(self, table: Table, replay: Replay, memory: dict[Space, list[Block]]) -> Callable[[], bool]:
        """Launch the graph on this memory; the question whether it has ended."""
        backend, words = self.backend, replay.calls.words
        marks, word = backend.marks, replay.bases
        for space, number in table.memory:
            block = memory[space][number]
            words[word] = block.handle.address + block.offset
            word += 1
        if replay.nbytes:
            words[replay.table] = backend.pinned_table(replay.nbytes)
        words[replay.event] = marks.next()
        count = replay.calls.play()
        if count < replay.calls.count:
            self._refuse(replay.calls, count)
        return partial(marks.is_done, marks.pass_on())

    def _refuse(self, calls: CallList, count: int) -> None:
        """Raise what the driver has answered to a call of a list. Errors: DeviceError."""
        if count:
            self.backend.context.pop()  # the first has pushed it
        self.backend.refuse("a replay", calls.status(count))

    def begin(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> Walker | TimedWalker | None:
        """Write the addresses into the table, and launch; what the host has to walk with, else."""
        prepared = self._prepare(concrete)
        addresses = {(s, n): address(b) for s, blocks in memory.items() for n, b in enumerate(blocks)}
        # The copy is ordered by the stream, so a call that is still running reads its own table.
        words = prepared.table.words(addresses.__getitem__)
        self.backend.staging.send(address(prepared.memory), words.view(np.uint8))
        if prepared.nodes is None:
            return self._walker(prepared, addresses)
        self._replay(prepared, prepared.nodes)
        return None

    def _replay(self, prepared: Prepared, nodes: Nodes) -> None:
        """Enqueue all nodes, by a graph from the second time on."""
        if not nodes:
            return
        if prepared.graph is None and not prepared.is_seen:
            prepared.is_seen = True
            for kernel in nodes:
                assert isinstance(kernel, Kernel)
                self.launch(kernel, prepared)
            return
        if prepared.graph is None:
            prepared.graph = self._with_room(lambda: self._graph(prepared, nodes))
            if 8 * len(prepared.table.numbers) <= SIZES[0]:
                at = address(prepared.memory)
                prepared.replay = replay(self.backend, prepared.table, at, prepared.graph.handle)
        call("cuGraphLaunch", prepared.graph.handle, self.backend.stream.handle)

    def _graph(self, prepared: Prepared, nodes: Nodes) -> Graph:
        at, context = address(prepared.memory), self.backend.context.handle
        return Graph(nodes, self.function, at, context, self.backend.retired)

    def needs_host(self, steps: Steps) -> bool:
        """Whether the host runs the steps one by one: a graph does not tell of its nodes."""
        if self.meter is not None or needs_host(steps, True):
            return True
        # Asked last: conditions are compiled for the first plan that decides something.
        return needs_host(steps, False) and isinstance(self.backend.conditions, str)

    def _walker(self, prepared: Prepared, addresses: Mapping[Memory, int]) -> Walker | TimedWalker:
        """What runs the steps one by one."""
        walker = Walker(self, prepared, addresses)
        if self.meter is None:
            return walker
        measure = partial(self._seconds, walker)
        return TimedWalker(walker, measure, self.meter, prepared.concrete.sizes)

    def _seconds(self, walker: Walker, step: ConcreteStep) -> float | None:
        """Run a step; how long its launch took, None for a call of Python."""
        if is_callback(step.step):
            walker.step(step)
            return None
        driver, stream = self.backend.driver, self.backend.stream
        is_short = len(walker.prepared.recorder.kernels(step)) <= MOST
        start, end = driver.Event(), driver.Event()
        with self.backend.gate.closed() if is_short else nullcontext():
            start.record(stream)
            walker.step(step)
            end.record(stream)
        end.synchronize()
        return 1e-3 * start.time_till(end)

    # --- once for each choice of sizes --------------------------------------------------------

    def _prepare(self, concrete: Concrete) -> Prepared:
        prepared = self._prepared.get(concrete)
        if prepared is not None:
            return prepared
        return self._prepared.keep(concrete, self._with_room(lambda: self._make(concrete)))

    def _with_room(self, make: Callable[[], M]) -> M:
        """What is made, after emptying the pool if the device is full. Errors: OutOfMemory."""
        try:
            return make()
        # Blocks cached in the pool still occupy device memory; trimming may make enough room.
        except MemoryError:
            self.backend.pool.trim()
        try:
            return make()
        except MemoryError as error:
            raise self.backend.pool.out_of_memory(0) from error

    def _make(self, concrete: Concrete) -> Prepared:
        backend = self.backend
        target = backend.target
        merged = {(Space.RESULT, r): (Space.ARGUMENT, a) for a, r in self.plan.donations}
        shape = target.cores, target.subgroup_threads
        recorder = Recorder(self._rendered, concrete.sizes, *shape, merged, self._divided, self._sources)
        on_host = self.needs_host(concrete.steps)
        nodes = None if on_host else recorder.nodes(concrete.steps)
        if on_host:
            for step in all_concrete(concrete.steps):
                # Every kernel has to be recorded before the table is laid out.
                if not is_callback(step.step):
                    recorder.kernels(step)
        table = recorder.table()
        memory = backend.pool.take(8 * len(table.numbers), ("arguments of", self.plan.name))
        # Only a graph decides without the host.
        return Prepared(concrete, recorder, table, memory, nodes, needs_host(concrete.steps, False))

    def function(self, name: str) -> Any:
        """The handle of a kernel, of the plan or rune's own."""
        source = self._sources.rendered.get(name)
        if source is not None:
            return self._sources.programs[name].function(source.name, source.shared_bytes)
        if name in self._shared_bytes:
            return self._program.function(name, self._shared_bytes[name])
        program = self.backend.own if f"void {name}(" in STEPS else self.backend.conditions
        assert isinstance(program, Program)
        return program.function(name)

    def launch(self, kernel: Kernel, prepared: Prepared) -> None:
        """Enqueue one kernel."""
        at, stream = address(prepared.memory), self.backend.stream.handle
        launch(kernel, self.function(kernel.name), at, stream)
