"""One open Vulkan device: its queue, its clock, and every handle that was made on it.

All work goes through one queue, and every command buffer opens and ends with a barrier: what is
submitted later begins after what was submitted before has ended. A timeline semaphore counts the
submissions; `wait(n)` returns when the n-th and all before it are done.

What a finalizer wants destroyed it puts on `retired` with the count of submissions so far: it runs
anywhere and calls no driver. Whoever submits next destroys what is done, under the lock.
Invariant: a lost device is an error from then on, never a crash; `close` destroys all that is left,
the newest first.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from typing import Any

from rune import locks
from rune.backends.shared.call_list import CallList, Notes
from rune.backends.shared.pool import Block
from rune.backends.vulkan.driver import (
    Physical,
    api,
    at_exit,
    c_array,
    c_text,
    check,
    feature_structs,
    functions,
    is_out_of_memory,
    result_name,
    struct,
)
from rune.errors import DeviceError, OutOfMemory

_FUNCTIONS = (
    "vkGetDeviceQueue",
    "vkDestroyDevice",
    "vkDeviceWaitIdle",
    "vkQueueSubmit",
    "vkCreateBuffer",
    "vkDestroyBuffer",
    "vkGetBufferMemoryRequirements",
    "vkBindBufferMemory",
    "vkAllocateMemory",
    "vkFreeMemory",
    "vkMapMemory",
    "vkFlushMappedMemoryRanges",
    "vkInvalidateMappedMemoryRanges",
    "vkGetBufferDeviceAddress",
    "vkCreateSemaphore",
    "vkDestroySemaphore",
    "vkWaitSemaphores",
    "vkGetSemaphoreCounterValue",
    "vkCreateCommandPool",
    "vkDestroyCommandPool",
    "vkAllocateCommandBuffers",
    "vkFreeCommandBuffers",
    "vkBeginCommandBuffer",
    "vkEndCommandBuffer",
    "vkCmdBindPipeline",
    "vkCmdPushConstants",
    "vkCmdDispatch",
    "vkCmdDispatchIndirect",
    "vkCmdPipelineBarrier",
    "vkCmdCopyBuffer",
    "vkCreateShaderModule",
    "vkDestroyShaderModule",
    "vkCreatePipelineLayout",
    "vkDestroyPipelineLayout",
    "vkCreatePipelineCache",
    "vkDestroyPipelineCache",
    "vkGetPipelineCacheData",
    "vkCreateComputePipelines",
    "vkDestroyPipeline",
    "vkCreateQueryPool",
    "vkDestroyQueryPool",
    "vkCmdResetQueryPool",
    "vkCmdWriteTimestamp",
    "vkGetQueryPoolResults",
)
_MAKERS = {"DeviceMemory": ("vkAllocateMemory", "vkFreeMemory")}  # else vkCreateX and vkDestroyX
_SLICE_NS = 100_000_000  # of one wait, so that Ctrl-C is heard
_PAUSE_S = 0.001


class VulkanDevice:
    """A device, open."""

    def __init__(self, physical: Physical, name: str):
        vk, ffi = api(), api().ffi
        self.physical, self.name = physical, name
        self.lost: str | None = None  # why nothing more can be done on it
        self.lock = locks.reentrant()  # queue and command pool; a finalizer may run inside
        self.submitted = 0
        self.retired: deque[tuple[int, Callable[[], None]]] = deque()
        self._done = 0
        self._is_unsure = False  # a submission is under way, or an interrupt came in the middle of one
        self._waiting: set[int] = set()  # threads
        self._handles: dict[tuple[str, int], Any] = {}
        self.handle = self._open()
        self.vk = functions(vk.lib.vkGetDeviceProcAddr, self.handle, _FUNCTIONS)
        self.submit_address = number_of(self.vk.vkQueueSubmit)  # for machine code
        queue = ffi.new("VkQueue*")
        self.vk.vkGetDeviceQueue(self.handle, physical.family, 0, queue)
        self.queue = queue[0]
        clock = struct("VkSemaphoreTypeCreateInfo", semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        self.clock = self.create("Semaphore", struct("VkSemaphoreCreateInfo", pNext=clock))
        self._clocks = c_array("VkSemaphore", [self.clock])
        self._progress, self._counter = self._asking()
        pool = struct("VkCommandPoolCreateInfo", queueFamilyIndex=physical.family)
        self.command_pool = self.create("CommandPool", pool)
        at_exit(self.close)

    def _open(self) -> Any:
        physical, ffi = self.physical, api().ffi
        queue = struct(
            "VkDeviceQueueCreateInfo",
            queueFamilyIndex=physical.family,
            queueCount=1,
            pQueuePriorities=ffi.new("float[]", [1.0]),
        )
        wanted = ["VK_KHR_portability_subset"]  # must be enabled where it is listed
        names = [c_text(n) for n in wanted if n in physical.extensions]
        extensions = c_array("char*", names)
        info = struct(
            "VkDeviceCreateInfo",
            pNext=feature_structs(physical.features, physical.is_1_3),
            queueCreateInfoCount=1,
            pQueueCreateInfos=queue,
            enabledExtensionCount=len(extensions),
            ppEnabledExtensionNames=extensions,
        )
        device = ffi.new("VkDevice*")
        code = api().lib.vkCreateDevice(physical.handle, info, ffi.NULL, device)
        if code < 0:
            raise DeviceError(f"device: cannot open {self.name} ({result_name(code)})")
        return device[0]

    def _asking(self) -> tuple[CallList, int]:
        """The call that asks how far it is, and the word of the answer."""
        notes = Notes()
        counter, ask = notes.word(), number_of(self.vk.vkGetSemaphoreCounterValue)
        words = map(notes.constant, (number_of(self.handle), number_of(self.clock)))
        notes.call(ask, *words, notes.address_of(counter), checked=True)
        return notes.list(), counter

    # --- handles -----------------------------------------------------------------------------

    def create(self, kind: str, info: object) -> Any:
        """A new handle of a kind, "Buffer". Errors: Failure."""
        handle = api().ffi.new(f"Vk{kind}*")
        name = _MAKERS.get(kind, (f"vkCreate{kind}",))[0]
        with self.lock:
            if self.lost is not None:
                raise self.lost_error()
            check(getattr(self.vk, name)(self.handle, info, api().ffi.NULL, handle), name)
            return self.keep(kind, handle[0])

    def keep(self, kind: str, handle: object) -> Any:
        """Destroy the handle at the end, if nobody does so before."""
        self._handles[kind, number_of(handle)] = handle
        return handle

    def destroy(self, kind: str, handle: object) -> None:
        """Destroy a handle that no pending command uses."""
        if self._handles.pop((kind, number_of(handle)), None) is not None:
            name = _MAKERS.get(kind, ("", f"vkDestroy{kind}"))[1]
            getattr(self.vk, name)(self.handle, handle, api().ffi.NULL)

    # --- work --------------------------------------------------------------------------------

    def submission(self, commands: Any) -> tuple[Any, Any]:
        """Command buffers ready to submit again and again: the information, and its number."""
        number = api().ffi.new("uint64_t[1]")
        timeline = struct("VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1, pSignalSemaphoreValues=number)
        info = struct(
            "VkSubmitInfo",
            pNext=timeline,
            commandBufferCount=len(commands),
            pCommandBuffers=commands,
            signalSemaphoreCount=1,
            pSignalSemaphores=self._clocks,
        )
        return info, number

    def submit(self, submission: tuple[Any, Any]) -> int:
        """Hand work to the device; returns its number. Errors: DeviceError."""
        info, number = submission
        with self.lock:
            self._begin()
            number[0] = self.submitted + 1
            self._is_unsure = True
            code = self.vk.vkQueueSubmit(self.queue, 1, info, api().ffi.NULL)
            self.submitted += code >= 0
            self._is_unsure = False
            if code < 0:
                raise self.failure(code, "submit work")
            return self.submitted

    def submit_list(self, calls: CallList, numbers: Sequence[MutableSequence[int]], blocks: Iterable[Block]) -> int:
        """Make calls that hand work to the device; the number of the last submission.

        numbers: of the submissions, which are written here
        blocks:  that they use
        Errors:  DeviceError.
        """
        with self.lock:
            self._begin()
            last = self.submitted
            for number in numbers:
                last += 1
                number[0] = last
            self._is_unsure = True
            end = calls.play()
            self.submitted += end - (calls.count - len(numbers))  # submissions are the last calls
            self._is_unsure = False
            for block in blocks:
                block.handle.used[block.offset] = self.submitted
            if end < calls.count:
                raise self.failure(calls.status(end), "submit work")
            return last

    def _begin(self) -> None:
        """Under the lock: make the queue ready for work. Errors: DeviceError if it is lost."""
        if self.lost is not None:
            raise self.lost_error()
        self._settle()
        if self.retired:
            self.drain()

    def _settle(self) -> None:
        """Under the lock: after an interrupt in the middle of a submission, ask what was done."""
        if not self._is_unsure:
            return
        code = self.vk.vkDeviceWaitIdle(self.handle)
        if code < 0 or self._progress.play() < self._progress.count:
            raise self.failure(code, "wait for its work")
        # All has ended, so its clock shows the last number.
        self.submitted = self._done = self._progress.words[self._counter]
        self._is_unsure = False

    def is_done(self, number: int) -> bool:
        """Whether a submission, and all before it, have ended."""
        if number <= self._done and not self._is_unsure:
            return True
        progress = self._progress
        with self.lock:
            if self.lost is not None:
                raise self.lost_error()
            self._settle()
            if progress.play() < progress.count:
                raise self.failure(progress.status(0), "ask for its progress")
            self._done = max(self._done, min(progress.words[self._counter], self.submitted))
        return number <= self._done

    def wait(self, number: int) -> None:
        """Return when a submission, and all before it, have ended. Errors: DeviceError."""
        if self.lost is not None:
            raise self.lost_error()
        if number <= self._done:
            return
        numbers = api().ffi.new("uint64_t[1]", [number])
        info = struct("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=self._clocks, pValues=numbers)
        code = timeout = api().VK_TIMEOUT
        thread = threading.get_ident()
        self._waiting.add(thread)
        try:
            while code == timeout:
                if self.lost is not None:
                    raise self.lost_error()
                code = self.vk.vkWaitSemaphores(self.handle, info, _SLICE_NS)
        finally:
            self._waiting.discard(thread)
        if code < 0:
            raise self.failure(code, "wait for its work")
        self._done = max(self._done, number)
        self.check_silence()

    def synchronize(self) -> None:
        """Return when all that was submitted has ended."""
        self.wait(self.submitted)
        with self.lock:
            self.drain()
        self.check_silence()

    def drain(self) -> None:
        """Under the lock: destroy what was retired and is done."""
        while self.retired and self.is_done(self.retired[0][0]):
            self.retired.popleft()[1]()

    def command_buffers(self, count: int) -> Any:
        """Under the lock: new command buffers. Errors: Failure."""
        buffers = api().ffi.new("VkCommandBuffer[]", count)
        info = struct("VkCommandBufferAllocateInfo", commandPool=self.command_pool, commandBufferCount=count)
        code = self.vk.vkAllocateCommandBuffers(self.handle, info, buffers)
        check(code, "vkAllocateCommandBuffers")
        return buffers

    def free_command_buffers(self, buffers: Any) -> None:
        """Under the lock: free them."""
        self.vk.vkFreeCommandBuffers(self.handle, self.command_pool, len(buffers), buffers)

    # --- what may go wrong -------------------------------------------------------------------

    def failure(self, code: int, action: str) -> DeviceError | OutOfMemory:
        """The error for a result code; a lost device stays lost."""
        if code == api().VK_ERROR_DEVICE_LOST:
            self.lost = f"the device was lost when it had to {action}"
            return self.lost_error()
        kind = OutOfMemory if is_out_of_memory(code) else DeviceError
        return kind(f"vulkan: {self.name} cannot {action} ({result_name(code)})")

    def lost_error(self) -> DeviceError:
        """The error to raise for every use of a device that is lost or closed."""
        return DeviceError(
            f"vulkan: {self.name} cannot go on ({self.lost})",
            hint="what was in its memory is gone; new arrays and calls open the device again",
        )

    def check_silence(self) -> None:
        """Raise what the validation layer has said."""
        said = self.physical.instance.messages
        if said:
            text = "\n".join(said)
            said.clear()
            raise DeviceError(f"vulkan: the validation layer objects ({text})")

    def close(self) -> None:
        """Destroy everything, once what is pending has ended."""
        with self.lock:
            if self.handle is None:
                return
            self.lost = self.lost or "it was closed"
            while self._waiting:  # other threads, for a slice at most
                time.sleep(_PAUSE_S)
            self.vk.vkDeviceWaitIdle(self.handle)  # of a lost device, returns at once
            self.retired.clear()
            for kind, handle in [(k, h) for (k, _), h in reversed(self._handles.items())]:
                self.destroy(kind, handle)
            self.vk.vkDestroyDevice(self.handle, api().ffi.NULL)
            self.handle = None


def number_of(handle: object) -> int:
    """A handle or pointer as a number."""
    return int(api().ffi.cast("uintptr_t", handle))
