"""Addresses of OpenCL's C functions, which call lists use without pyopencl (commands.py)."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType
from typing import Protocol

from rune.records import dataclass

_NAMES = ("clEnqueueNDRangeKernel", "clEnqueueCopyBuffer", "clSetKernelArg", "clFlush")


class Handle(Protocol):
    """An object of pyopencl."""

    int_ptr: int


@dataclass(frozen=True, slots=True)
class Functions:
    """Addresses of clEnqueueNDRangeKernel, clEnqueueCopyBuffer, clSetKernelArg and clFlush."""

    launch: int
    copy: int
    set_argument: int
    flush: int


def functions(cl: ModuleType) -> Functions:
    """The functions of the library that pyopencl uses. Errors: OSError, AttributeError."""
    # pyopencl may bring a loader of its own, and handles are valid in that one only. Looking a name
    # up in its module also searches the libraries that it is linked to, except on Windows.
    library = ctypes.CDLL("OpenCL.dll" if sys.platform == "win32" else cl._cl.__file__)
    addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _NAMES]
    return Functions(*[address or 0 for address in addresses])
