"""The part of a WebGPU device that executables and reads use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from rune.backends.shared.pool import Block
from rune.backends.shared.queued import Queue
from rune.backends.shared.turns import Arena
from rune.backends.wgpu.guard import Guard
from rune.errors import DeviceError
from rune.lowering.codegen.wgsl.render import Rendered


class WgpuQueue(Queue, Protocol):
    """The part of a WebGPU device that executables use: handles, compilation and copies."""

    wgpu: Any  # the package
    device: Any
    queue: Any
    guard: Guard
    shared_arena: Arena  # of all plans
    most_memories: int  # storage buffers of one kernel
    most_groups: int  # workgroups along one dimension

    def failing(self, action: str) -> AbstractContextManager[None]:
        """Inside the block, the driver's errors become rune's."""
        ...

    def translate(self, error: Exception, action: str) -> None:
        """Raise rune's error for one of the driver; return for any other. Errors: DeviceError,
        MemoryError."""
        ...

    def refusal(self, action: str, error: Exception) -> DeviceError:
        """rune's error for one of the driver."""
        ...

    def numbers(self, count: int) -> Any:
        """A buffer that holds 0, 1, 2, ... as i32, at least `count` of them."""
        ...

    def is_idle(self, *_: object) -> bool:
        """Whether the queue is empty."""
        ...

    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Write bytes (u8) to the device, after all submitted work."""
        ...

    def fetch(self, handle: object, offset: int, nbytes: int) -> np.ndarray:
        """Bytes from the device (u8), after waiting for all submitted work."""
        ...

    def synchronize(self) -> None:
        """Wait for the queue to drain."""
        ...

    def pipeline(self, kernel: Rendered) -> Any:
        """A compiled kernel. Errors: CompileError with the numbered source."""
        ...

    def layout(self, memories: int) -> tuple[object, object]:
        """The layouts of bind group and pipeline for kernels with this many memories."""
        ...
