"""Memory: the methods by which a concrete array describes its memory, as in jax.Array."""

from __future__ import annotations

from typing import Any

from rune.backends import Device
from rune.backends.shared.protocol import CountsWork
from rune.errors import ArgumentError


def _is_idle(device: Device) -> bool:
    if isinstance(device.backend, CountsWork):
        return device.backend.work_stats().in_flight == 0
    device.backend.synchronize()
    return True


class Memory:
    """A mixin of `Array` without fields, which reads the array's buffer and place.

    >>> import rune.numpy as rnp
    >>> rnp.arange(3).on_device_size_in_bytes()
    12
    """

    __slots__ = ()

    def is_ready(self: Any) -> bool:
        """Whether the contents are computed. Never waits.

        False as long as the array's device has calls of programs that have not ended, be they this
        array's or later ones. (A user's backend that counts no calls is waited for.)
        """
        return all(map(_is_idle, self.sharding.addressable_devices))

    def copy_to_host_async(self: Any) -> None:
        """Begin to copy the contents to the host, if the device can do so in the background."""
        self.start_numpy()

    def clone(self: Any) -> Any:
        """An array with the same contents and place; it shares the memory, which never changes."""
        return type(self)(self.buffer, self.type, self.place)

    def on_device_size_in_bytes(self: Any) -> int:
        """The size of the elements in bytes."""
        return self.size * self.dtype.itemsize

    def platform(self: Any) -> str:
        """The kind of device that holds the array."""
        return self.device.platform

    def unsafe_buffer_pointer(self: Any) -> int:
        """The address of the first element in the CPU's memory; valid while the array lives.

        Errors: ArgumentError on another device.
        """
        if self.place.device is not None:
            raise ArgumentError(f"unsafe_buffer_pointer: cannot give an address of {self.type} on {self.device.name}")
        return self.buffer.ctypes.data
