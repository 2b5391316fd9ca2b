"""Exchanges memory with other libraries without a copy, through DLPack's structures.

`lend` wraps memory that an owner keeps alive; the owner is released when the other library returns
the memory. `borrow` takes memory that another library lends, and returns it when the last view on
it dies. Both support versions 0.x ("dltensor") and 1.x ("dltensor_versioned", with a read-only
flag). This module knows no arrays, and moves nothing between devices.

Source: dlpack.h of DLPack 1.1, and the Python specification of DLPack.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import Any

import numpy as np

from rune import dtypes
from rune.records import dataclass

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
VERSION = (1, 1)
_READ_ONLY, _IS_COPIED = 1, 2
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL, _E4M3FN, _E5M2 = 0, 1, 2, 4, 5, 6, 10, 12

_CODES: dict[np.dtype, tuple[int, int]] = {
    dtypes.bool_: (_BOOL, 8),
    dtypes.bf16: (_BFLOAT, 16),
    dtypes.f8_e4m3: (_E4M3FN, 8),
    dtypes.f8_e5m2: (_E5M2, 8),
    **{d: (_INT, 8 * d.itemsize) for d in (dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64)},
    **{d: (_UINT, 8 * d.itemsize) for d in (dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64)},
    **{d: (_FLOAT, 8 * d.itemsize) for d in (dtypes.f16, dtypes.f32, dtypes.f64)},
    **{d: (_COMPLEX, 8 * d.itemsize) for d in (dtypes.c64, dtypes.c128)},
}
# Lanes are not part of the key: `_memory` refuses vector types.
_DTYPES = {code: dtype for dtype, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_NAMES = {_Managed: b"dltensor", _Versioned: b"dltensor_versioned"}
_USED = {_Managed: b"used_dltensor", _Versioned: b"used_dltensor_versioned"}
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", _api))


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of an array. strides: in elements."""

    address: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: tuple[int, int] = (CPU, 0)

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie row by row, without gaps."""
        # Strides of axes with one element do not matter, and libraries set them to anything.
        dense = zip(self.shape, self.strides, dense_strides(self.shape))
        return 0 in self.shape or all(n == 1 or step == dense_step for n, step, dense_step in dense)


def can_lend(dtype: np.dtype) -> bool:
    """Whether DLPack has a code for a dtype."""
    return dtype in _CODES


# --- lending ----------------------------------------------------------------------------------

# Lent memory by the address of its structure, until the borrower returns it; and capsules, until
# nobody else holds them. A capsule has no destructor, because that would run Python while another
# library may be handling an error. So the next `lend` finds capsules that were never consumed.
_lent: dict[int, tuple[Any, ...]] = {}
_capsules: dict[int, object] = {}


@_DELETER
def _give_back(address: int) -> None:
    _lent.pop(address, None)


def sweep() -> None:
    """Release the memory of capsules that died without being consumed."""
    for address in list(_capsules):
        capsule = _capsules[address]
        # Three references: the table, the name here, and the call's own argument.
        if sys.getrefcount(capsule) > 3:
            continue
        # A consumed capsule has another name; its consumer calls the deleter.
        if any(_is_valid(id(capsule), name) for name in _NAMES.values()):
            _lent.pop(address, None)
        del _capsules[address]


def lend(memory: Memory, owner: object, *, versioned: bool, read_only: bool = True, is_copied: bool = False) -> Any:
    """A capsule with the memory, which `owner` keeps alive.

    versioned: whether the borrower supports version 1.x, which has the read-only flag
    """
    # At least one item: some consumers reject null pointers for arrays of rank 0.
    sizes = (ctypes.c_int64 * max(1, len(memory.shape)))(*memory.shape)
    strides = (ctypes.c_int64 * max(1, len(memory.shape)))(*memory.strides)
    record = _Versioned() if versioned else _Managed()
    code, bits = _CODES[memory.dtype]
    record.tensor = _Tensor(
        memory.address or None,
        *memory.device,
        len(memory.shape),
        code,
        bits,
        1,
        ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
        ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
        0,
    )
    record.deleter = ctypes.cast(_give_back, ctypes.c_void_p).value
    if isinstance(record, _Versioned):
        record.major, record.minor = VERSION
        record.flags = (_READ_ONLY if read_only else 0) | (_IS_COPIED if is_copied else 0)
    address = ctypes.addressof(record)
    sweep()
    _lent[address] = (record, sizes, strides, owner)
    _capsules[address] = _new(address, _NAMES[type(record)], None)
    return _capsules[address]


# --- borrowing --------------------------------------------------------------------------------


def borrow(capsule: object) -> tuple[Memory, Any]:
    """(memory, loan) of a capsule: the memory may be read as long as the loan is alive.

    Errors: BufferError if the argument is not a capsule, was consumed before, or has an unknown
            dtype.
    """
    identity = id(capsule)
    kind = next((k for k, name in _NAMES.items() if _is_valid(identity, name)), None)
    if kind is None:
        raise BufferError(f"from_dlpack: cannot read {capsule!r} (a fresh DLPack capsule required)")
    address = _pointer(identity, _NAMES[kind])
    record = kind.from_address(address)
    memory = _memory(record.tensor)
    # Only after `_memory`, which may raise: a capsule with this name counts as consumed.
    _rename(identity, _USED[kind])
    loan = _Loan()
    if record.deleter:
        # Not at exit, when the lender may be shut down before us.
        weakref.finalize(loan, _DELETER(record.deleter), address).atexit = False
    return memory, loan


class _Loan:
    """An object whose death returns borrowed memory."""

    __slots__ = ("__weakref__",)


def _memory(tensor: _Tensor) -> Memory:
    dtype = _DTYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise BufferError(
            f"from_dlpack: cannot read elements of type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes"
        )
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    # DLPack 1.1 and before allow a null pointer for dense arrays.
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    else:
        strides = dense_strides(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    return Memory(address, dtype, shape, strides, (tensor.device_type, tensor.device))


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a row-major array, in elements."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


class _View:
    """Memory with NumPy's array interface, which keeps the loan alive."""

    def __init__(self, memory: Memory, loan: object):
        # Raw bytes, because NumPy's array interface has no code for bf16 and other extension
        # dtypes.
        raw = f"|V{memory.dtype.itemsize}"
        self.loan = loan
        self.__array_interface__ = {
            "version": 3,
            "shape": memory.shape,
            "typestr": raw,
            "data": (memory.address, True),
            "strides": tuple(s * memory.dtype.itemsize for s in memory.strides),
        }


def as_numpy(memory: Memory, loan: object) -> np.ndarray:
    """Borrowed host memory as a read-only NumPy array, which keeps the loan alive."""
    # An empty array may have a null address, which NumPy refuses.
    if 0 in memory.shape:
        return np.zeros(memory.shape, memory.dtype)
    return np.asarray(_View(memory, loan)).view(memory.dtype)
