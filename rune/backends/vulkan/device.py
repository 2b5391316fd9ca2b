"""One open Vulkan device: its queue, its clock, and all handles that were created on it.

Programs go through one queue, and every command buffer begins and ends with a barrier: a submission
begins after all earlier ones have ended. A timeline semaphore counts the submissions; `wait(n)`
returns when the n-th and all before it have ended.

Copies have a second queue with its own count (aside.py). Each waits for the programs submitted
before it; where programs have to wait for a copy, its number is put on `joins`, and they wait from
the next submission on. The device does the waiting.

A finaliser may run anywhere and calls no driver: it puts the destruction of its handle on
`destructions`, with the number of submissions so far. The next submission executes, under the lock,
the destructions whose submissions have ended.
Invariant: every use of a lost device raises an error, and never crashes; `close` destroys all
remaining handles, the newest first.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from rune import locks
from rune.backends.shared.call_list import CallList, length_at
from rune.backends.shared.turns import Turns
from rune.backends.vulkan.clock import Clock, Submission, number_of, submission
from rune.backends.vulkan.driver import (
    Physical,
    QueuePlace,
    api,
    c_array,
    c_text,
    check,
    feature_structs,
    functions,
    is_out_of_memory,
    queue_counts,
    result_name,
    struct,
)
from rune.errors import DeviceError, OutOfMemory
from rune.records import dataclass

_FUNCTIONS = """
    vkGetDeviceQueue vkDestroyDevice vkDeviceWaitIdle vkQueueSubmit vkCreateBuffer vkDestroyBuffer
    vkGetBufferMemoryRequirements vkBindBufferMemory vkAllocateMemory vkFreeMemory vkMapMemory
    vkFlushMappedMemoryRanges vkInvalidateMappedMemoryRanges vkGetBufferDeviceAddress vkCreateSemaphore
    vkDestroySemaphore vkWaitSemaphores vkGetSemaphoreCounterValue vkCreateCommandPool vkDestroyCommandPool
    vkAllocateCommandBuffers vkFreeCommandBuffers vkBeginCommandBuffer vkEndCommandBuffer vkCmdBindPipeline
    vkCmdPushConstants vkCmdDispatch vkCmdDispatchIndirect vkCmdPipelineBarrier vkCmdCopyBuffer
    vkCreateShaderModule vkDestroyShaderModule vkCreatePipelineLayout vkDestroyPipelineLayout
    vkCreatePipelineCache vkDestroyPipelineCache vkGetPipelineCacheData vkCreateComputePipelines
    vkDestroyPipeline vkCreateQueryPool vkDestroyQueryPool vkCmdResetQueryPool vkCmdWriteTimestamp
    vkGetQueryPoolResults
""".split()
_MAKERS = {"DeviceMemory": ("vkAllocateMemory", "vkFreeMemory")}  # others: vkCreateX, vkDestroyX
_SLICE_NS = 100_000_000  # the longest wait in the driver, after which Ctrl-C is handled
_PAUSE_S = 0.001  # between two checks whether all waits have ended


@dataclass(slots=True)
class Copies:
    """The queue for copies.

    awaiting:  the submission that makes programs wait
    last_join: the last copy that programs wait for
    """

    queue: object
    family: int
    clock: Clock
    awaiting: Submission
    last_join: int = 0

    @property
    def submissions(self) -> int:
        """The number of copies submitted so far."""
        return self.clock.submissions


class VulkanDevice:
    """An open device."""

    def __init__(self, physical: Physical, name: str):
        vk = api()
        self.physical, self.name = physical, name
        # The lock is that of queue and command pool; a finalizer may run inside.
        self.turns = Turns(name, locks.reentrant())
        self.lock = self.turns.lock
        self.destructions: deque[tuple[int, Callable[[], None]]] = deque()
        self._unsure = array("q", [0])  # 1: a submission is under way, or was interrupted
        self._waiting: set[int] = set()  # threads inside vkWaitSemaphores
        self._handles: dict[tuple[str, int], Any] = {}
        self._handle = self._open()
        self.vk = functions(vk.lib.vkGetDeviceProcAddr, self.handle, _FUNCTIONS)
        self.submit_address = number_of(self.vk.vkQueueSubmit)  # for machine code
        self.queue, self.clock = self._queue(QueuePlace(physical.family, 0)), Clock(self)
        pool = struct("VkCommandPoolCreateInfo", queueFamilyIndex=physical.family)
        self.command_pool = self.create("CommandPool", pool)
        self.copies = self._copies(physical.copies) if physical.copies else None
        self.joins: deque[int] = deque()  # copies that programs have to wait for; finalisers append
        physical.instance.devices.append(self)

    def _open(self) -> Any:
        physical, ffi = self.physical, api().ffi
        queues = [
            struct(
                "VkDeviceQueueCreateInfo",
                queueFamilyIndex=family,
                queueCount=count,
                pQueuePriorities=ffi.new("float[]", [1.0] * count),
            )
            for family, count in queue_counts(physical.family, physical.copies).items()
        ]
        # Vulkan requires that this one is enabled wherever a device lists it.
        extension_names = ["VK_KHR_portability_subset"]
        names = [c_text(n) for n in extension_names if n in physical.extensions]
        extensions = c_array("char*", names)
        info = struct(
            "VkDeviceCreateInfo",
            pNext=feature_structs(physical.features, physical.is_1_3),
            queueCreateInfoCount=len(queues),
            pQueueCreateInfos=c_array("VkDeviceQueueCreateInfo", [queue[0] for queue in queues]),
            enabledExtensionCount=len(extensions),
            ppEnabledExtensionNames=extensions,
        )
        device = ffi.new("VkDevice*")
        code = api().lib.vkCreateDevice(physical.handle, info, ffi.NULL, device)
        if code < 0:
            raise DeviceError(f"device: cannot open {self.name} ({result_name(code)})")
        return device[0]

    def _queue(self, place: QueuePlace) -> object:
        queue = api().ffi.new("VkQueue*")
        self.vk.vkGetDeviceQueue(self.handle, place.family, place.index, queue)
        return queue[0]

    def _copies(self, place: QueuePlace) -> Copies:
        clock = Clock(self)
        return Copies(self._queue(place), place.family, clock, submission(c_array("VkCommandBuffer", []), None, clock))

    @property
    def loss(self) -> str | None:
        """The reason, once the device is lost or closed."""
        return self.turns.loss

    @property
    def submissions(self) -> int:
        """The number of the last submission."""
        return self.clock.submissions

    @submissions.setter
    def submissions(self, number: int) -> None:
        self.clock.submissions = number

    @property
    def _is_unsure(self) -> bool:
        return bool(self._unsure[0])

    @_is_unsure.setter
    def _is_unsure(self, is_unsure: bool) -> None:
        self._unsure[0] = is_unsure

    # --- handles -----------------------------------------------------------------------------

    @property
    def handle(self) -> object:
        """The driver's handle. Errors: DeviceError once the device is closed.

        At the end of a process other threads may still record work, and a driver crashes on a null
        device.
        """
        if self._handle is None:
            raise self.lost_error()
        return self._handle

    def create(self, kind: str, info: object) -> Any:
        """A new object of a kind, such as "Buffer". Errors: Failure."""
        handle = api().ffi.new(f"Vk{kind}*")
        name = _MAKERS.get(kind, (f"vkCreate{kind}",))[0]
        with self.lock:
            if self.loss is not None:
                raise self.lost_error()
            check(getattr(self.vk, name)(self.handle, info, api().ffi.NULL, handle), name)
            return self.keep(kind, handle[0])

    def keep(self, kind: str, handle: object) -> Any:
        """Have `close` destroy the handle, unless `destroy` is called before."""
        self._handles[kind, number_of(handle)] = handle
        return handle

    def destroy(self, kind: str, handle: object) -> None:
        """Destroy a handle that no pending command uses."""
        # Only once: a finaliser may come after `close`.
        if self._handles.pop((kind, number_of(handle)), None) is not None:
            name = _MAKERS.get(kind, ("", f"vkDestroy{kind}"))[1]
            getattr(self.vk, name)(self.handle, handle, api().ffi.NULL)

    # --- work --------------------------------------------------------------------------------

    def submission(self, commands: Sequence[object]) -> object:
        """Command buffers that can be submitted many times: VkSubmitInfo*."""
        return submission(commands, self.clock).info

    def submit(self, info: object) -> int:
        """Submit work; returns its number. Errors: DeviceError."""
        with self.lock:
            self.begin()
            # An interrupt between the call and the count would make all later numbers wrong.
            self._is_unsure = True
            code = self.vk.vkQueueSubmit(self.queue, 1, info, api().ffi.NULL)
            self.submissions += code >= 0
            self._is_unsure = False
            if code < 0:
                raise self.failure(code, "submit work")
            return self.submissions

    def refuse_list(self, calls: CallList, count: int) -> NoReturn:
        """Raise the error of a list that stopped after `count` calls."""
        raise self.failure(calls.status(count), "submit work")

    def hindrances(self) -> list[int]:
        """The addresses of words that are all 0 if `begin` has nothing to do."""
        unsure, _ = self._unsure.buffer_info()
        return [unsure, length_at(self.destructions), length_at(self.joins)]

    def marker(self) -> Callable[[], bool]:
        """The question whether all that was submitted until now has ended."""
        return partial(self.is_done, self.submissions)

    def begin(self) -> None:
        """Prepare for a submission, under the lock. Errors: DeviceError if the device is lost."""
        if self.loss is not None:
            raise self.lost_error()
        self._settle()
        if self.destructions:
            self.drain()
        if self.joins and self.copies:
            self._await(self.copies)

    def _settle(self) -> None:
        """After an interrupted submission, find out what was submitted. Under the lock."""
        if not self._is_unsure:
            return
        code = self.vk.vkDeviceWaitIdle(self.handle) or self.clock.ask()
        if self.copies and not code:
            code = self.copies.clock.ask()
        if code:
            raise self.failure(code, "wait for its work")
        # All work has ended, so the clocks show the numbers of the last submissions.
        for clock in [self.clock, *([self.copies.clock] if self.copies else [])]:
            clock.submissions = clock.time
        self._is_unsure = False

    def is_done(self, number: int) -> bool:
        """Whether a submission, and all before it, have ended."""
        if number <= self.clock.time and not self._is_unsure:
            return True
        with self.lock:
            if self.loss is not None:
                raise self.lost_error()
            self._settle()
            return number <= self._time(self.clock)

    def _time(self, clock: Clock) -> int:
        """The clock's count now. Under the lock. Errors: DeviceError."""
        code = clock.ask()
        if code:
            raise self.failure(code, "ask for its progress")
        return clock.time

    def wait(self, number: int) -> None:
        """Wait until a submission, and all before it, have ended. Errors: DeviceError."""
        if self.loss is not None:
            raise self.lost_error()
        if number <= self.clock.time:
            return
        self._until(self.clock, number)
        self.clock.has_reached(number)
        self.check_silence()

    def _until(self, clock: Clock, number: int) -> None:
        """Wait until the clock reaches the number. Errors: DeviceError."""
        info = clock.reaches(number)
        code = timeout = api().VK_TIMEOUT
        thread = threading.get_ident()
        # `close` waits for these threads: a semaphore must not be destroyed during a wait.
        self._waiting.add(thread)
        try:
            while code == timeout:
                if self.loss is not None:
                    raise self.lost_error()
                code = self.vk.vkWaitSemaphores(self.handle, info, _SLICE_NS)
        finally:
            self._waiting.discard(thread)
        if code < 0:
            raise self.failure(code, "wait for its work")

    def synchronize(self) -> None:
        """Wait until all programs submitted so far have ended, and the copies that they wait
        for."""
        self.wait(self.submissions)
        if self.copies:
            self.wait_for_copy(self.copies, max([self.copies.last_join, *self.joins]))
        with self.lock:
            self.drain()
        self.check_silence()

    # --- copies on the second queue ----------------------------------------------------------

    def before_now(self) -> int:
        """The number of the last submission so far. Errors: DeviceError."""
        with self.lock:
            self.begin()  # settles an interrupted submission, after which the count may be wrong
            return self.submissions

    def submit_copy(self, copies: Copies, copy: Submission, wait_number: int) -> int:
        """Submit a copy that waits for the programs up to a number; returns the copy's number.

        Errors: DeviceError.
        """
        with self.lock:
            self.begin()
            copy.wait_number[0] = wait_number
            self._is_unsure = True
            code = self.vk.vkQueueSubmit(copies.queue, 1, copy.info, api().ffi.NULL)
            copies.clock.submissions += code >= 0
            self._is_unsure = False
            if code < 0:
                raise self.failure(code, "submit a copy")
            return copies.submissions

    def _await(self, copies: Copies) -> None:
        """Make all later submissions wait for the joined copies. Under the lock."""
        # A list of its own: finalisers may append while this runs, and those stay for the next
        # time.
        copy_numbers = [*self.joins]
        copies.awaiting.wait_number[0] = max(copy_numbers)
        code = self.vk.vkQueueSubmit(self.queue, 1, copies.awaiting.info, api().ffi.NULL)
        if code < 0:
            raise self.failure(code, "wait for a copy")
        copies.last_join = max(copies.last_join, *copy_numbers)
        for _ in copy_numbers:
            self.joins.popleft()

    def has_copied(self, copies: Copies, number: int) -> bool:
        """Whether a copy, and all before it, have ended. Errors: DeviceError."""
        with self.lock:
            return number <= self._time(copies.clock)

    def wait_for_copy(self, copies: Copies, number: int) -> None:
        """Wait until a copy, and all before it, have ended. Errors: DeviceError."""
        if not self.has_copied(copies, number):
            self._until(copies.clock, number)

    def drain(self) -> None:
        """Execute the destructions whose submissions have ended. Under the lock."""
        while self.destructions and self.is_done(self.destructions[0][0]):
            self.destructions.popleft()[1]()

    def command_buffers(self, count: int) -> Any:
        """New command buffers. Under the lock. Errors: Failure."""
        buffers = api().ffi.new("VkCommandBuffer[]", count)
        info = struct("VkCommandBufferAllocateInfo", commandPool=self.command_pool, commandBufferCount=count)
        code = self.vk.vkAllocateCommandBuffers(self.handle, info, buffers)
        check(code, "vkAllocateCommandBuffers")
        return buffers

    def free_command_buffers(self, buffers: Any) -> None:
        """Free command buffers. Under the lock."""
        self.vk.vkFreeCommandBuffers(self.handle, self.command_pool, len(buffers), buffers)

    # --- errors ------------------------------------------------------------------------------

    def failure(self, code: int, action: str) -> DeviceError | OutOfMemory:
        """The error for a result code; a lost device stays lost."""
        if code == api().VK_ERROR_DEVICE_LOST:
            self.turns.loss = f"the device was lost when it had to {action}"
            return self.lost_error()
        kind = OutOfMemory if is_out_of_memory(code) else DeviceError
        return kind(f"vulkan: {self.name} cannot {action} ({result_name(code)})")

    def lost_error(self) -> DeviceError:
        """The error for every use of a lost or closed device."""
        return DeviceError(
            f"vulkan: {self.name} cannot go on ({self.loss})",
            hint="what was in its memory is gone; new arrays and calls open the device again",
        )

    def check_silence(self) -> None:
        """Errors: DeviceError with the messages of the validation layer, if there are any."""
        messages = self.physical.instance.messages
        if messages:
            text = "\n".join(messages)
            messages.clear()
            raise DeviceError(f"vulkan: the validation layer objects ({text})")

    def close(self) -> None:
        """Wait for pending work, then destroy all handles and the device."""
        with self.lock:
            if self._handle is None:
                return
            self.turns.loss = self.loss or "it was closed"
            while self._waiting:  # other threads, for a slice at most
                time.sleep(_PAUSE_S)
            self.vk.vkDeviceWaitIdle(self.handle)  # returns at once if the device is lost
            self.destructions.clear()
            for kind, handle in [(k, h) for (k, _), h in reversed(self._handles.items())]:
                self.destroy(kind, handle)
            self.vk.vkDestroyDevice(self.handle, api().ffi.NULL)
            self._handle = None
            self.physical.instance.devices.remove(self)
