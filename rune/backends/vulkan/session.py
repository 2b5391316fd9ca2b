"""A session: a Vulkan device from its opening until it is lost. A backend may open it again."""

from __future__ import annotations

from rune.backends.vulkan.aside import Aside
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.memory import VulkanMemory
from rune.backends.vulkan.pipeline import Pipelines
from rune.records import dataclass


@dataclass(slots=True, eq=False)
class Session:
    """A device from its opening until it is lost."""

    device: VulkanDevice
    memory: VulkanMemory
    pipelines: Pipelines
    aside: Aside | None  # None if the host writes arrays, or there is no second queue
