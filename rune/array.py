"""Array: the concrete, immutable array. A type, a buffer, and the device that holds it.

On the CPU the buffer is a NumPy array and is shared with NumPy without a copy (read-only there).
On another device it is what that backend's `alloc` returns, and reading it copies.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from rune import config, dtypes
from rune.backends import Device, device_named
from rune.core.types import ArrayType
from rune.errors import ArgumentError, DeletedArrayError, DtypeError
from rune.ops.operators import Operators
from rune.ops.scalars import convert, int_bounds


class Array(Operators):
    """A concrete array; made by `rune.numpy`, by operations, by jitted functions.

    >>> import rune.numpy as rnp
    >>> rnp.arange(3)
    Array([0, 1, 2], i32[3], cpu:0)
    """

    __slots__ = ("__weakref__", "_buffer", "device", "type")

    def __init__(self, buffer: Any, type: ArrayType, device: Device | None = None):
        self._buffer = buffer
        self.type = type
        self.device = device

    @property
    def buffer(self) -> Any:
        """The backend's buffer. Errors: DeletedArrayError after donation."""
        if self._buffer is None:
            raise DeletedArrayError(
                f"array: cannot read {self.type} (it was donated to a jitted call)",
                hint="use the function's result, or call it without donate_argnums",
            )
        return self._buffer

    def numpy(self) -> np.ndarray:
        """The contents as a NumPy array; a read-only view on the CPU, a copy elsewhere."""
        buffer = self.buffer
        if self.device is None:
            view = buffer.view()
            view.flags.writeable = False
            return view
        return self.device.backend.copy_out(buffer, self.type)

    def rank0(self) -> np.ndarray | None:
        """The contents if rank 0 on the CPU, for literals; else None."""
        return self.buffer if not self.type.shape and self.device is None else None

    @property
    def is_sole_owner(self) -> bool:
        """True if no other array, no view and no NumPy array shares the memory.

        An eager transpose or slice on the CPU is a view, so memory is lent only after this.
        """
        buffer = self.buffer
        if self.device is not None:
            return True
        # Three references: the array's slot, the name here, and the call's own argument.
        return type(buffer.base) is not np.ndarray and sys.getrefcount(buffer) <= 3

    def make_dense(self) -> None:
        """Store a CPU array that is a strided view as a contiguous one; the contents stay."""
        if not self.buffer.flags.c_contiguous:
            self._buffer = np.array(self._buffer, order="C")

    def delete(self) -> None:
        """Give up the buffer; later reads raise DeletedArrayError."""
        self._buffer = None

    @property
    def is_deleted(self) -> bool:
        """True after donation."""
        return self._buffer is None

    def block_until_ready(self) -> Array:
        """Wait for pending work on the array's device; returns the array."""
        if self.device is not None:
            self.device.backend.synchronize()
        return self

    def item(self) -> Any:
        """The single element as a Python scalar."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """Nested Python lists."""
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.numpy()
        if dtype is not None and np.dtype(dtype) != found.dtype:
            return found.astype(dtype)
        return found.copy() if copy else found

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.type.shape or self.type.dtype not in dtypes.INTEGER:
            raise DtypeError(f"index: cannot use {self.type} as an index (rank-0 integer required)")
        return int(self.item())

    def __iter__(self):
        if not self.type.shape:
            raise ArgumentError(f"iter: cannot iterate over {self.type} (rank 0)")
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.type.shape else format(str(self), spec)

    def __str__(self) -> str:
        return str(self.numpy()) if not self.is_deleted else repr(self)

    def __repr__(self) -> str:
        where = self.device.name if self.device is not None else "cpu:0"
        if self.is_deleted:
            return f"Array(<deleted>, {self.type}, {where})"
        body = np.array2string(self.numpy(), separator=", ", prefix="Array(", threshold=200)
        return f"Array({body}, {self.type}, {where})"

    def __deepcopy__(self, memo: Any) -> Array:
        return self

    def __reduce__(self) -> tuple:
        return _unpickle, (np.asarray(self), self.type)


def _unpickle(data: np.ndarray, type: ArrayType) -> Array:
    return Array(data, type)


def as_array(value: Any, dtype: np.dtype | None = None, weak: bool = False) -> Array:
    """A concrete array from host data, on the default device.

    Types:  Python and NumPy values without `dtype` arrive with 32-bit types.
    Errors: OverflowError for a Python integer out of range, DtypeError for what is no number.
    """
    host = np.asarray(value)
    target = dtype or (dtypes.canonical(host.dtype) if host.dtype in dtypes.ANY else None)
    if target is None:
        raise DtypeError(f"array: cannot hold {type(value).__name__} (dtype {host.dtype})")
    if not isinstance(value, np.ndarray | np.generic) and target in dtypes.INTEGER:
        _check_range(host, target)
    if host.dtype in dtypes.FLOATING and target in dtypes.INTEGER:
        host = convert(host, target)
    with np.errstate(all="ignore"):
        data = np.array(host, dtype=target, order="C")
    return put(data, ArrayType(data.shape, target, weak), _requested_device())


def _check_range(host: np.ndarray, target: np.dtype) -> None:
    low, high = int_bounds(target)
    if host.size and host.dtype.kind in "iu" and (host.max() > high or host.min() < low):
        raise OverflowError(
            f"array: cannot hold {host.max() if host.max() > high else host.min()} "
            f"in {dtypes.short(target)}\nhint: give an explicit 64-bit dtype"
        )


def _requested_device() -> Device | None:
    name = config.current().device
    return None if name is None else on(name)


def on(name: str) -> Device | None:
    """The device of that name, None for the CPU, whose buffers are NumPy arrays."""
    device = device_named(name)
    return None if device.target.backend == "cpu" else device


def put(data: np.ndarray, type: ArrayType, device: Device | None) -> Array:
    """An array on `device` (None: the CPU) with the contents of `data`."""
    if device is None:
        return Array(data, type)
    return Array(device.backend.copy_in(np.asarray(data, order="C")), type, device)
