"""A session: a Vulkan device from its opening until it is lost. A backend may open it again."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.shared.turns import Turns
from rune.backends.shared.work import Work
from rune.backends.vulkan.aside import Aside
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import Failure
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
    work: Work  # also of the sessions before

    @property
    def turns(self) -> Turns:
        """The lock of the device's queue, and why the device was lost."""
        return self.device.turns

    def marker(self) -> Callable[[], bool]:
        """The question whether all that was submitted until now has ended."""
        return self.device.marker()


def session_on(device: VulkanDevice, work: Work) -> Session:
    """The session of an opened device, which is closed if a part of it cannot be made.

    Errors: Failure if the driver refuses one.
    """
    try:
        memory, copies = VulkanMemory(device), device.copies
        aside = Aside(device, memory, copies) if copies and not memory.is_shared else None
        return Session(device, memory, Pipelines(device), aside, work)
    except Failure:
        device.close()
        raise
