"""One open Vulkan device: its queue, its clock, and every handle that was made on it.

Programs go through one queue, and every command buffer opens and ends with a barrier: what is
submitted later begins after what was submitted before has ended. A timeline semaphore counts the
submissions; `wait(n)` returns when the n-th and all before it are done.

Copies beside programs have a queue and a count of their own (aside.py). Each waits for the programs
that were there before it; the number of one that programs are to wait for comes onto `joins`, and
they do from the next submission on. Both waits are the device's.

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
from rune.backends.shared.call_list import CallList
from rune.backends.shared.pool import Block
from rune.backends.vulkan.clock import Clock, Submission, number_of, submission
from rune.backends.vulkan.driver import (
    Physical,
    QueuePlace,
    api,
    at_exit,
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


@dataclass(slots=True)
class Copies:
    """The queue for copies beside programs.

    submitted: so many until now
    awaiting:  the submission that lets programs wait
    awaited:   the last copy that they wait for
    """

    queue: object
    family: int
    clock: Clock
    awaiting: Submission
    submitted: int = 0
    awaited: int = 0


class VulkanDevice:
    """A device, open."""

    def __init__(self, physical: Physical, name: str):
        vk = api()
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
        self.queue, self.clock = self._queue(QueuePlace(physical.family, 0)), Clock(self)
        pool = struct("VkCommandPoolCreateInfo", queueFamilyIndex=physical.family)
        self.command_pool = self.create("CommandPool", pool)
        self.copies = self._copies(physical.copies) if physical.copies else None
        self.joins: deque[int] = deque()  # copies that programs have to wait for; finalizers put some there
        at_exit(self.close)

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
        wanted = ["VK_KHR_portability_subset"]  # must be enabled where it is listed
        names = [c_text(n) for n in wanted if n in physical.extensions]
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

    def submission(self, commands: Sequence[object]) -> tuple[Any, Any]:
        """Command buffers ready to submit again and again: the information, and its number."""
        work = submission(commands, self.clock)
        return work.info, work.number

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
        if self.joins and self.copies:
            self._await(self.copies)

    def _settle(self) -> None:
        """Under the lock: after an interrupt in the middle of a submission, ask what was done."""
        if not self._is_unsure:
            return
        code = self.vk.vkDeviceWaitIdle(self.handle) or self.clock.ask()
        if self.copies and not code:
            code = self.copies.clock.ask()
        if code:
            raise self.failure(code, "wait for its work")
        # All has ended, so its clocks show the last numbers.
        self.submitted = self._done = self.clock.time
        if self.copies:
            self.copies.submitted = self.copies.clock.time
        self._is_unsure = False

    def is_done(self, number: int) -> bool:
        """Whether a submission, and all before it, have ended."""
        if number <= self._done and not self._is_unsure:
            return True
        with self.lock:
            if self.lost is not None:
                raise self.lost_error()
            self._settle()
            self._done = max(self._done, min(self._time(self.clock), self.submitted))
        return number <= self._done

    def _time(self, clock: Clock) -> int:
        """Under the lock: what it shows. Errors: DeviceError."""
        code = clock.ask()
        if code:
            raise self.failure(code, "ask for its progress")
        return clock.time

    def wait(self, number: int) -> None:
        """Return when a submission, and all before it, have ended. Errors: DeviceError."""
        if self.lost is not None:
            raise self.lost_error()
        if number <= self._done:
            return
        self._until(self.clock, number)
        self._done = max(self._done, number)
        self.check_silence()

    def _until(self, clock: Clock, number: int) -> None:
        """Return when the clock shows the number. Errors: DeviceError."""
        info = clock.reaches(number)
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

    def synchronize(self) -> None:
        """Return when all programs submitted so far have ended, and copies that they wait for."""
        self.wait(self.submitted)
        if self.copies:
            self.wait_for_copy(self.copies, max([self.copies.awaited, *self.joins]))
        with self.lock:
            self.drain()
        self.check_silence()

    # --- copies beside programs --------------------------------------------------------------

    def before_now(self) -> int:
        """The number of the last submission until now. Errors: DeviceError."""
        with self.lock:
            self._begin()
            return self.submitted

    def submit_copy(self, copies: Copies, copy: Submission, behind: int) -> int:
        """Hand a copy to the queue of copies, where it waits for a submission; its number there.

        Errors: DeviceError.
        """
        with self.lock:
            self._begin()
            copy.number[0], copy.awaited[0] = copies.submitted + 1, behind
            self._is_unsure = True
            code = self.vk.vkQueueSubmit(copies.queue, 1, copy.info, api().ffi.NULL)
            copies.submitted += code >= 0
            self._is_unsure = False
            if code < 0:
                raise self.failure(code, "submit a copy")
            return copies.submitted

    def _await(self, copies: Copies) -> None:
        """Under the lock: what is submitted from now on waits for the copies that were joined."""
        joined = [*self.joins]
        copies.awaiting.awaited[0] = max(joined)
        code = self.vk.vkQueueSubmit(self.queue, 1, copies.awaiting.info, api().ffi.NULL)
        if code < 0:
            raise self.failure(code, "wait for a copy")
        copies.awaited = max(copies.awaited, *joined)
        for _ in joined:
            self.joins.popleft()

    def has_copied(self, copies: Copies, number: int) -> bool:
        """Whether a copy, and all before it, have ended. Errors: DeviceError."""
        with self.lock:
            return number <= self._time(copies.clock)

    def wait_for_copy(self, copies: Copies, number: int) -> None:
        """Return when a copy, and all before it, have ended. Errors: DeviceError."""
        if not self.has_copied(copies, number):
            self._until(copies.clock, number)

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
