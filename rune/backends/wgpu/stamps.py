"""Time stamps that the passes of a WebGPU device write, if the adapter supports them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune.backends.wgpu.queue import WgpuQueue

STAMPS = "timestamp-query"


class Stamps:
    """The two time stamps of a pass, at its begin and end. Units: ns."""

    def __init__(self, backend: WgpuQueue):
        self.backend, usage, device = backend, backend.wgpu.BufferUsage, backend.device
        self.queries = device.create_query_set(type="timestamp", count=2)
        # Two 64-bit stamps; queries can only be read through a buffer.
        self.memory = device.create_buffer(size=16, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
        self.writes = {"query_set": self.queries, "beginning_of_pass_write_index": 0, "end_of_pass_write_index": 1}

    def resolve(self, commands: Any) -> None:
        """Encode a copy of the stamps to memory, after the pass."""
        commands.resolve_query_set(self.queries, 0, 2, self.memory, 0)

    def seconds(self) -> float:
        """The seconds that the pass took, after waiting for it."""
        # Some drivers write stamps of different clocks' resets; a negative time counts as 0.
        start, end = self.backend.fetch(self.memory, 0, 16).view(np.uint64).tolist()
        return 1e-9 * max(0, end - start)
