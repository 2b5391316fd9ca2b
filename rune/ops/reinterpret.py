"""The same bits under another dtype: `x.view(dtype)`.

Between dtypes of equal width this is one bitcast. Otherwise the last axis is split, or its elements
are joined in pairs, the least significant part first, as on the little-endian machines that rune
runs on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.errors import DtypeError, ShapeError
from rune.ops import arithmetic as a
from rune.ops import complex_numbers as cn
from rune.ops.family import reshape
from rune.ops.movement import concatenate, slice_
from rune.ops.promote import constant

if TYPE_CHECKING:
    from rune.array import Array

_WHOLE = {1: dtypes.u8, 2: dtypes.u16, 4: dtypes.u32, 8: dtypes.u64}


def view(x: Value, dtype: np.dtype) -> Any:
    """The bits of x read as `dtype`.

    Shapes: [*B, N] -> [*B, N width / new width].
    Types:  a bool is a byte 0 or 1, and any byte but 0 is read as True.
    Errors: DtypeError for int4; ShapeError if there is no last axis, or the widths do not divide
            it.
    """
    current = type_of(x).dtype
    if current == dtype:
        return x
    if {current, dtype} & {dtypes.i4, dtypes.u4}:
        raise DtypeError(f"view: cannot read {type_of(x)} as {dtypes.short(dtype)}")
    if dtypes.bool_ in (current, dtype):
        return _of_bool(x, dtype)
    is_complex = dtype in dtypes.COMPLEX or current in dtypes.COMPLEX
    if not is_complex and current.itemsize == dtype.itemsize:
        return a.bitcast(x, dtype=dtype)
    _require_axis(x, dtype)
    if is_complex:
        return _complex(x, dtype)
    return (_narrower if current.itemsize > dtype.itemsize else _wider)(x, dtype)


def _require_axis(x: Value, dtype: np.dtype) -> None:
    """Errors: ShapeError unless the elements of a last axis can be joined without a remainder."""
    shape, count = type_of(x).shape, dtype.itemsize // type_of(x).dtype.itemsize
    if not shape or (count > 1 and shape[-1] % count != 0):
        requirement = f"a last axis of a multiple of {count} elements" if count > 1 else "a last axis"
        raise ShapeError(f"view: cannot read {type_of(x)} as {dtypes.short(dtype)} ({requirement} required)")


def _of_bool(x: Value, dtype: np.dtype) -> Value:
    """A bool is a byte 0 or 1. Any byte but 0 is read as True, as by NumPy."""
    if type_of(x).dtype.itemsize != dtype.itemsize:
        _require_axis(x, dtype)
    if type_of(x).dtype == dtypes.bool_:
        return view(a.cast(x, dtypes.u8), dtype)
    byte = view(x, dtypes.u8)
    return a.ne(byte, constant(0, byte))


def _complex(x: Value, dtype: np.dtype) -> Value:
    """A complex number is its real part followed by its imaginary part."""
    current = type_of(x).dtype
    if current in dtypes.COMPLEX:
        return view(_joined([cn.real(x), cn.imag(x)]), dtype)
    pairs = _split(view(x, cn.PART[dtype]), 2)
    return cn.complex(*pairs)


def _narrower(x: Value, dtype: np.dtype) -> Value:
    wide = _WHOLE[type_of(x).dtype.itemsize]
    narrow = _WHOLE[dtype.itemsize]
    bits = view(x, wide)
    steps = range(0, 8 * wide.itemsize, 8 * narrow.itemsize)
    mask = constant((1 << 8 * narrow.itemsize) - 1, bits)
    parts = [a.cast(a.logical_and(a.shr(bits, constant(s, bits)), mask), narrow) for s in steps]
    return view(_joined(parts), dtype)


def _wider(x: Value, dtype: np.dtype) -> Value:
    narrow = _WHOLE[type_of(x).dtype.itemsize]
    wide = _WHOLE[dtype.itemsize]
    parts = _split(view(x, narrow), wide.itemsize // narrow.itemsize)
    bits = a.cast(parts[0], wide)
    for number, part in enumerate(parts[1:], 1):
        shift = constant(8 * narrow.itemsize * number, bits)
        bits = a.logical_or(bits, a.shl(a.cast(part, wide), shift))
    return view(bits, dtype)


def _joined(parts: Sequence[Value]) -> Array:
    """Parts of equal shape interleaved along the last axis."""
    shape = type_of(parts[0]).shape
    columns = [reshape(p, shape=(*shape, 1)) for p in parts]
    return reshape(concatenate(*columns, axis=len(shape)), shape=(*shape[:-1], shape[-1] * len(parts)))


def _split(x: Value, count: int) -> list[Array]:
    """Every count-th element of the last axis, from the first, the second and so on."""
    shape = type_of(x).shape
    zeros, ones = (0,) * (len(shape) - 1), (1,) * (len(shape) - 1)
    return [
        slice_(x, start=(*zeros, k), limit=shape, stride=(*ones, count))
        if shape[-1]
        else reshape(x, shape=(*shape[:-1], 0))
        for k in range(count)
    ]
