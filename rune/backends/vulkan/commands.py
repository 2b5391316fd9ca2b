"""Command buffers: kernels, copies, and the barriers around them.

A command buffer opens with a barrier that waits for all that was submitted before it, and ends
with one after which the host sees what was written. Between its commands a barrier stands where
the recorder asks for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import api, check, struct


class Commands:
    """Records commands of one device; all under its lock."""

    def __init__(self, device: VulkanDevice):
        vk = api()
        self.device, self.vk = device, device.vk
        # The kinds of writes that rune's commands make.
        written = vk.VK_ACCESS_SHADER_WRITE_BIT | vk.VK_ACCESS_TRANSFER_WRITE_BIT
        used = (
            written
            | vk.VK_ACCESS_SHADER_READ_BIT
            | vk.VK_ACCESS_TRANSFER_READ_BIT
            # A gated launch reads its numbers of groups, which a kernel wrote.
            | vk.VK_ACCESS_INDIRECT_COMMAND_READ_BIT
        )
        self._work = (
            vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
            | vk.VK_PIPELINE_STAGE_TRANSFER_BIT
            | vk.VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT
        )
        self._host = vk.VK_PIPELINE_STAGE_HOST_BIT
        self._between = struct("VkMemoryBarrier", srcAccessMask=written, dstAccessMask=used)
        # Makes writes visible to the host, which reads mapped memory directly.
        self._at_end = struct("VkMemoryBarrier", srcAccessMask=written, dstAccessMask=vk.VK_ACCESS_HOST_READ_BIT)

    @contextmanager
    def recording(self, buffer: object, flags: int) -> Iterator[None]:
        """Between the barriers of a command buffer."""
        begin = struct("VkCommandBufferBeginInfo", flags=flags)
        check(self.vk.vkBeginCommandBuffer(buffer, begin), "vkBeginCommandBuffer")
        self.barrier(buffer)
        yield
        self._barrier(buffer, self._host, self._at_end)
        check(self.vk.vkEndCommandBuffer(buffer), "vkEndCommandBuffer")

    def barrier(self, buffer: object) -> None:
        """What follows sees what was written before."""
        self._barrier(buffer, self._work, self._between)

    def _barrier(self, buffer: object, then: int, access: object) -> None:
        null = api().ffi.NULL
        self.vk.vkCmdPipelineBarrier(buffer, self._work, then, 0, 1, access, 0, null, 0, null)
