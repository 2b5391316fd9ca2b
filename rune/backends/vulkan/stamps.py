"""Time stamps of a Vulkan device around launches, for profiled plans.

Each launch has its own command buffer, with two stamps, and the host waits for it after submission.
A launch behind a closed gate does not run, and is not reported.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rune.backends.shared.timing import Meter
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import api, check, struct
from rune.backends.vulkan.items import Run
from rune.records import dataclass


class Stamps:
    """The two stamps of one recording; without a clock on the device, the host's times."""

    def __init__(self, device: VulkanDevice):
        self.device = device
        # 0 bits: the queue cannot write time stamps.
        self._has_clock = device.physical.stamp_bits > 0
        self._start = 0
        if self._has_clock:
            info = struct("VkQueryPoolCreateInfo", queryType=api().VK_QUERY_TYPE_TIMESTAMP, queryCount=2)
            self._pool = device.create("QueryPool", info)
            weakref.finalize(self, _retire, device, self._pool).atexit = False

    def around(self, buffer: Any, launch: Callable[[], None]) -> None:
        """Record a launch between the stamps."""
        if not self._has_clock:
            launch()
            return
        vk, driver = api(), self.device.vk
        driver.vkCmdResetQueryPool(buffer, self._pool, 0, 2)
        driver.vkCmdWriteTimestamp(buffer, vk.VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, self._pool, 0)
        launch()
        driver.vkCmdWriteTimestamp(buffer, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, self._pool, 1)

    def run(self, submission: object) -> tuple[int, float]:
        """Submit and wait; returns the number of the submission, and the seconds."""
        start = time.perf_counter()
        number = self.device.submit(submission)
        self.device.wait(number)
        seconds = time.perf_counter() - start
        return number, self._seconds() if self._has_clock else seconds

    def _seconds(self) -> float:
        ffi, flags = api().ffi, api().VK_QUERY_RESULT_64_BIT | api().VK_QUERY_RESULT_WAIT_BIT
        stamps = ffi.new("uint64_t[2]")
        code = self.device.vk.vkGetQueryPoolResults(self.device.handle, self._pool, 0, 2, 16, stamps, 8, flags)
        check(code, "vkGetQueryPoolResults")
        physical = self.device.physical
        ticks = (stamps[1] - stamps[0]) % (1 << physical.stamp_bits)  # the counter may wrap
        return 1e-9 * ticks * physical.stamp_ns


def _retire(device: VulkanDevice, pool: Any) -> None:
    """Destroy the stamps later, since a finaliser calls no driver."""
    device.destructions.append((device.submissions, lambda: device.destroy("QueryPool", pool)))


@dataclass(frozen=True, slots=True)
class Timer:
    """Reports launches at these sizes to a meter."""

    meter: Meter
    sizes: Mapping[str, int]

    def tell(self, run: Run, seconds: float, table: np.ndarray) -> None:
        """Report a launch that has ended. table: of its recording, u32."""
        # A closed gate has zeros as its numbers of groups.
        if run.gate is None or table[run.gate // 4 : run.gate // 4 + 3].all():
            # For rune's own kernels, whose bytes moved are not in the plan.
            nbytes = sum(w.bytes for w in run.places)
            # The parts of a divided launch are one call, counted with the first part.
            calls = 1 if run.first == 0 else 0
            self.meter.add_kernel(run.kernel.lstrip("%"), self.sizes, seconds, nbytes, calls)


@dataclass(frozen=True, slots=True, eq=False)
class PlayTimed:
    """One launch to be submitted separately, and the timer that reports it."""

    run: Run
    submission: object
    stamps: Stamps
    timer: Timer

    def play(self, table: np.ndarray) -> int:
        """Run the launch; returns the number of its submission. table: of the recording, u32."""
        number, seconds = self.stamps.run(self.submission)
        self.timer.tell(self.run, seconds, table)
        return number
