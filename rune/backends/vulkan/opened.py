"""A Vulkan device from its opening until it is lost; a backend may open it anew."""

from __future__ import annotations

from rune.backends.vulkan.aside import Aside
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.memory import VulkanMemory
from rune.backends.vulkan.pipeline import Pipelines
from rune.records import dataclass


@dataclass(slots=True, eq=False)
class Opened:
    """A device from its opening until it is lost."""

    device: VulkanDevice
    memory: VulkanMemory
    pipelines: Pipelines
    aside: Aside | None  # None: the host writes arrays, or there is no queue for it
