"""Clocks of queues: a timeline semaphore counts what a queue has done."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, Protocol

from rune.backends.shared.call_list import Notes
from rune.backends.vulkan.driver import api, c_array, struct
from rune.records import dataclass


class Opening(Protocol):
    """The part of a device that a clock uses."""

    vk: Any

    @property
    def handle(self) -> object:
        """Of the device."""
        ...

    def create(self, kind: str, info: object) -> object:
        """A new handle of a kind, "Buffer". Errors: Failure."""
        ...


class Clock:
    """Counts from 0 on; asked by one thread at a time.

    array: the semaphore as commands and waits take it
    """

    def __init__(self, device: Opening):
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=api().VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        self.array = c_array("VkSemaphore", [device.create("Semaphore", struct("VkSemaphoreCreateInfo", pNext=kind))])
        notes = Notes()
        self._word = notes.word()
        words = map(notes.constant, (number_of(device.handle), number_of(self.array[0])))
        ask = number_of(device.vk.vkGetSemaphoreCounterValue)
        notes.call(ask, *words, notes.address_of(self._word), checked=True)
        self._asking = notes.list()

    def ask(self) -> int:
        """Read it; the driver's result code."""
        return 0 if self._asking.play() == self._asking.count else self._asking.status(0)

    @property
    def time(self) -> int:
        """What it showed when it was last read."""
        return self._asking.words[self._word]

    def reaches(self, number: int) -> object:
        """What vkWaitSemaphores waits for."""
        numbers = api().ffi.new("uint64_t[1]", [number])
        return struct("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=self.array, pValues=numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """Command buffers to be submitted again and again; the numbers to signal and to wait for."""

    info: object
    number: MutableSequence[int]
    awaited: MutableSequence[int]


def submission(commands: Sequence[object], signals: Clock | None, waits: Clock | None = None) -> Submission:
    """Command buffers, an array of C. Without any, what is submitted later waits, too."""
    vk, ffi = api(), api().ffi
    number, awaited = ffi.new("uint64_t[1]"), ffi.new("uint64_t[1]")
    signaling, waiting = signals is not None, waits is not None
    timeline = struct(
        "VkTimelineSemaphoreSubmitInfo",
        signalSemaphoreValueCount=int(signaling),
        pSignalSemaphoreValues=number,
        waitSemaphoreValueCount=int(waiting),
        pWaitSemaphoreValues=awaited,
    )
    info = struct(
        "VkSubmitInfo",
        pNext=timeline,
        commandBufferCount=len(commands),
        pCommandBuffers=commands,
        signalSemaphoreCount=int(signaling),
        pSignalSemaphores=signals.array if signals else ffi.NULL,
        waitSemaphoreCount=int(waiting),
        pWaitSemaphores=waits.array if waits else ffi.NULL,
        pWaitDstStageMask=ffi.new("uint32_t[1]", [vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT]),
    )
    return Submission(info, number, awaited)


def number_of(handle: object) -> int:
    """A handle or pointer as a number."""
    return int(api().ffi.cast("uintptr_t", handle))
