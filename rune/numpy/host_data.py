"""Arrays from and to other data: bytes, text, iterators and files.

Files have NumPy's own formats (.npy, .npz, text), and nothing is pickled. Dtypes that these
formats cannot name (bf16, fp8, int4) are refused, never stored as raw bytes.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np

from rune import dtypes
from rune.array import CPU, Array, as_array, committed_to, on, put
from rune.backends import Device, devices, dlpack
from rune.backends.shared.protocol import SharesMemory
from rune.core.types import ArrayType
from rune.errors import ArgumentError, DeviceError, DtypeError
from rune.numpy.arguments import value
from rune.typing import ArrayLike, DTypeLike


def _host_array(data: np.ndarray, dtype: DTypeLike) -> Array:
    """Host data as an array, in an explicit dtype; without one, 64 bits become 32."""
    return as_array(data, None if dtype is None else dtypes.available(dtypes.named(dtype)))


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """The bytes of a buffer as numbers of a dtype; copied.

    Shapes: bytes -> [N]. Types: f32 unless dtype is given.
    offset, count: bytes to skip in front, and how many numbers (-1: all).
    Errors: ArgumentError when the bytes do not divide into numbers.

    >>> import rune.numpy as rnp
    >>> rnp.frombuffer(b"abc", "uint8")
    Array([97, 98, 99], u8[3], cpu:0)
    """
    kind = dtypes.named(dtype)
    try:
        return _host_array(np.frombuffer(buffer, kind, count, offset), kind)
    except ValueError as error:
        raise ArgumentError(f"frombuffer: cannot read {dtypes.short(kind)} ({error})") from None


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """The numbers of an iterator, the first `count` (-1: all).

    Shapes: N numbers -> [N]. Types: the dtype given.
    Errors: ArgumentError when there are fewer than `count`.

    >>> import rune.numpy as rnp
    >>> rnp.fromiter((i * i for i in range(3)), int)
    Array([0, 1, 4], i32[3], cpu:0)
    """
    kind = dtypes.named(dtype)
    try:
        return _host_array(np.fromiter(iter, kind, count), kind)
    except ValueError as error:
        raise ArgumentError(f"fromiter: cannot read {count} numbers ({error})") from None


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, separated by `sep`.

    Shapes: N numbers -> [N]. Types: f32 unless dtype is given.
    Errors: ArgumentError for text that is not a number.

    >>> import rune.numpy as rnp
    >>> rnp.fromstring("1 2 3", int, sep=" ")
    Array([1, 2, 3], i32[3], cpu:0)
    """
    kind = dtypes.named(dtype)
    if not sep:
        raise ArgumentError("fromstring: cannot split without a separator", hint="use frombuffer")
    try:
        return _host_array(np.fromstring(string, kind, count, sep=sep), kind)
    except (ValueError, DeprecationWarning) as error:
        raise ArgumentError(f"fromstring: cannot read {string!r} ({error})") from None


def fromfile(file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """The numbers of a file, as bytes or (with a separator) as text.

    Shapes: a file -> [N]. Types: f32 unless dtype is given.
    Errors: DtypeError for an unknown dtype; OSError for a file that cannot be read; ArgumentError
            if an argument is not a file.

    >>> import rune.numpy as rnp, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([1, 2]))
    ...     file.flush()
    ...     rnp.fromfile(file.name, "uint8")
    Array([1, 2], u8[2], cpu:0)
    """
    kind = dtypes.named(dtype)
    if not (isinstance(file, str | bytes | os.PathLike) or hasattr(file, "fileno")):
        raise ArgumentError(f"fromfile: cannot read {type(file).__name__} (a file or its name required)")
    return _host_array(np.fromfile(file, kind, count, sep, offset), kind)


def loadtxt(fname: Any, dtype: DTypeLike = float, **options: Any) -> Array:
    """The numbers of a text file by rows; options as for NumPy's function.

    Shapes: N lines of M numbers -> [N, M]; axes of size 1 are removed, down to `ndmin` axes.
    Types:  f32 unless dtype is given.
    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.loadtxt(["1 2", "3 4"])
    Array([[1., 2.],
           [3., 4.]], f32[2,2], cpu:0)
    """
    kind = dtypes.named(dtype)
    return _host_array(np.loadtxt(fname, dtype=kind, **options), kind)


def savetxt(fname: Any, X: ArrayLike, *args: Any, **options: object) -> None:
    """Write a vector or matrix as text; options as for NumPy's function.

    Shapes: X [N], one number per line, or [N, M].
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, io
    >>> file = io.StringIO()
    >>> rnp.savetxt(file, rnp.arange(2), fmt="%d")
    >>> file.getvalue().split()
    ['0', '1']
    """
    np.savetxt(fname, np.asarray(value("savetxt", X)), *args, **options)


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a .npy file.

    allow_pickle: nothing is pickled either way, since there are no arrays of objects.
    Shapes: any, stored. Types: stored.
    Errors: DtypeError for dtypes that the format does not have (bf16, fp8, int4).

    >>> import rune.numpy as rnp, io
    >>> file = io.BytesIO()
    >>> rnp.save(file, rnp.arange(2))
    >>> _ = file.seek(0)
    >>> rnp.load(file)
    Array([0, 1], i32[2], cpu:0)
    """
    np.save(file, _storable("save", arr), allow_pickle=False)


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Write several arrays to one .npz file, under the names given or arr_0, arr_1, ...

    Shapes: any, stored. Types: stored.
    Errors: as `save`.

    >>> import rune.numpy as rnp, io
    >>> file = io.BytesIO()
    >>> rnp.savez(file, rnp.arange(2), w=rnp.ones(1))
    >>> _ = file.seek(0)
    >>> sorted(rnp.load(file))
    ['arr_0', 'w']
    """
    arrays: dict[str, Any] = {k: _storable("savez", x) for k, x in kwds.items()}
    np.savez(file, *(_storable("savez", x) for x in args), **arrays)


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """`savez`, compressed.

    Shapes: any, stored. Types: stored.
    Errors: as `save`.

    >>> import rune.numpy as rnp, io
    >>> file = io.BytesIO()
    >>> rnp.savez_compressed(file, rnp.zeros(10_000))
    >>> len(file.getvalue()) < 10_000
    True
    """
    arrays: dict[str, Any] = {k: _storable("savez_compressed", x) for k, x in kwds.items()}
    np.savez_compressed(file, *(_storable("savez_compressed", x) for x in args), **arrays)


def _storable(name: str, x: ArrayLike) -> np.ndarray:
    host = np.asarray(value(name, x))
    if host.dtype.kind not in "biufc":
        raise DtypeError(
            f"{name}: cannot store {dtypes.short(host.dtype)} (the format has no name for it)",
            hint="store x.astype('f32'), or x.view('u16')",
        )
    return host


# NotImplementedError and RuntimeError: archives of later versions, and encrypted ones.
_DAMAGE = (EOFError, NotImplementedError, RuntimeError, SyntaxError, TokenError, ValueError)
_DAMAGE += (BadZipFile, struct.error, zlib.error)


def load(file: Any, *args: Any, **kwargs: object) -> Any:
    """The array of a .npy file, or a dict of the arrays of a .npz file.

    Shapes: as stored. Types: as stored.
    Errors: OSError for a file that cannot be read; ArgumentError for a damaged file, and for one of
            Python objects: nothing is unpickled.

    >>> import rune.numpy as rnp, io
    >>> file = io.BytesIO()
    >>> rnp.save(file, rnp.ones(2, "f64"))
    >>> _ = file.seek(0)
    >>> rnp.load(file)
    Array([1., 1.], f64[2], cpu:0)
    """
    try:
        data = np.load(file, *args, **{**kwargs, "allow_pickle": False})
        if isinstance(data, np.lib.npyio.NpzFile):
            with data:
                return {name: as_array(data[name], data[name].dtype) for name in data.files}
    except _DAMAGE as error:
        raise ArgumentError(f"load: cannot read {file!r} ({error})") from None
    return as_array(data, data.dtype)


def from_dlpack(x: Any, /, *, device: str | Device | None = None, copy: bool | None = None) -> Array:
    """An array from another library, by DLPack; its memory is shared on the CPU and on CUDA.

    Shapes: any, unchanged. Types: that of `x`.
    x:      anything with __dlpack__ and __dlpack_device__. Its contents must not change afterwards,
            since arrays are immutable.
    device: where the array should be; by default where x is.
    copy:   True always copies, False never.
    Errors: ArgumentError if x has no such methods, or if copy=False would need a copy; DeviceError
            for memory of a device that rune does not have, and for CUDA memory that is not dense.

    >>> import numpy as np, rune.numpy as rnp
    >>> rnp.from_dlpack(np.arange(3, dtype="f4"))
    Array([0., 1., 2.], f32[3], cpu:0)
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise ArgumentError(f"from_dlpack: cannot read {type(x).__name__} (it has no __dlpack__)")
    target = None if device is None else on(device)
    if copy is False and target is not None:
        raise ArgumentError(f"from_dlpack: cannot keep copy=False (a move to {device})")
    if type(x) is Array:
        return x.copy() if device is None else x.to_device(device)
    kind, number = map(int, x.__dlpack_device__())
    if kind == dlpack.CUDA and (owner := _cuda_device(number)) is not None:
        array = _on_cuda(x, owner, bool(copy))
        return array if target is None else array.to_device(target)
    if kind not in (dlpack.CPU, dlpack.CUDA_HOST, dlpack.CUDA_MANAGED):
        raise DeviceError(
            f"from_dlpack: cannot read memory of device {(kind, number)}", hint="copy it to the CPU in its own library"
        )
    host = dlpack.as_numpy(*dlpack.borrow(_capsule(x)))
    host = np.array(host) if copy else host[...]
    place = CPU if device is None else committed_to(target)
    return put(host, ArrayType(host.shape, host.dtype), place)


def _cuda_device(number: int) -> Device | None:
    """The device with this number, if rune has it."""
    return next((d for d in devices() if d.name == f"cuda:{number}"), None)


def _on_cuda(x: Array, device: Device, copy: bool) -> Array:
    """An array of another library on a device, read after the writes of its own stream."""
    backend = device.backend
    assert isinstance(backend, SharesMemory)
    memory, loan = dlpack.borrow(_capsule(x, stream=backend.reader()))
    if not memory.is_dense:
        raise DeviceError(
            f"from_dlpack: cannot read {device.name} where elements are not dense (strides {memory.strides})",
            hint="make it contiguous in its own library",
        )
    kind = ArrayType(memory.shape, memory.dtype)
    buffer = backend.borrow(memory.address, kind, loan)
    return Array(backend.copied(buffer) if copy else buffer, kind, committed_to(device))


def _capsule(x: Array, stream: int | None = None) -> object:
    """A capsule, of version 1 where the library supports it, for a stream that will wait for it."""
    try:
        return x.__dlpack__(stream=stream, max_version=dlpack.VERSION)
    except TypeError:
        return x.__dlpack__() if stream is None else x.__dlpack__(stream=stream)


__all__ = ["from_dlpack", "frombuffer", "fromfile", "fromiter", "fromstring", "load", "loadtxt", "save", "savetxt"]
__all__ += ["savez", "savez_compressed"]
