"""Command buffers: kernels, copies, and the barriers around them.

A command buffer begins with a barrier that waits for all earlier submissions, and ends with one
that makes its writes visible to the host. Between its commands the recorder adds barriers where
they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import api, check, struct


class Commands:
    """Records commands of one device, under the device's lock."""

    def __init__(self, device: VulkanDevice):
        vk = api()
        self.device, self.vk = device, device.vk
        # The kinds of writes that rune's commands make.
        writes = vk.VK_ACCESS_SHADER_WRITE_BIT | vk.VK_ACCESS_TRANSFER_WRITE_BIT
        accesses = (
            writes
            | vk.VK_ACCESS_SHADER_READ_BIT
            | vk.VK_ACCESS_TRANSFER_READ_BIT
            # A launch behind a gate reads its numbers of groups, which a kernel has written.
            | vk.VK_ACCESS_INDIRECT_COMMAND_READ_BIT
        )
        self._work = (
            vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
            | vk.VK_PIPELINE_STAGE_TRANSFER_BIT
            | vk.VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT
        )
        self._host = vk.VK_PIPELINE_STAGE_HOST_BIT
        self._between = struct("VkMemoryBarrier", srcAccessMask=writes, dstAccessMask=accesses)
        # The host reads mapped memory directly, and a semaphore alone does not make writes visible.
        self._at_end = struct("VkMemoryBarrier", srcAccessMask=writes, dstAccessMask=vk.VK_ACCESS_HOST_READ_BIT)

    @contextmanager
    def recording(self, buffer: object, flags: int) -> Iterator[None]:
        """Record into a command buffer, inside its first and last barrier."""
        begin = struct("VkCommandBufferBeginInfo", flags=flags)
        check(self.vk.vkBeginCommandBuffer(buffer, begin), "vkBeginCommandBuffer")
        self.barrier(buffer)
        yield
        self._barrier(buffer, self._host, self._at_end)
        check(self.vk.vkEndCommandBuffer(buffer), "vkEndCommandBuffer")

    def barrier(self, buffer: object) -> None:
        """Make earlier writes visible to later commands."""
        self._barrier(buffer, self._work, self._between)

    def _barrier(self, buffer: object, stage: int, access: object) -> None:
        null = api().ffi.NULL
        self.vk.vkCmdPipelineBarrier(buffer, self._work, stage, 0, 1, access, 0, null, 0, null)
