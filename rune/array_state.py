"""Memory: what a concrete array tells of its memory, by the names of jax.Array."""

from __future__ import annotations

from typing import Any

from rune.errors import ArgumentError


class Memory:
    """A mixin of `Array` without fields: it asks an array for its buffer and its place.

    >>> import rune.numpy as rnp
    >>> rnp.arange(3).on_device_size_in_bytes()
    12
    """

    __slots__ = ()

    def is_ready(self: Any) -> bool:
        """Whether no work is waited for: what a device has begun is finished here."""
        self.block_until_ready()
        return True

    def copy_to_host_async(self: Any) -> None:
        """Begin to copy the contents to the host, where a device can do that beside other work."""
        self.start_numpy()

    def clone(self: Any) -> Any:
        """An array of the same contents and place; they never change, so the memory is shared."""
        return type(self)(self.buffer, self.type, self.place)

    def on_device_size_in_bytes(self: Any) -> int:
        """The bytes that the elements take."""
        return self.size * self.dtype.itemsize

    def platform(self: Any) -> str:
        """The kind of device that it is on."""
        return self.device.platform

    def unsafe_buffer_pointer(self: Any) -> int:
        """The address of the first element in the memory of the CPU, while the array lives.

        Errors: ArgumentError on another device.
        """
        if self.place.device is not None:
            raise ArgumentError(f"unsafe_buffer_pointer: cannot give an address of {self.type} on {self.device.name}")
        return self.buffer.ctypes.data
