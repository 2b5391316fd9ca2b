"""A plan on a CUDA device: one table of arguments, one copy of it and one launch per call.

What depends on sizes alone is made once for each choice of them: kernels, table, graph. A call
writes the addresses of its arguments, results and arena into the table, and launches the graph.
Where only the host can decide what comes next (cuda_graph.needs_host) it launches the same kernels
one by one; it waits only for a number that it has to read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rune.backends.callbacks import fill, function_of
from rune.backends.cuda_graph import Kernel, Memory, Recorder, Table, needs_host, word
from rune.backends.cuda_launch import Graph, Program, launch
from rune.backends.executor import (
    Concrete,
    Concretes,
    ConcreteStep,
    Place,
    all_concrete,
    result_buffers,
    run,
    static_shape,
)
from rune.backends.pool import Block
from rune.core.types import ArrayType
from rune.errors import ArgumentError, DeviceError
from rune.lowering.codegen.cstyle import Rendered, assemble
from rune.lowering.codegen.cuda_c import CUDA_C
from rune.lowering.plan import Call, Plan, Space

if TYPE_CHECKING:
    from rune.backends.cuda import CudaBackend


@dataclass(frozen=True, slots=True, eq=False)
class CudaBuffer:
    """An array in device memory; the memory returns to the pool with the last buffer on it."""

    memory: Block
    type: ArrayType
    shape: tuple[int, ...]

    @property
    def address(self) -> int:
        """On the device."""
        return address(self.memory)


def address(block: Block) -> int:
    """Of memory on the device."""
    return int(block.handle) + block.offset


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plan for one choice of sizes. `graph`: None where the host walks the steps."""

    made: Concrete
    recorder: Recorder
    table: Table
    memory: Block  # of the table on the device
    graph: Graph | None


@dataclass(frozen=True, slots=True)
class _Walker:
    """Launches the kernels of one call, as loops and branches say. Only reading waits."""

    executable: CudaExecutable
    prepared: _Prepared
    addresses: Mapping[Memory, int]

    def at(self, place: Place) -> int:
        memory, offset = word(place)
        assert memory is not None
        return self.addresses[memory] + offset

    def step(self, step: ConcreteStep) -> None:
        """Launch a kernel, or call Python."""
        if isinstance(step.step, Call):
            self.call_back(step.step, step.places)
            return
        kernel = self.prepared.recorder.kernel(step)
        if kernel is not None:
            self.executable.launch(kernel, self.prepared)

    def write(self, place: Place, number: int) -> None:
        """Enqueue the store of an i32."""
        backend = self.executable.backend
        backend.driver.memset_d32_async(self.at(place), number, 1, backend.stream)

    def read(self, place: Place) -> int:
        """Wait for all that was enqueued; the number there."""
        return int(self.fetched(place).view(place.type.dtype)[0])

    def fetched(self, place: Place) -> np.ndarray:
        """The bytes there, when all that was enqueued is done."""
        backend, host = self.executable.backend, np.empty(place.bytes, np.uint8)
        if place.bytes:
            backend.driver.memcpy_dtoh_async(host, self.at(place), backend.stream)
            backend.stream.synchronize()
        return host

    def call_back(self, call: Call, places: Sequence[Place]) -> None:
        """Fetch what a Python function takes, call it, and send what it gives."""
        count = len(call.outputs)
        hosts = [np.zeros(p.bytes, np.uint8) for p in places[:count]]
        hosts += map(self.fetched, places[count:])
        with self.executable.calling_back():
            arrays = [h.view(p.type.dtype) for h, p in zip(hosts, places, strict=True)]
            fill(function_of(call), arrays, [p.type for p in places], count)
        for host, place in zip(hosts[:count], places):
            if place.bytes:
                self.executable.backend.staging.send(self.at(place), host)


class CudaExecutable:
    """A compiled plan."""

    def __init__(
        self, backend: CudaBackend, plan: Plan, kernels: dict[str, Rendered], program: Program
    ):
        self.plan, self.backend = plan, backend
        self._alloc = partial(backend.alloc, maker=plan.name)
        self._rendered = kernels
        self._program = program
        self._names = frozenset(r.name for r in kernels.values())
        self._concretes = Concretes(plan)
        self._prepared: dict[int, _Prepared] = {}  # by id of the concrete plan, which it keeps

    def sources(self) -> dict[str, str]:
        """Each kernel as a program of its own, by name."""
        return {name: assemble([r], CUDA_C) for name, r in self._rendered.items()}

    def __call__(
        self, arguments: Sequence[CudaBuffer], donated: Sequence[int] = ()
    ) -> list[CudaBuffer]:
        """Enqueue all steps; returns at once."""
        backend = self.backend
        backend.check()
        made = self._concretes([a.shape for a in arguments])
        self._check(arguments)
        results = result_buffers(self.plan, made, arguments, donated, self._alloc, _reuse)
        with backend.lock, backend.entered:
            prepared = self._prepare(made)
            self._run(prepared, self._addresses(prepared, arguments, results))
        return results

    def _check(self, arguments: Sequence[CudaBuffer]) -> None:
        for number, (buffer, type_) in enumerate(zip(arguments, self.plan.arguments, strict=True)):
            if buffer.type.dtype != type_.dtype:
                given = f"argument {number} is {type_}, given is {buffer.type}"
                raise ArgumentError(f"{self.plan.name}: cannot run with this argument ({given})")
        if self.backend.caller == threading.get_ident():
            raise DeviceError(
                f"{self.plan.name}: cannot run on {self.backend.target.name} from a callback "
                "(the device waits for the program that calls back)",
                hint="compute with NumPy in callbacks, or on another device",
            )

    def _addresses(
        self, prepared: _Prepared, arguments: Sequence[CudaBuffer], results: Sequence[CudaBuffer]
    ) -> dict[Memory, int]:
        found = {(Space.ARGUMENT, n): a.address for n, a in enumerate(arguments)}
        found |= {(Space.RESULT, n): r.address for n, r in enumerate(results)}
        found[Space.ARENA, 0] = address(self.backend.arena(max(1, prepared.made.arena_bytes)))
        return found

    def _run(self, prepared: _Prepared, addresses: Mapping[Memory, int]) -> None:
        backend = self.backend
        words = prepared.table.words(addresses.__getitem__)
        backend.staging.send(address(prepared.memory), words.view(np.uint8))
        if prepared.graph is None:
            run(prepared.made.steps, _Walker(self, prepared, addresses))
        else:
            prepared.graph.launch(backend.stream.handle)

    # --- once for each choice of sizes --------------------------------------------------------

    def _prepare(self, made: Concrete) -> _Prepared:
        if id(made) not in self._prepared:
            try:
                self._prepared[id(made)] = self._make(made)
            except MemoryError:
                self.backend.pool.trim()
                try:
                    self._prepared[id(made)] = self._make(made)
                except MemoryError as error:
                    raise self.backend.pool.out_of_memory(0) from error
        return self._prepared[id(made)]

    def _make(self, made: Concrete) -> _Prepared:
        backend = self.backend
        recorder = Recorder(self._rendered, made.sizes, backend.target.cores)
        on_host = needs_host(made.steps, backend.has_conditionals)
        nodes = () if on_host else recorder.nodes(made.steps)
        if on_host:
            for step in all_concrete(made.steps):
                if not isinstance(step.step, Call):
                    recorder.kernel(step)
        table = recorder.table()
        memory = backend.pool.take(8 * len(table.numbers), ("arguments of", self.plan.name))
        if on_host or not nodes:
            return _Prepared(made, recorder, table, memory, None)
        at, context = address(memory), backend.context.handle
        graph = Graph(nodes, self.function, at, context, backend.retired)
        return _Prepared(made, recorder, table, memory, graph)

    def function(self, name: str) -> Any:
        """The handle of a kernel, of the plan or rune's own."""
        program = self._program if name in self._names else self.backend.own
        return program.function(name)

    def launch(self, kernel: Kernel, prepared: _Prepared) -> None:
        """Enqueue one kernel."""
        at, stream = address(prepared.memory), self.backend.stream.handle
        launch(kernel, self.function(kernel.name), at, stream)

    @contextmanager
    def calling_back(self) -> Iterator[None]:
        """While a callback runs, its thread holds the lock and must not ask for it again."""
        self.backend.caller = threading.get_ident()
        try:
            yield
        finally:
            self.backend.caller = None


def _reuse(buffer: CudaBuffer, type: ArrayType) -> CudaBuffer:
    return CudaBuffer(buffer.memory, type, static_shape(type))
