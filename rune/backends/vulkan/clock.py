"""Clocks of queues: a timeline semaphore counts the submissions that a queue has finished.

Submissions have numbers from 1 on. The number that the next one will signal is a word in memory,
which all submissions of the queue share, so that machine code can submit and count.
"""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence, Sequence
from typing import Any, Protocol

from rune.backends.shared.call_list import Notes
from rune.backends.shared.ring import Numbers
from rune.backends.vulkan.driver import api, c_array, struct
from rune.records import dataclass


class Opening(Protocol):
    """The part of a device that a clock uses."""

    vk: Any

    @property
    def handle(self) -> object:
        """The device's handle."""
        ...

    def create(self, kind: str, info: object) -> object:
        """A new object of a kind, such as "Buffer". Errors: Failure."""
        ...


class Clock:
    """A timeline semaphore that counts from 0. One thread at a time may read it.

    array:   the semaphore as a C array of one
    numbers: of the submissions
    """

    def __init__(self, device: Opening):
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=api().VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        self.array = c_array("VkSemaphore", [device.create("Semaphore", struct("VkSemaphoreCreateInfo", pNext=kind))])
        # Read through machine code: the binding would allocate objects of C in every call.
        notes = Notes()
        self._word = notes.word()
        words = map(notes.constant, (number_of(device.handle), number_of(self.array[0])))
        ask = number_of(device.vk.vkGetSemaphoreCounterValue)
        notes.call(ask, *words, notes.address_of(self._word), checked=True)
        asking = notes.list()
        self.numbers = Numbers(array("Q", [0, 1]), asking.address(self._word), asking)

    def ask(self) -> int:
        """Read the semaphore; returns the driver's result code."""
        asking = self.numbers.ask
        return 0 if asking.play() == asking.count else asking.status(0)

    @property
    def submissions(self) -> int:
        """The number of the last submission."""
        return self.numbers.last[0]

    @submissions.setter
    def submissions(self, number: int) -> None:
        self.numbers.last[0], self.numbers.last[1] = number, number + 1

    @property
    def time(self) -> int:
        """The count when it was last read."""
        return self.numbers.ask.words[self._word]

    def has_reached(self, number: int) -> None:
        """Note that the count is at least this."""
        self.numbers.ask.words[self._word] = max(self.time, number)

    def reaches(self, number: int) -> object:
        """The argument of vkWaitSemaphores for a wait until the count reaches a number."""
        numbers = api().ffi.new("uint64_t[1]", [number])
        return struct("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=self.array, pValues=numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """Command buffers that can be submitted many times, with the number to wait for."""

    info: object
    wait_number: MutableSequence[int]


def submission(commands: Sequence[object], signals: Clock | None, waits: Clock | None = None) -> Submission:
    """A submission of command buffers, a C array. An empty one delays all later submissions."""
    vk, ffi = api(), api().ffi
    # A clock has reached 0 from the start, so a wait number that is not set waits for nothing.
    wait_number = ffi.new("uint64_t[1]")
    number = ffi.NULL if signals is None else ffi.cast("uint64_t*", signals.numbers.next)
    signaling, waiting = signals is not None, waits is not None
    timeline = struct(
        "VkTimelineSemaphoreSubmitInfo",
        signalSemaphoreValueCount=int(signaling),
        pSignalSemaphoreValues=number,
        waitSemaphoreValueCount=int(waiting),
        pWaitSemaphoreValues=wait_number,
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
    return Submission(info, wait_number)


def number_of(handle: object) -> int:
    """A handle or pointer as a number."""
    return int(api().ffi.cast("uintptr_t", handle))
