"""CPython's and NumPy's binary interface: the layout of array objects, and Python functions over
native code.

NumPy's ABI promises this layout (ndarraytypes.h, PyArrayObject_fields). `abi()` still checks it
once against real arrays, so that another layout is an error and never a wild read.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from rune.records import dataclass

_C_CONTIGUOUS, _ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
_METH_FASTCALL = 0x0080
HEAD = ("ptr", "i64", "i64")  # types of the words before the dtypes (array_checks.py)
MISCOUNTED = 0x7FFF  # the result for a wrong number of arrays
GAVE_UP = 0x7FFE  # the result of a draft that would have run for too long (drafts.py)
# Fields with addresses of functions and objects, which differ between processes.
ADDRESSES = ("ndarray", "save_thread", "restore_thread", "from_long", "long_value", "error")


@dataclass(frozen=True, slots=True)
class Abi:
    """Byte offsets within an array object, and addresses of the interpreter's functions."""

    type: int
    data: int
    ndim: int
    shape: int
    base: int
    descr: int
    flags: int
    ndarray: int  # address of the type object
    required_flags: int
    save_thread: int
    restore_thread: int
    from_long: int
    long_value: int
    error: int


def address_of(function: Any) -> int:
    """The address of the C function behind a ctypes function."""
    value = ctypes.cast(function, ctypes.c_void_p).value
    assert value is not None
    return value


@functools.cache
def abi() -> Abi | None:
    """The layout of array objects in this process; None if it is not the known one."""
    head = object.__basicsize__
    api = ctypes.pythonapi
    layout = Abi(
        # The type is the last word of any object's head; NumPy's fields follow the head.
        type=head - 8,
        data=head,
        ndim=head + 8,
        shape=head + 16,
        base=head + 32,
        descr=head + 40,
        flags=head + 48,
        ndarray=id(np.ndarray),
        required_flags=_C_CONTIGUOUS | _ALIGNED,
        save_thread=address_of(api.PyEval_SaveThread),
        restore_thread=address_of(api.PyEval_RestoreThread),
        from_long=address_of(api.PyLong_FromLong),
        long_value=address_of(api.PyLong_AsVoidPtr),
        error=address_of(api.PyErr_Occurred),
    )
    # A dense array, a strided view (not contiguous, with a base), and one of rank 0.
    samples = np.zeros((3, 5), np.float32), np.zeros((4, 2, 6), np.int16)[:, :, 1:], np.ones(())
    return layout if all(_holds(layout, array) for array in samples) else None


def _holds(abi: Abi, array: np.ndarray) -> bool:
    """Whether the fields read from memory agree with NumPy's attributes."""

    def read(kind: Any, offset: int) -> int:
        return kind.from_address(id(array) + offset).value or 0

    if read(ctypes.c_void_p, abi.type) != abi.ndarray or read(ctypes.c_int, abi.ndim) != array.ndim:
        return False
    shape = read(ctypes.c_void_p, abi.shape)
    lengths = [ctypes.c_ssize_t.from_address(shape + 8 * k).value for k in range(array.ndim)]
    flags = read(ctypes.c_int, abi.flags)
    return (
        read(ctypes.c_void_p, abi.data) == array.ctypes.data
        and tuple(lengths) == array.shape
        and read(ctypes.c_void_p, abi.base) == (0 if array.base is None else id(array.base))
        and read(ctypes.c_void_p, abi.descr) == id(array.dtype)
        and bool(flags & _C_CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & _ALIGNED) == array.flags.aligned
        and bool(flags & WRITEABLE) == array.flags.writeable
    )


class MethodDefinition(ctypes.Structure):
    """A PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A built-in Python function over machine code; `definition` must outlive `call`."""

    call: Callable[..., int]
    definition: MethodDefinition


def native_function(name: str, address: int, instance: object = None, *references: object) -> NativeFunction:
    """The Python function whose C function (self, argv, count) is at `address`.

    instance:   its `self`
    references: objects that live as long as the function
    """
    definition = MethodDefinition(name.encode(), address, _METH_FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    # CPython accepts any object as the module of a function, and the function keeps it alive.
    return NativeFunction(make(ctypes.addressof(definition), instance, (definition, *references)), definition)
