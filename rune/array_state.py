"""Methods of concrete arrays that ask about their memory; `rune` attaches them to `Array`."""

from __future__ import annotations

from rune.array import Array
from rune.errors import ArgumentError


def is_ready(self: Array) -> bool:
    """Whether no work is waited for: what a device has begun is finished here."""
    self.block_until_ready()
    return True


def copy_to_host_async(self: Array) -> None:
    """Begin to copy the contents to the host, where a device can do that beside other work."""
    self.start_numpy()


def clone(self: Array) -> Array:
    """An array of the same contents and place; they never change, so the memory is shared."""
    return Array(self.buffer, self.type, self.place)


def on_device_size_in_bytes(self: Array) -> int:
    """The bytes that the elements take. Errors: DeletedArrayError after donation or `delete`."""
    return self.numpy().nbytes if self.place.device is None else self.size * self.dtype.itemsize


def platform(self: Array) -> str:
    """The kind of device that it is on."""
    return self.device.platform


def unsafe_buffer_pointer(self: Array) -> int:
    """The address of the first element in the memory of the CPU. It must outlive what reads there.

    Errors: ArgumentError on another device.
    """
    if self.place.device is not None:
        raise ArgumentError(f"unsafe_buffer_pointer: cannot give an address of {self.type} on {self.device.name}")
    return self.buffer.ctypes.data


def attach() -> None:
    """Give the methods to `Array`."""
    for method in (is_ready, copy_to_host_async, clone, on_device_size_in_bytes, platform, unsafe_buffer_pointer):
        method.__qualname__ = f"Array.{method.__name__}"
        setattr(Array, method.__name__, method)
