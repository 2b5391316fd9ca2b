"""Vulkan: if a driver refuses a call, the error names the device and what it could not do.

The software drivers refuse none of these, so functions that return an error code replace theirs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rune import dtypes
from rune.backends import vulkan
from rune.backends.vulkan import device as vulkan_device
from rune.backends.vulkan import items, record, session
from rune.backends.vulkan.clock import Clock
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import Failure, api, c_array
from rune.core.types import ArrayType
from rune.errors import DeviceError, OutOfMemory
from tests.backends.vulkan.cases import TARGETS, chain, needs_device, opened, physical
from tests.backends.vulkan.two_queues import two_queues

pytestmark = needs_device
X = np.ones(3, np.float32)


@pytest.fixture
def backend() -> Iterator[vulkan.VulkanBackend]:
    """A device of this test alone."""
    with opened() as backend:
        yield backend


@pytest.fixture
def device(backend: vulkan.VulkanBackend) -> VulkanDevice:
    return backend.session().device


def refusing(name: str) -> Callable[..., int]:
    """A function of the driver that answers with this code."""
    return lambda *arguments: getattr(api(), name)


# --- opening ----------------------------------------------------------------------------------


def test_a_device_that_the_driver_does_not_open_is_named_with_the_code(monkeypatch: pytest.MonkeyPatch):
    vk = api()
    library = SimpleNamespace(vkCreateDevice=refusing("VK_ERROR_INITIALIZATION_FAILED"))
    monkeypatch.setattr(vulkan_device, "api", lambda: SimpleNamespace(ffi=vk.ffi, lib=library))

    with pytest.raises(DeviceError, match=r"device: cannot open vulkan:0 \(VK_ERROR_INITIALIZATION_FAILED\)"):
        VulkanDevice(physical(), "vulkan:0")


def test_a_device_that_lacks_a_handle_when_it_is_opened_is_named_with_the_call_and_closed(
    monkeypatch: pytest.MonkeyPatch,
):
    devices: list[VulkanDevice] = []

    def refuse(device: VulkanDevice) -> None:
        devices.append(device)
        raise Failure(api().VK_ERROR_OUT_OF_HOST_MEMORY, "vkCreatePipelineLayout")

    monkeypatch.setattr(session, "Pipelines", refuse)

    with pytest.raises(DeviceError, match=r"vulkan:0 \(vkCreatePipelineLayout: VK_ERROR_OUT_OF_HOST_MEMORY\)"):
        vulkan.VulkanBackend(TARGETS[0], physical())
    assert [device._handle for device in devices] == [None]


# --- a device that is lost --------------------------------------------------------------------

USES: dict[str, Callable[[VulkanDevice], object]] = {
    "make a handle": lambda device: device.create("Buffer", None),
    "ask for progress": lambda device: device.is_done(1),
    "wait": lambda device: device.wait(0),
    "submit": lambda device: device.submit((None, None)),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_lost_device_reports_when_it_was_lost(device: VulkanDevice, use: str):
    device.failure(api().VK_ERROR_DEVICE_LOST, "submit work")

    with pytest.raises(DeviceError, match=r"cannot go on \(the device was lost when it had to submit work") as error:
        USES[use](device)
    assert "new arrays and calls open the device again" in (error.value.hint or "")


# --- work -------------------------------------------------------------------------------------


def test_work_that_the_driver_does_not_take_is_not_counted(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch):
    before = device.submissions
    monkeypatch.setattr(device.vk, "vkQueueSubmit", refusing("VK_ERROR_UNKNOWN"))

    with pytest.raises(DeviceError, match=r"vulkan: vulkan:0 cannot submit work \(VK_ERROR_UNKNOWN\)"):
        device.submit(device.submission(c_array("VkCommandBuffer", [])))
    assert device.submissions == before


@pytest.mark.parametrize("code", ["VK_ERROR_UNKNOWN", "VK_ERROR_OUT_OF_DEVICE_MEMORY"])
def test_a_native_call_that_the_driver_does_not_take_is_an_error_and_the_next_one_is_right(
    backend: vulkan.VulkanBackend, monkeypatch: pytest.MonkeyPatch, code: str
):
    device, codes = backend.session().device, list[int]()
    kinds = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p
    original = ctypes.CFUNCTYPE(*kinds)(device.submit_address)
    answer = ctypes.CFUNCTYPE(*kinds)(lambda *arguments: codes.pop() if codes else original(*arguments))
    monkeypatch.setattr(device, "submit_address", ctypes.cast(answer, ctypes.c_void_p).value)
    executable, x = backend.record(chain(2)), backend.copy_in(X)
    executable([x])
    played, before = executable.player([x]), device.submissions
    assert played is not None

    codes.append(getattr(api(), code))
    kind = OutOfMemory if "MEMORY" in code else DeviceError
    with pytest.raises(kind, match=rf"cannot submit work \({code}"):
        played.play(x)

    assert not codes
    assert device.submissions == before
    results = played.play(x)
    assert results is not None
    result, _ = results
    np.testing.assert_array_equal(backend.copy_out(result, result.type), 4 * X)
    stats = backend.work_stats()
    assert (stats.submitted, stats.in_flight) == (3, 0)


def test_work_that_cannot_be_waited_for_after_an_interrupt_is_an_error(
    device: VulkanDevice, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(device, "_is_unsure", True)
    monkeypatch.setattr(device.vk, "vkDeviceWaitIdle", refusing("VK_ERROR_OUT_OF_HOST_MEMORY"))

    with pytest.raises(OutOfMemory, match=r"cannot wait for its work \(VK_ERROR_OUT_OF_HOST_MEMORY\)"):
        device.before_now()


def test_progress_that_the_driver_does_not_tell_is_an_error(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Clock, "ask", refusing("VK_ERROR_UNKNOWN"))

    with pytest.raises(DeviceError, match=r"cannot ask for its progress \(VK_ERROR_UNKNOWN\)"):
        device.is_done(device.submissions + 1)


def test_a_wait_that_fails_is_an_error(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device.vk, "vkWaitSemaphores", refusing("VK_ERROR_UNKNOWN"))

    with pytest.raises(DeviceError, match=r"cannot wait for its work \(VK_ERROR_UNKNOWN\)"):
        device.wait(device.submissions + 1)


def test_commands_that_cannot_be_recorded_are_an_error_of_the_call(
    backend: vulkan.VulkanBackend, monkeypatch: pytest.MonkeyPatch
):
    executable, x = backend.record(chain(2)), backend.copy_in(X)
    monkeypatch.setattr(backend.session().device.vk, "vkBeginCommandBuffer", refusing("VK_ERROR_UNKNOWN"))

    with pytest.raises(DeviceError, match=r"cannot record commands \(VK_ERROR_UNKNOWN\)"):
        executable([x])


def test_a_launch_is_recorded_and_never_a_part_of_the_host():
    nobody: Any = None

    with pytest.raises(AssertionError, match="Run"):
        record._Work.node(nobody, items.Run("double", (), (), (), (1, 1, 1)))


# --- memory -----------------------------------------------------------------------------------


def test_a_buffer_that_the_driver_has_no_room_for_is_out_of_memory(
    backend: vulkan.VulkanBackend, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backend.session().device.vk, "vkCreateBuffer", refusing("VK_ERROR_OUT_OF_DEVICE_MEMORY"))

    with pytest.raises(OutOfMemory, match="cannot allocate 400000000 B"):
        backend.alloc(ArrayType((100_000_000,), dtypes.f32))


# --- copies alongside programs ----------------------------------------------------------------


def test_a_copy_that_cannot_be_begun_is_an_error(monkeypatch: pytest.MonkeyPatch):
    with two_queues() as late, monkeypatch.context() as patch:
        patch.setattr(late.device.vk, "vkAllocateCommandBuffers", refusing("VK_ERROR_OUT_OF_HOST_MEMORY"))

        with pytest.raises(OutOfMemory, match=r"cannot copy an array \(VK_ERROR_OUT_OF_HOST_MEMORY\)"):
            late.backend.copy_in_aside(X)


def test_a_program_that_cannot_be_made_to_wait_for_a_copy_is_an_error(monkeypatch: pytest.MonkeyPatch):
    with two_queues() as late, monkeypatch.context() as patch:
        executable = late.backend.record(chain(2))
        buffer, join = late.backend.copy_in_aside(X)
        join()
        patch.setattr(late.device.vk, "vkQueueSubmit", refusing("VK_ERROR_UNKNOWN"))

        with pytest.raises(DeviceError, match=r"cannot wait for a copy \(VK_ERROR_UNKNOWN\)"):
            executable([buffer])
