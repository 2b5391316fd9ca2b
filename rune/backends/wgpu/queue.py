"""The part of a WebGPU device that executables and reads use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from rune.backends.shared.pool import Block
from rune.backends.shared.queued import Queue
from rune.errors import DeviceError
from rune.lowering.codegen.wgsl.render import Rendered


class WgpuQueue(Queue, Protocol):
    """A WebGPU device: its handles, and what encodes, compiles and copies."""

    wgpu: Any  # the package
    device: Any
    queue: Any
    most_memories: int  # storage buffers of one kernel
    most_groups: int  # workgroups along one dimension

    def failing(self, action: str) -> AbstractContextManager[None]:
        """Within, what the driver raises is an error of rune."""
        ...

    def refusal(self, action: str, error: Exception) -> DeviceError:
        """What the driver has raised, as an error of rune."""
        ...

    def numbers(self, count: int) -> Any:
        """A buffer that holds 0, 1, 2, ... as i32, `count` of them at least."""
        ...

    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Bytes (u8) to the device, behind all that was submitted."""
        ...

    def fetch(self, handle: object, offset: int, nbytes: int) -> np.ndarray:
        """Bytes from the device (u8), when all that was submitted is done."""
        ...

    def synchronize(self) -> None:
        """Wait for the queue to drain."""
        ...

    def pipeline(self, rendered: Rendered) -> Any:
        """A kernel compiled. Errors: CompileError with the numbered source."""
        ...

    def layout(self, memories: int) -> tuple[object, object]:
        """The layouts of bind group and pipeline for kernels with this many memories."""
        ...
