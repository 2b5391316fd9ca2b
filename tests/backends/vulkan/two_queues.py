"""A Vulkan device with two simulated queues, whose driver decides late what runs first.

Submissions stay in their queue until the host waits for something. Then both queues run, each in
its own order and the two in an interleaving that their semaphores allow, which a seed chooses. So
commands that are not ordered by a wait run in the wrong order for some seed, and do so again with
the same seed.
"""

from __future__ import annotations

import ctypes
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import pytest

from rune.backends import vulkan
from rune.backends.vulkan.driver import QueuePlace, api
from rune.records import dataclass
from tests.backends.vulkan.cases import TARGETS, with_memory

Numbers = dict[int, int]  # by semaphore


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission of commands to a queue."""

    commands: tuple[Any, ...]
    waits: Numbers
    signals: Numbers


@dataclass(slots=True, eq=False)
class Late:
    """The driver between rune and the real one.

    programs, copies: what was submitted and is not played
    clocks:           semaphores, as what was played leaves them
    host_waits:       semaphores that the host has waited for, in order
    """

    backend: vulkan.VulkanBackend
    device: Any  # until it is opened anew
    choose: random.Random
    programs: deque[Submission] = field(default_factory=deque)
    copies: deque[Submission] = field(default_factory=deque)
    clocks: Numbers = field(default_factory=dict)
    host_waits: list[int] = field(default_factory=list)
    real: Any = None

    def submit(self, queue: object, count: int, info: Any, fence: object) -> int:
        """vkQueueSubmit: the semaphore that it signals identifies the queue."""
        device, submission = self.device, noted(info)
        is_copy = number_of(device.copies.clock.array[0]) in submission.signals
        (self.copies if is_copy else self.programs).append(submission)
        return 0

    def wait(self, handle: object, info: Any, timeout: int) -> int:
        """vkWaitSemaphores: play until they show it."""
        semaphore, number = number_of(info.pSemaphores[0]), int(info.pValues[0])
        self.host_waits.append(semaphore)
        self.play(lambda: self.clocks.get(semaphore, 0) >= number)
        return self.real.vkWaitSemaphores(handle, info, timeout)

    def wait_idle(self, handle: object) -> int:
        """vkDeviceWaitIdle: play all."""
        self.play(lambda: not self.programs and not self.copies)
        return self.real.vkDeviceWaitIdle(handle)

    def play(self, is_enough: Callable[[], bool]) -> None:
        """Play what is first in a queue, and whose time has come, until it is enough."""
        while not is_enough():
            ready = [q for q in (self.programs, self.copies) if q and self._may_begin(q[0])]
            assert ready, "the queues wait for each other"
            self._run(self.choose.choice(ready).popleft())

    def _may_begin(self, submission: Submission) -> bool:
        return all(self.clocks.get(semaphore, 0) >= n for semaphore, n in submission.waits.items())

    def _run(self, submission: Submission) -> None:
        for semaphore, number in submission.signals.items():
            assert number > self.clocks.get(semaphore, 0), "a clock goes back"
            self.clocks[semaphore] = number
        info, references = rebuilt(submission)
        assert self.real.vkQueueSubmit(self.device.queue, 1, info, api().ffi.NULL) == 0
        # Commands of the same memory are kept apart by rune's semaphores, or not at all.
        self.real.vkDeviceWaitIdle(self.device.handle)
        del references


def number_of(handle: object) -> int:
    return int(api().ffi.cast("uintptr_t", handle))


def noted(info: Any) -> Submission:
    """The values that the driver would read from it."""
    numbers = api().ffi.cast("VkTimelineSemaphoreSubmitInfo*", info.pNext)
    return Submission(
        tuple(info.pCommandBuffers[n] for n in range(info.commandBufferCount)),
        {number_of(info.pWaitSemaphores[n]): numbers.pWaitSemaphoreValues[n] for n in range(info.waitSemaphoreCount)},
        {
            number_of(info.pSignalSemaphores[n]): numbers.pSignalSemaphoreValues[n]
            for n in range(info.signalSemaphoreCount)
        },
    )


def rebuilt(submission: Submission) -> tuple[Any, Any]:
    """The same without its waits, which are over; and what it points to."""
    vk, ffi = api(), api().ffi
    count = len(submission.signals)
    semaphores = ffi.new("VkSemaphore[]", [ffi.cast("VkSemaphore", s) for s in submission.signals])
    values = ffi.new("uint64_t[]", list(submission.signals.values()))
    commands = ffi.new("VkCommandBuffer[]", list(submission.commands))
    timeline = ffi.new("VkTimelineSemaphoreSubmitInfo*")
    timeline.sType = vk.VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO
    timeline.signalSemaphoreValueCount, timeline.pSignalSemaphoreValues = count, values
    info = ffi.new("VkSubmitInfo*")
    info.sType, info.pNext = vk.VK_STRUCTURE_TYPE_SUBMIT_INFO, timeline
    info.commandBufferCount, info.pCommandBuffers = len(commands), commands
    info.signalSemaphoreCount, info.pSignalSemaphores = count, semaphores
    return info, (semaphores, values, commands, timeline)


@contextmanager
def two_queues(seed: int = 0, memory: str = "staged") -> Iterator[Late]:
    """The first device with a queue for copies, as long as the block runs."""
    physical = replace(with_memory(memory), copies=QueuePlace(with_memory(memory).family, 0))
    backend = vulkan.VulkanBackend(TARGETS[0], physical)
    with pytest.MonkeyPatch.context() as patch:
        late = Late(backend, backend.session().device, random.Random(seed))
        functions = late.device.vk
        late.real = type(functions)(**vars(functions))
        patch.setattr(functions, "vkQueueSubmit", late.submit)
        patch.setattr(functions, "vkWaitSemaphores", late.wait)
        patch.setattr(functions, "vkDeviceWaitIdle", late.wait_idle)
        kinds = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p

        def submit(queue: int, count: int, info: int, fence: int) -> int:
            return late.submit(queue, count, api().ffi.cast("VkSubmitInfo*", info), fence)

        callback = ctypes.CFUNCTYPE(*kinds)(submit)
        patch.setattr(late.device, "submit_address", ctypes.cast(callback, ctypes.c_void_p).value)
        yield late
        backend.close()
