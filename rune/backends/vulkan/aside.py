"""Copies to a Vulkan device in a queue of their own, while programs run in theirs.

Work that was submitted before a block returned to the pool may still use it, so a copy waits for
all programs submitted before it; and programs submitted after the join wait for the copy. The
device does
the waiting: the host waits only for staging memory, if all of it is in use. Pieces of that are used
in turn.

Only where the host cannot address arrays: elsewhere it writes them itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np

from rune import locks
from rune.backends.shared.pool import Block, PoolStats
from rune.backends.vulkan.clock import Submission, submission
from rune.backends.vulkan.device import Copies, VulkanDevice
from rune.backends.vulkan.driver import api, c_array, check, struct
from rune.backends.vulkan.memory import VulkanMemory, bytes_of
from rune.records import dataclass

SIZES = (1 << 16, 1 << 22)  # of pieces: small arrays, large arrays [B]
MOST = 16  # pieces of each size


@dataclass(slots=True, eq=False)
class _Piece:
    """Staging memory that the host writes, and the commands that copy from it."""

    block: Block
    commands: object
    submission: Submission
    copy: int = 0  # the number of the last copy from it


class Aside:
    """The queue for copies of an open device. Any thread may use it."""

    def __init__(self, device: VulkanDevice, memory: VulkanMemory, copies: Copies):
        vk = api()
        self._device, self._memory, self._copies = device, memory, copies
        self._lock = locks.lock()
        self._pool = memory.pinned()
        self._pieces: dict[int, deque[_Piece]] = {size: deque() for size in SIZES}
        reset = vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
        pool = struct("VkCommandPoolCreateInfo", flags=reset, queueFamilyIndex=copies.family)
        self._command_pool = device.create("CommandPool", pool)
        read_or_written = vk.VK_ACCESS_MEMORY_READ_BIT | vk.VK_ACCESS_MEMORY_WRITE_BIT
        self._between = struct(
            "VkMemoryBarrier", srcAccessMask=vk.VK_ACCESS_MEMORY_WRITE_BIT, dstAccessMask=read_or_written
        )

    def send(self, block: Block, data: np.ndarray) -> Callable[[], None]:
        """Submit a copy of host bytes (u8); the function returned makes programs wait for it.

        Errors: DeviceError, OutOfMemory, Failure.
        """
        device = self._device
        with self._lock:
            wait_number, copy = device.before_now(), 0
            try:
                for at in range(0, data.size, SIZES[-1]):
                    copy = self._send(block, at, data[at : at + SIZES[-1]], wait_number)
            except BaseException:
                # The memory returns to the pool, but pieces of the copy may be under way: programs
                # that get it must wait for them.
                device.joins.append(self._copies.submissions)
                raise
            # An append, so that a finaliser can do it: the next submission makes programs wait.
            return partial(device.joins.append, copy)

    def stats(self) -> PoolStats:
        """Counts of the staging memory."""
        return self._pool.stats()

    def _send(self, block: Block, at: int, part: np.ndarray, wait_number: int) -> int:
        """Submit the copy of one piece; returns the copy's number."""
        piece = self._next(next(size for size in SIZES if part.size <= size))
        bytes_of(piece.block)[: part.size] = part
        self._memory.flush(piece.block, 0, part.size)
        self._record(piece, block, at, part.size)
        piece.copy = self._device.submit_copy(self._copies, piece.submission, wait_number)
        return piece.copy

    def _record(self, piece: _Piece, block: Block, at: int, nbytes: int) -> None:
        """Record the copy after a barrier: earlier copies may write the same memory."""
        vk, functions, null = api(), self._device.vk, api().ffi.NULL
        begin = struct("VkCommandBufferBeginInfo", flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
        check(functions.vkBeginCommandBuffer(piece.commands, begin), "vkBeginCommandBuffer")
        all_work = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
        barriers = 1, self._between, 0, null, 0, null
        functions.vkCmdPipelineBarrier(piece.commands, all_work, all_work, 0, *barriers)
        self._memory.record_copy(piece.commands, piece.block, 0, block, at, nbytes)
        check(functions.vkEndCommandBuffer(piece.commands), "vkEndCommandBuffer")

    def _next(self, size: int) -> _Piece:
        """The least recently used piece, if its copy has ended or no more may be made; else a new
        one."""
        pieces = self._pieces[size]
        if pieces and (len(pieces) == MOST or self._device.has_copied(self._copies, pieces[0].copy)):
            self._device.wait_for_copy(self._copies, pieces[0].copy)
            pieces.rotate(-1)
        else:
            pieces.append(self._new(size))
        return pieces[-1]

    def _new(self, size: int) -> _Piece:
        device, buffers = self._device, api().ffi.new("VkCommandBuffer[]", 1)
        info = struct("VkCommandBufferAllocateInfo", commandPool=self._command_pool, commandBufferCount=1)
        check(device.vk.vkAllocateCommandBuffers(device.handle, info, buffers), "vkAllocateCommandBuffers")
        commands = submission(c_array("VkCommandBuffer", [*buffers]), self._copies.clock, device.clock)
        return _Piece(self._pool.take(size, ("copies beside programs",)), buffers[0], commands)
