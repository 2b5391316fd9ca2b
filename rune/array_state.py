"""Memory: the methods by which a concrete array describes its memory, as in jax.Array."""

from __future__ import annotations

from typing import Any

from rune.errors import ArgumentError


class Memory:
    """A mixin of `Array` without fields, which reads the array's buffer and place.

    >>> import rune.numpy as rnp
    >>> rnp.arange(3).on_device_size_in_bytes()
    12
    """

    __slots__ = ()

    def is_ready(self: Any) -> bool:
        """Wait until the contents are computed; always True."""
        self.block_until_ready()
        return True

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
