"""Maps an image of machine code: copies it, fills in its table of addresses, makes it executable.

    code = load(image, addresses)
    code.address("run")                   the address of a function

An image needs only a few functions of the C library, and runs at any address.

Invariant: no page is both writable and executable.
"""

from __future__ import annotations

import ctypes
import functools
import marshal
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Mapping, Sequence

from rune.errors import DeviceError, OutOfMemory
from rune.records import dataclass

PAGE = 4096
_WORD = struct.Struct("<Q")
_MASK = (1 << 64) - 1
_WRITABLE, _EXECUTABLE = 0x1 | 0x2, 0x1 | 0x4  # of mprotect: PROT_READ with PROT_WRITE, PROT_EXEC


@functools.cache
def is_available() -> bool:
    """Whether the layout knows this system's object files and processor."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and hasattr(mmap, "MAP_PRIVATE")


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of machine code and its data.

    memory:     code and constants, then data that may change, on separate pages
    code_bytes: the size of code and constants, in whole pages
    all_bytes:  the size with the data that begins as zeros
    places:     offsets of functions and data, by name
    outside:    the addresses that are needed: a number of the caller's, or the name of a function
    words:      the words that get an address: the word's offset, the address's number in `outside`
                or -1 for the image itself, and an addend
    """

    memory: bytes
    code_bytes: int
    all_bytes: int
    places: Mapping[str, int]
    outside: tuple[int | str, ...]
    words: tuple[tuple[int, int, int], ...]

    def to_bytes(self) -> bytes:
        """The image for a file."""
        fields = self.code_bytes, self.all_bytes, dict(self.places), self.outside, self.words
        return marshal.dumps((self.memory, *fields))


def image_of(data: bytes | memoryview) -> Image:
    """The image in a file. The cache must have checked its digest: marshal trusts its input."""
    return Image(*marshal.loads(data))


class Mapped:
    """An image in executable memory, which is unmapped with this object."""

    __slots__ = ("__weakref__", "_base", "_nbytes", "_places")

    def __init__(self, base: int, image: Image):
        self._base, self._nbytes, self._places = base, image.all_bytes, image.places

    def address(self, name: str) -> int:
        """The address of a function or of data."""
        return self._base + self._places[name]

    # A default argument, as the module's globals may be None while the interpreter ends. Then it
    # unmaps nothing: other threads may still run this code.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            _system().munmap(self._base, self._nbytes)


def load(image: Image, addresses: Sequence[int]) -> Mapped:
    """Map an image, with these for the addresses that it refers to by number.

    Errors: OutOfMemory; DeviceError if the process has no such function, or forbids new code.
    """
    outside = [addresses[x] if isinstance(x, int) else function_address(x) for x in image.outside]
    base = _memory(image.all_bytes)
    # From here on this object owns the memory, and unmaps it if anything below fails.
    code = Mapped(base, image)
    ctypes.memmove(base, image.memory, len(image.memory))
    for offset, number, addend in image.words:
        start = base if number < 0 else outside[number]
        ctypes.memmove(base + offset, _WORD.pack((start + addend) & _MASK), _WORD.size)
    if image.code_bytes and _system().mprotect(base, image.code_bytes, _EXECUTABLE):
        raise DeviceError(f"cpu: cannot run new code (the system refuses to make {image.code_bytes} B executable)")
    return code


@functools.cache
def function_address(name: str) -> int:
    """The address of a function of the C library. Errors: DeviceError."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError:
        raise DeviceError(f"cpu: cannot link {name} (this process has no such function)") from None
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _memory(nbytes: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = _system().mmap(None, nbytes, _WRITABLE, flags, -1, 0)
    if base in (None, ctypes.c_void_p(-1).value):
        raise OutOfMemory(f"cpu: cannot allocate {nbytes} B for machine code (the system refuses)")
    assert isinstance(base, int)
    return base


@functools.cache
def _system() -> ctypes.CDLL:
    """The C library, loaded separately, as argument types are set on the library object."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library
