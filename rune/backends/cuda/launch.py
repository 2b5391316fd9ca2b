"""Modules, launches and graphs through cuda-bindings: pycuda does not expose its functions'
handles.

A handle is not destroyed when its owner dies, which may be in any thread and while the device still
uses it: it is put on a list, which the backend empties when the device is idle. All functions here
need the device's context to be current.
"""

from __future__ import annotations

import ctypes
import functools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from rune.backends.cuda import by_bindings
from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.edges import waits
from rune.backends.cuda.graph import Conditional, Extents, Kernel, Node, Nodes

Retired = deque[tuple[str, Any]]  # function that destroys, handle

# The type of all parameters of our kernels: the table's address, a first block, a condition's
# handle.
_WORD = ctypes.c_uint64


class Program:
    """Loaded machine code. image: the bytes loaded, which other devices of the kind can load
    too."""

    def __init__(self, image: bytes, retired_handles: Retired):
        self.image, self._retired_handles = image, retired_handles
        self._module: Any = None  # for `__del__`, if the next line raises
        self._module = call("cuModuleLoadData", image)
        self._functions: dict[str, Any] = {}

    def function(self, name: str, shared_bytes: int = 0) -> Any:
        """The handle of a kernel. shared_bytes: the most that a launch gives each block."""
        if name not in self._functions:
            function = call("cuModuleGetFunction", self._module, name.encode())
            # Required above 48 KiB only, and harmless below.
            if shared_bytes:
                call("cuFuncSetAttribute", function, _most_shared(), shared_bytes)
            self._functions[name] = function
        return self._functions[name]

    def __del__(self) -> None:
        if self._module is not None:
            self._retired_handles.append(("cuModuleUnload", self._module))


def _most_shared() -> object:
    return by_bindings.bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def launch(kernel: Kernel, function: object, table: int, stream: int) -> None:
    """Enqueue one kernel that takes its words from the table at this address."""
    shape = kernel.blocks, kernel.threads
    start(function, shape, kernel.arguments(table, {}), stream, kernel.shared_bytes)


def start(
    function: object, shape: tuple[Extents, Extents], words: Sequence[int], stream: int, shared_bytes: int = 0
) -> None:
    """Enqueue a kernel that takes words (u64) as arguments. shape: its blocks, and their
    threads."""
    blocks, threads = shape
    arguments = tuple(words), (_WORD,) * len(words)
    call("cuLaunchKernel", function, *blocks, *threads, shared_bytes, stream, arguments, 0)


class Graph:
    """An instantiated graph, whose nodes the device runs without the host.

    function: gives the handle of a kernel by its name
    """

    def __init__(
        self, nodes: Nodes, function: Callable[[str], Any], table: int, context: int, retired_handles: Retired
    ):
        self._retired_handles = retired_handles
        self._executable: Any = None
        # The graph is only a template; once it is instantiated it can be destroyed.
        graph = call("cuGraphCreate", 0)
        try:
            _Builder(function, table, context, {}).add(graph, nodes)
            self._executable = call("cuGraphInstantiate", graph, 0)
        finally:
            call("cuGraphDestroy", graph)

    @property
    def handle(self) -> int:
        """The handle of the executable graph."""
        return int(self._executable)

    def __del__(self) -> None:
        if self._executable is not None:
            self._retired_handles.append(("cuGraphExecDestroy", self._executable))


class _Builder:
    """Adds nodes to a driver's graph, and to the graphs of conditional bodies."""

    def __init__(self, function: Callable[[str], Any], table: int, context: int, handles: Mapping[int, Any]):
        self.function, self.table, self.context = function, table, context
        self.handles = dict(handles)

    def add(self, graph: object, nodes: Nodes) -> None:
        """Add nodes with their edges. A node may set conditions of this graph or of one around
        it."""
        for node in nodes:
            # Handles are created first, because a kernel that sets a condition may precede its
            # node.
            if isinstance(node, Conditional):
                handle = call("cuGraphConditionalHandleCreate", graph, self.context, 0, 0)
                self.handles[node.handle] = handle
        handles: list[object] = []
        touches = [node.touches if isinstance(node, Kernel) else None for node in nodes]
        for node, before in zip(nodes, waits(touches), strict=True):
            handles.append(self._added(graph, node, [handles[k] for k in before]))

    def _added(self, graph: object, node: Node, before: Sequence[object]) -> Any:
        match node:
            case Kernel():
                parameters = self._kernel(node)
                return call("cuGraphAddKernelNode", graph, [*before], len(before), parameters)
            case Conditional():
                return self._conditional(graph, node, before)

    def _kernel(self, kernel: Kernel) -> Any:
        words = kernel.arguments(self.table, self.handles)
        params = by_bindings.bindings().CUDA_KERNEL_NODE_PARAMS()
        params.func = self.function(kernel.name)
        params.gridDimX, params.gridDimY, params.gridDimZ = kernel.blocks
        params.blockDimX, params.blockDimY, params.blockDimZ = kernel.threads
        params.sharedMemBytes = kernel.shared_bytes
        params.kernelParams = words, (_WORD,) * len(words)
        return params

    def _conditional(self, graph: object, node: Conditional, before: Sequence[object]) -> Any:
        cuda = by_bindings.bindings()
        kinds = cuda.CUgraphConditionalNodeType
        params = cuda.CUgraphNodeParams()
        params.type = cuda.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        params.conditional.handle = self.handles[node.handle]
        params.conditional.type = kinds.CU_GRAPH_COND_TYPE_WHILE if node.repeats else kinds.CU_GRAPH_COND_TYPE_IF
        # One graph: a second one, for `else`, came with CUDA 12.8 only.
        params.conditional.size = 1
        params.conditional.ctx = cuda.CUcontext(self.context)
        # From version 13 on the function has one parameter more, the edges' data.
        edges = () if _bindings_version() < 13 else (None,)
        graph_node = call("cuGraphAddNode", graph, [*before], *edges, len(before), params)
        (body,) = params.conditional.phGraph_out
        self.add(body, node.body)
        return graph_node


@functools.cache
def _bindings_version() -> int:
    return int(import_module("cuda.bindings").__version__.split(".")[0])
