"""A CUDA driver that does not exist: host memory at made-up addresses, kernels interpreted.

It stands in for both modules that the executor uses, pycuda.driver and cuda.bindings.driver
(fake_calls.py has the case without pycuda), and logs the calls. Work on a stream is delayed until
the stream is synchronised or an event is queried, so code that touches host memory too early, or
device memory in the wrong order, gives wrong numbers. A call without a current context is an error.
"""

from __future__ import annotations

import enum
import mmap
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rune
from rune.backends import cuda
from rune.backends.cuda import by_bindings
from rune.core.types import ArrayType
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.render import render
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.plan import Plan
from rune.lowering.stages import lower
from tests.backends.cuda.fake_calls import memory_calls
from tests.backends.cuda.fake_kernels import Kernels, in_another_order
from tests.support.lowering import program_of

TARGET = Target(
    "cuda:0",
    "cuda",
    "cuda",
    "a device that does not exist",
    frozenset(CUDA_C.scalars),
    16,
    4,
    1024,
    48 << 10,
    1 << 12,
    frozenset(),
)
BASE, TOTAL = 1 << 20, 1 << 26  # address of the first byte, and bytes


def plan_for(function: Callable[..., Any], *types: ArrayType) -> Plan:
    """The plan of a function on that device."""
    return lower(program_of(function, *types), TARGET)


class Code(enum.IntEnum):
    """The status of a driver's function."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Error(Exception):
    """pycuda's."""


class DriverMemoryError(Error):
    """pycuda's."""


class Allocation:
    """pycuda's DeviceAllocation."""

    def __init__(self, fake: FakeCuda, address: int, nbytes: int):
        self.fake, self.address, self.nbytes = fake, address, nbytes

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        self.fake.say("free")
        self.fake.live_bytes -= self.nbytes
        del self.fake.allocations[self.address]


class Event:
    """pycuda's; unrecorded it has come.

    Where no context is current, the driver's event is destroyed in the thread that opened the
    device, and leaked in any other.
    """

    def __init__(self, fake: FakeCuda, flags: int):
        self.fake, self.position, self.flags = fake, 0, flags

    def __del__(self) -> None:
        is_home = threading.current_thread() is self.fake.home
        self.fake.leak_count += not (is_home or self.fake.is_current())

    def record(self, stream: Any) -> None:
        assert self.fake.is_current()
        self.position = self.fake.enqueue_count

    def query(self) -> bool:
        assert self.fake.is_current()
        self.fake.poll()
        if self.fake.fault is not None:
            raise Error(f"query failed: {self.fake.fault.name}")
        return self.position <= self.fake.done_count

    def synchronize(self) -> None:
        assert self.fake.is_current()
        self.fake.drain(self.position)

    def time_till(self, other: Event) -> float:
        """Milliseconds: one for each command between them."""
        assert not self.flags, "this event takes no time"
        assert not other.flags, "this event takes no time"
        assert other.query(), "the second event has not come"
        return float(other.position - self.position)


class Stack(threading.local):
    """The contexts of a thread, the current one last."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []


class Context:
    """pycuda's primary context.

    It lives as long as the process, so it holds no reference to the driver's memory.
    """

    def __init__(self, number: int, stack: Stack) -> None:
        self.number, self.handle, self.stack = number, 11 + number, stack

    def depth(self) -> int:
        """How often it is on the thread's stack."""
        return self.stack.contexts.count(self)

    def push(self) -> None:
        self.stack.contexts.append(self)

    def pop(self) -> None:
        assert self.stack.contexts.pop() is self, "another context is current"


class Devices:
    """pycuda's class Device."""

    def __init__(self, fake: FakeCuda):
        self.fake = fake

    def count(self) -> int:
        return 1

    def __call__(self, number: int) -> Any:
        return self.fake.device()


class FakeCuda(Kernels):
    """Both drivers. `modules`: the kernels of an image, which `compile_source` would have made.

    number, stack: which device of a machine it is, and the contexts of its threads
    """

    Error, MemoryError, codes = Error, DriverMemoryError, Code
    attributes = MappingProxyType(
        {
            "MULTIPROCESSOR_COUNT": 4,
            "MAX_THREADS_PER_BLOCK": 1024,
            "WARP_SIZE": 32,
            "KERNEL_EXEC_TIMEOUT": 0,
            "INTEGRATED": 0,
            "MAX_SHARED_MEMORY_PER_BLOCK": 49152,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
        }
    )

    def __init__(self, version: int = 13000, total: int = TOTAL, number: int = 0, stack: Stack | None = None):
        self.number, self.base = number, BASE + (number << 32)
        self.version, self.total, self.live_bytes = version, total, 0
        self.memory = np.frombuffer(mmap.mmap(-1, total), np.uint8)  # untouched pages take no memory
        self.allocations: dict[int, int] = {}  # bytes by address
        self.log: list[str] = []
        self.host: list[np.ndarray] = []  # page-locked
        self.shared_limits: dict[str, int] = {}  # bytes that a function may get, if they are more than usual
        self.waits: list[tuple[int, int]] = []  # others' streams, and what they wait for
        self.gates: list[tuple[int, int, int]] = []  # words that the stream waits for, and their numbers
        self.images: list[str] = []  # loaded, by name
        self.callbacks: list[object] = []  # functions whose addresses are known
        self.graphs: dict[int, tuple[Callable[[], None], ...]] = {}  # by handle
        self.foreign: tuple[str, ...] = ()  # ends of the names that it cannot load
        self.modules: dict[bytes, Mapping[str, KernelCode]] = {}
        self.queue: list[Callable[[], None]] = []
        self.enqueue_count = self.done_count = 0
        self.fault: Code | None = None  # what every call answers from now on
        self.conditions: dict[int, bool] = {}
        self.without_node: dict[int, Any] = {}  # conditions whose node is to come, and its graph
        self.context, self.lock = Context(number, stack or Stack()), threading.RLock()
        self.stream = 7 + number
        self.home, self.leak_count = threading.current_thread(), 0
        self.driver, self.bindings = self._driver(), self._bindings()

    # --- what both share -------------------------------------------------------------------

    def is_current(self) -> bool:
        return self.context.stack.contexts[-1:] == [self.context]

    def say(self, call: str) -> None:
        assert self.is_current(), f"{call}: no context is current in this thread"
        self.log.append(call)
        if self.fault is not None:
            raise Error(f"{call} failed: {self.fault.name}")

    def enqueue(self, work: Callable[[], None]) -> None:
        with self.lock:
            self.queue.append(work)
            self.enqueue_count += 1

    def poll(self) -> None:
        """Somebody asks whether an event has come."""

    def drain(self, until: int | None = None) -> None:
        """Run the enqueued commands: all of them, or until this many are done."""
        with self.lock:
            while self.queue and (until is None or self.done_count < until):
                self.step()

    def step(self) -> None:
        """Do what was enqueued first."""
        self.queue.pop(0)()
        self.done_count += 1

    def at(self, address: int, nbytes: int) -> np.ndarray:
        start = int(address) - self.base
        assert 0 <= start <= start + nbytes <= self.memory.size, hex(int(address))
        return self.memory[start : start + nbytes]

    # --- pycuda.driver ---------------------------------------------------------------------

    def _driver(self) -> Any:
        return SimpleNamespace(
            Error=Error,
            MemoryError=DriverMemoryError,
            Device=Devices(self),
            device_attribute=SimpleNamespace(**self.attributes),
            get_driver_version=lambda: self.version,
            Context=SimpleNamespace(synchronize=self.synchronize),
            Event=self.event,
            Stream=lambda: SimpleNamespace(handle=self.stream, synchronize=self.synchronize),
            event_flags=SimpleNamespace(DISABLE_TIMING=2),
            mem_alloc=self.mem_alloc,
            mem_get_info=lambda: (self.total - self.live_bytes, self.total),
            memcpy_dtoh_async=self.dtoh,
            memcpy_htod_async=self.htod,
            memcpy_dtod_async=self.dtod,
            memset_d32_async=self.memset,
            memset_d8_async=self.memset_bytes,
            pagelocked_empty=lambda size, dtype: self.pinned(size),
        )

    def device(self) -> Any:
        """pycuda's Device."""
        return SimpleNamespace(
            name=lambda: "Fake",
            get_attribute=lambda attribute: attribute,  # each is its own value here
            compute_capability=lambda: (9, 0),
            total_memory=lambda: self.total,
            retain_primary_context=lambda: self.context,
        )

    def synchronize(self) -> None:
        self.say("synchronize")
        self.drain()

    def mem_alloc(self, nbytes: int) -> Allocation:
        self.say("mem_alloc")
        address = self.base
        for start, size in sorted(self.allocations.items()):
            if address + nbytes <= start:
                break
            address = start + size
        if address + nbytes > self.base + self.total:
            raise DriverMemoryError("out of memory")
        self.live_bytes += nbytes
        self.allocations[address] = nbytes
        self.at(address, nbytes)[:] = 0xA5  # reads of unwritten memory give no zeros
        return Allocation(self, address, nbytes)

    def allocation(self, address: int) -> Allocation:
        return Allocation(self, address, self.allocations[address])

    def event(self, flags: int = 0) -> Event:
        return Event(self, flags)

    def pinned(self, nbytes: int) -> np.ndarray:
        """Page-locked host memory, which lives as long as the driver."""
        self.host.append(np.empty(nbytes, np.uint8))
        return self.host[-1]

    def htod(self, target: int, source: np.ndarray, stream: Any) -> None:
        self.say("htod")

        def copy() -> None:
            self.at(target, source.size)[...] = source

        self.enqueue(copy)

    def dtoh(self, target: np.ndarray, source: int, stream: Any) -> None:
        self.say("dtoh")

        def copy() -> None:
            target[...] = self.at(source, target.size)

        self.enqueue(copy)
        if not any(np.shares_memory(target, array) for array in self.host):
            self.drain()  # "the function will return only once the copy has completed"

    def dtod(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        self.say("dtod")

        def copy() -> None:
            self.at(target, nbytes)[...] = self.at(source, nbytes)

        self.enqueue(copy)

    def memset(self, target: int, number: int, count: int, stream: Any) -> None:
        self.say("memset")

        def fill() -> None:
            self.at(target, 4 * count).view(np.int32)[...] = number

        self.enqueue(fill)

    def memset_bytes(self, target: int, number: int, count: int, stream: Any) -> None:
        self.say("memset")

        def fill() -> None:
            self.at(target, count)[...] = number

        self.enqueue(fill)

    # --- cuda.bindings.driver --------------------------------------------------------------

    def _bindings(self) -> Any:
        names = [name for name in dir(self) if name.startswith("cu")]
        kinds = SimpleNamespace(CU_GRAPH_COND_TYPE_IF="if", CU_GRAPH_COND_TYPE_WHILE="while")
        return SimpleNamespace(
            CUDA_KERNEL_NODE_PARAMS=SimpleNamespace,
            CUgraphNodeParams=lambda: SimpleNamespace(conditional=SimpleNamespace()),
            CUgraphNodeType=SimpleNamespace(CU_GRAPH_NODE_TYPE_CONDITIONAL="conditional"),
            CUgraphConditionalNodeType=kinds,
            CUfunction_attribute=SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most shared"),
            CUcontext=int,
            **{name: self._answering(name) for name in names},
            **memory_calls(self),
        )

    def _answering(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def answer(*arguments: Any) -> tuple[Any, ...]:
            if self.fault is not None:
                return (self.fault,)
            self.say(name)
            if name == "cuModuleLoadData" and self.refuses(arguments[0]):
                return (Code.CUDA_ERROR_NOT_FOUND,)
            return Code.CUDA_SUCCESS, getattr(self, name)(*arguments)

        return answer

    def cuDriverGetVersion(self) -> int:
        return self.version

    def refuses(self, image: bytes) -> bool:
        """Whether the driver cannot load an image; of each that it can it keeps the name."""
        text = image.decode()
        if any(text.endswith(end) for end in self.foreign):
            return True
        self.images.append(text.partition(": ")[2])
        return False

    def cuModuleLoadData(self, image: bytes) -> Mapping[str, KernelCode]:
        return self.modules.get(image, {})

    def cuModuleUnload(self, module: Any) -> None:
        assert not self.queue, "a module is unloaded while kernels may run"

    def cuModuleGetFunction(self, module: Mapping[str, KernelCode], name: bytes) -> Any:
        text = name.decode()
        return module[text] if text.startswith("run_") else text

    def cuFuncSetAttribute(self, function: Any, attribute: str, nbytes: int) -> None:
        assert attribute == "most shared"
        assert nbytes <= self.attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]
        self.shared_limits[function.name] = nbytes

    def has_room(self, function: Any, shared_bytes: int) -> None:
        """A launch requests the shared memory that its code declares, within the limit."""
        name = function if isinstance(function, str) else function.name
        assert shared_bytes <= self.shared_limits.get(name, 48 << 10)
        assert isinstance(function, str) or shared_bytes == render(function, CUDA_C).shared_bytes

    def cuLaunchKernel(self, function: Any, *arguments: Any) -> None:
        *shape, shared_bytes, stream, (values, types), extra = arguments
        self.has_room(function, shared_bytes)
        assert len(shape) == 6
        assert stream == self.stream
        assert len(types) == len(values)
        assert extra == 0
        self.enqueue(lambda: self.kernel(function, (shape[0], shape[3]), *values))

    def cuGraphCreate(self, flags: int) -> list[Any]:
        return []

    def cuGraphDestroy(self, graph: list[Any]) -> None:
        pass

    def cuGraphExecDestroy(self, graph: Any) -> None:
        assert not self.queue, "a graph is destroyed while it may run"

    def cuGraphConditionalHandleCreate(self, graph: Any, context: int, default: int, flags: int) -> int:
        assert context == self.context.handle
        handle = len(self.conditions)
        self.conditions[handle], self.without_node[handle] = False, graph
        return handle

    def cuGraphAddKernelNode(self, graph: Any, before: list[Any], count: int, p: Any) -> int:
        function, (values, types) = p.func, p.kernelParams
        assert len(values) == len(types)
        shape = p.gridDimX, p.blockDimX
        self.has_room(function, p.sharedMemBytes)
        return self._added(graph, before, count, lambda: self.kernel(function, shape, *values))

    def cuGraphAddNode(self, graph: Any, before: list[Any], *arguments: Any) -> int:
        *_, count, params = arguments
        body: list[Any] = []
        params.conditional.phGraph_out = [body]
        handle, repeats = params.conditional.handle, params.conditional.type == "while"
        assert self.without_node.pop(handle) is graph, "a condition belongs to one node of its graph"

        def conditional() -> None:
            while self.conditions[handle]:
                for node in in_another_order(body):
                    node()
                if not repeats:
                    return

        return self._added(graph, before, count, conditional)

    def _added(self, graph: Any, before: list[Any], count: int, node: Callable[[], None]) -> int:
        assert count == len(set(before)) == len(before)
        assert all(0 <= k < len(graph) for k in before)
        graph.append((node, before))
        return len(graph) - 1

    def cuGraphInstantiate(self, graph: list[Any], flags: int) -> int:
        handle = 5000 + len(self.graphs)
        self.graphs[handle] = tuple(in_another_order(graph))
        return handle

    def cuGraphLaunch(self, executable: int, stream: int) -> None:
        assert stream == self.stream
        for node in self.graphs[executable]:
            self.enqueue(node)


def opened(monkeypatch: pytest.MonkeyPatch, fake: FakeCuda, by: str = "pycuda") -> Any:
    """A backend over a driver that does not exist, without NVRTC. by: pycuda or cuda-bindings."""
    if by == "cuda-bindings":
        fake.driver = by_bindings.BindingsDriver()
    monkeypatch.setattr(by_bindings, "bindings", lambda: fake.bindings)
    monkeypatch.setattr(cuda, "version", lambda: (13, 5))
    monkeypatch.setattr(cuda, "full_version", lambda: "13.5.37")
    monkeypatch.setattr(cuda, "supported", lambda: (80, 90))
    return without_compiler(monkeypatch, cuda.CudaBackend(TARGET, fake.driver, fake.driver.Device(0)), fake)


def without_compiler(monkeypatch: pytest.MonkeyPatch, backend: Any, fake: FakeCuda) -> Any:
    """The backend, whose programs the driver knows without NVRTC."""
    record = backend.record

    def compiled(plan: Plan) -> Any:
        kernels = {render(code, CUDA_C).name: code for code in plan.kernels.values()}

        def compile_source(source: str, name: str, arch: str) -> bytes:
            image = f"{len(fake.modules)}: {name} for {arch}".encode()
            fake.modules[image] = kernels
            return image

        monkeypatch.setattr(cuda, "compile_source", compile_source)
        with rune.configure(cache_dir=""):
            return record(plan)

    monkeypatch.setattr(backend, "record", compiled)
    return backend
