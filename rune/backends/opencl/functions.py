"""The C functions of OpenCL that commands call by themselves, past pyopencl (commands.py)."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType
from typing import Protocol

from rune.records import dataclass

_NAMES = ("clEnqueueNDRangeKernel", "clEnqueueCopyBuffer", "clSetKernelArg", "clFlush")


class Handle(Protocol):
    """An object of pyopencl's."""

    int_ptr: int


@dataclass(frozen=True, slots=True)
class Functions:
    """Addresses of clEnqueueNDRangeKernel, clEnqueueCopyBuffer, clSetKernelArg and clFlush."""

    launch: int
    copy: int
    set_argument: int
    flush: int


def functions(cl: ModuleType) -> Functions:
    """The functions of the library that pyopencl calls. Errors: OSError, AttributeError."""
    # A library is searched together with those that it was linked to, but on Windows.
    library = ctypes.CDLL("OpenCL.dll" if sys.platform == "win32" else cl._cl.__file__)
    addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _NAMES]
    return Functions(*[address or 0 for address in addresses])
