"""Copies to a Vulkan device in a queue of their own, while programs run in theirs.

Memory of the pool may still be in use by what was submitted before it was given back, so a copy
waits for all programs that were there before it; and programs that are submitted after the join
wait for the copy. Both waits are the device's: the host waits for neither, but for memory in
between if all of it is in use. Pieces of that are used in turn.

Only where arrays are out of the host's reach: elsewhere the host writes them itself.
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
    """Memory that the host writes, and the commands that copy it from there."""

    block: Block
    commands: object
    submission: Submission
    copy: int = 0  # the last one from it


class Aside:
    """The queue for copies of an open device, for any thread."""

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
        """Submit a copy of host bytes (u8); what it gives lets programs wait for it.

        Errors: DeviceError, OutOfMemory, Failure.
        """
        device = self._device
        with self._lock:
            behind, copy = device.before_now(), 0
            try:
                for at in range(0, data.size, SIZES[-1]):
                    copy = self._send(block, at, data[at : at + SIZES[-1]], behind)
            except BaseException:
                # The memory returns to the pool, and a part of the copy may be under way.
                device.joins.append(self._copies.submitted)
                raise
            return partial(device.joins.append, copy)

    def stats(self) -> PoolStats:
        """The memory in between."""
        return self._pool.stats()

    def _send(self, block: Block, at: int, part: np.ndarray, behind: int) -> int:
        """Copy a piece; the copy's number."""
        piece = self._next(next(size for size in SIZES if part.size <= size))
        bytes_of(piece.block)[: part.size] = part
        self._memory.flush(piece.block, 0, part.size)
        self._record(piece, block, at, part.size)
        piece.copy = self._device.submit_copy(self._copies, piece.submission, behind)
        return piece.copy

    def _record(self, piece: _Piece, block: Block, at: int, nbytes: int) -> None:
        """Commands for the copy, behind the copies before: those may be to the same memory."""
        vk, functions, null = api(), self._device.vk, api().ffi.NULL
        begin = struct("VkCommandBufferBeginInfo", flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
        check(functions.vkBeginCommandBuffer(piece.commands, begin), "vkBeginCommandBuffer")
        all_work = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
        barriers = 1, self._between, 0, null, 0, null
        functions.vkCmdPipelineBarrier(piece.commands, all_work, all_work, 0, *barriers)
        self._memory.record_copy(piece.commands, piece.block, 0, block, at, nbytes)
        check(functions.vkEndCommandBuffer(piece.commands), "vkEndCommandBuffer")

    def _next(self, size: int) -> _Piece:
        """The piece that was used longest ago, if its copy is done or no more may be made."""
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
