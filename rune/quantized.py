"""Quantised arrays: numbers in 8 or 4 bits with scales, and products that read them directly.

    x  ≈  (values - zero) · scale          one scale for all, for each channel, or for each group

`Quantized` is a tree of arrays, so it goes through jit, grad and vmap like any parameters. Programs
compute with the stored numbers: a product `x @ q` converts them as the dot loads them, and for up
to 8 rows of x it never stores the weights as floats. For more rows it may be cheaper to unpack them
once, because a library on the CPU takes floats (lowering/kernelize/cost.py).

Two 4-bit integers share a byte, along `axis`, the even element in the low half. Numbers are rounded
to nearest even, and clipped to the range, even in 8-bit floats: none becomes NaN.
Derivatives exist for activations and scales; rounding has none.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops, tree
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.core.values import Value
from rune.dims import Size, bounds
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.ops import conventions as c
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.array import Array
    from rune.typing import ArrayLike, DTypeLike

FORMATS = (dtypes.i8, dtypes.i4, dtypes.f8_e4m3, dtypes.f8_e5m2)


@dataclass(frozen=True, slots=True)
class Quantized:
    """An array that is stored in few bits, made by `rune.quantize`.

    values:  i8 or f8; in the format i4, two numbers to a byte along `axis`
    scale:   rank 0, or one element for each group along `axis`, in f32
    zero:    the stored number that represents 0, shaped like the scale; None: 0 itself
    format:  the dtype of the stored numbers;  dtype: the dtype of the array they represent
    axis:    the axis of groups and packing, counted from the end;  size: its elements if packed

    >>> import rune, rune.numpy as rnp
    >>> q = rune.quantize(rnp.ones((4, 8)), "int8")
    >>> q.shape, q.format, q.dtype
    ((4, 8), dtype('int8'), dtype('float32'))
    """

    values: Any
    scale: Any
    zero: Any
    format: np.dtype
    axis: int
    size: int
    dtype: np.dtype

    @property
    def shape(self) -> Shape:
        """The shape of the array that this represents."""
        shape = list(type_of(self.values).shape)
        if self.format == dtypes.i4:
            shape[self.axis] = self.size
        return tuple(shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The total size of values, scales and zeros in bytes."""
        return sum(x.nbytes for x in (self.values, self.scale, self.zero) if x is not None)

    @property
    def bits_per_element(self) -> float:
        """The bits per element, including scales and zeros.

        >>> import rune, rune.numpy as rnp
        >>> rune.quantize(rnp.ones((64, 8)), "int4", axis=0, group=32).bits_per_element
        5.0
        """
        return 8 * self.nbytes / math.prod(map(int, self.shape))

    @property
    def mT(self) -> Quantized:
        """The array with its last two axes swapped. Errors: ShapeError below rank 2."""
        parts = (self.values, self.scale, self.zero)
        values, scale, zero = (x if x is None or not type_of(x).shape else rnp.matrix_transpose(x) for x in parts)
        axis = {-1: -2, -2: -1}.get(self.axis, self.axis)
        return replace(self, values=values, scale=scale, zero=zero, axis=axis)

    def __matmul__(self, other: ArrayLike | Quantized) -> Array:
        return matmul(self, other)

    def __rmatmul__(self, other: ArrayLike | Quantized) -> Array:
        return matmul(other, self)


tree.register_dataclass(Quantized, ["values", "scale", "zero"], ["format", "axis", "size", "dtype"])


# --- to few bits ------------------------------------------------------------------------------


def quantize(
    x: Value, dtype: DTypeLike = "int8", *, axis: int | None = None, group: int | None = None, symmetric: bool = True
) -> Quantized:
    """`x` in `dtype`, with scales that map the largest magnitude to the end of its range.

    dtype:      int8, int4, f8_e4m3 or f8_e5m2.
    axis:       the axis along which elements share a scale: for a weight [K, N] that is contracted
                over K, axis=0 gives one scale for each of the N channels. None: one scale for all.
    group:      how many elements along `axis` share a scale; None: all of them.
    symmetric:  store 0 as 0. Otherwise a zero point maps the smallest and the largest element to
                the ends of the range; integers only.
    Types:      x floating. A NaN makes its scale NaN, and so all elements that share the scale.
    Errors:     DtypeError, ShapeError if `group` does not divide the axis, ArgumentError.
    Source:     B. Jacob et al. 2018, arXiv:1712.05877 (affine quantisation).

    >>> import rune, rune.numpy as rnp
    >>> q = rune.quantize(rnp.array([0.5, -1.0, 0.25], "f16"))
    >>> q.values, rune.dequantize(q)
    (Array([  64, -127,   32], i8[3], cpu:0), Array([ 0.504, -1.   ,  0.252], f16[3], cpu:0))
    """
    x, format = rnp.asarray(x), dtypes.as_dtype(dtype)
    _check(x, format, group, axis, symmetric)
    at = None if axis is None else c.normalised_axis("quantize", axis, type_of(x)) - x.ndim
    wide = rnp.astype(x, "f32")
    groups = wide if at is None else _grouped(wide, at, group)
    scale, zero = _scales(groups, at, format, symmetric)
    numbers = groups / scale if zero is None else groups / scale + zero
    values = rnp.reshape(_rounded(numbers, format), x.shape)
    parameters = [s if s is None or at is None else rnp.squeeze(s, at) for s in (scale, zero)]
    along = at if at is not None else -min(2, max(1, x.ndim))
    result = Quantized(values, parameters[0], parameters[1], format, along, 0, x.dtype)
    if format != dtypes.i4:
        return result
    return replace(result, values=_packed(values, along), size=x.shape[along])


def _check(x: Array, format: np.dtype, group: int | None, axis: int | None, symmetric: bool) -> None:
    if x.dtype not in dtypes.FLOATING:
        raise DtypeError(f"quantize: cannot quantise {type_of(x)} (floating dtype required)")
    if format not in FORMATS:
        known = ", ".join(map(dtypes.short, FORMATS))
        raise DtypeError(
            f"quantize: cannot store {dtypes.short(format)} (one of {known})",
            hint='integers of 4 and 8 bits are "int4" and "int8"; "i4" and "i8" count bytes',
        )
    if not symmetric and format in dtypes.FLOATING:
        raise DtypeError(f"quantize: cannot give {dtypes.short(format)} a zero point (only integer formats have one)")
    if group is not None and axis is None:
        raise ArgumentError("quantize: cannot form groups without an axis (axis= required)")
    if format == dtypes.i4 and not x.shape:
        raise ShapeError(f"quantize: cannot pack {type_of(x)} (rank 1 required)")


def _grouped(x: Array, axis: int, group: int | None) -> Array:
    """Split `axis` into two: groups, and at `axis` the elements of a group."""
    size = x.shape[axis]
    length = size if group is None else group
    if length < 1 or size % length:
        raise ShapeError(f"quantize: cannot divide axis {axis} of {type_of(x)} by {length}")
    place = x.ndim + axis
    return rnp.reshape(x, (*x.shape[:place], size // length, length, *x.shape[place + 1 :]))


def _scales(x: Array, axis: int | None, format: np.dtype, symmetric: bool) -> tuple[Any, Any]:
    """The scale and zero point of each group; the reduced axis stays with size 1."""
    keep = axis is not None
    if symmetric:
        most = rnp.max(rnp.abs(x), axis=axis, keepdims=keep)
        scale = most / float(_limits(format)[1])
        return rnp.where(scale == 0, 1.0, scale), None
    low, high = _limits(format)
    least = rnp.minimum(rnp.min(x, axis=axis, keepdims=keep), 0)
    most = rnp.maximum(rnp.max(x, axis=axis, keepdims=keep), 0)
    scale = (most / 2 - least / 2) / (float(high - low) / 2)  # the span of large numbers of both signs is infinite
    scale = rnp.where(scale == 0, 1.0, scale)
    return scale, rnp.clip(rnp.round(low - least / scale), low, high)


def _limits(format: np.dtype) -> tuple[float, float]:
    if format in dtypes.FLOATING:
        most = float(rnp.finfo(format).max)
        return -most, most
    info = rnp.iinfo(format)
    return info.min, info.max


def _rounded(x: Array, format: np.dtype) -> Array:
    """The numbers rounded and clipped to the range; 4-bit ones still take a byte each."""
    low, high = _limits(format)
    within = rnp.clip(x, low, high)
    if format in dtypes.FLOATING:
        return rnp.astype(within, format)
    return rnp.astype(rnp.round(within), dtypes.i8)


def _packed(values: Array, axis: int) -> Array:
    """Pairs of 4-bit numbers in one byte, the even one in the low half; pads an odd end with 0."""
    size = values.shape[axis]
    if size % 2:
        widths = [(0, 0)] * values.ndim
        widths[axis] = (0, 1)
        values = rnp.pad(values, widths)
    place = values.ndim + axis
    shape = (*values.shape[:place], -(-size // 2), 2, *values.shape[place + 1 :])
    halves = rnp.reshape(rnp.astype(values, dtypes.u8) & 15, shape)
    low, high = (rnp.take(halves, k, axis=place + 1) for k in (0, 1))
    return ops.bitcast(low | (high << 4), dtype=dtypes.i8)


# --- and back ---------------------------------------------------------------------------------


def dequantize(q: Quantized) -> Array:
    """The array that `q` represents, in the dtype that was quantised.

    Errors: ArgumentError for anything but a result of `quantize`.

    >>> import rune, rune.numpy as rnp
    >>> rune.dequantize(rune.quantize(rnp.array([7.0, -3.0, 1.0]), "int4"))
    Array([ 7., -3.,  1.], f32[3], cpu:0)
    """
    if not isinstance(q, Quantized):
        raise ArgumentError(f"dequantize: cannot use {type(q).__name__} (a result of rune.quantize required)")
    numbers = _shifted(q)
    return rnp.astype(numbers * _spread(q.scale, q), q.dtype)


def _shifted(q: Quantized) -> Array:
    """The stored numbers minus the zero point, in f32."""
    numbers = rnp.astype(_unpacked(q), "f32")
    return numbers if q.zero is None else numbers - _spread(q.zero, q)


def _unpacked(q: Quantized) -> Array:
    """The stored numbers, each as an element of its own."""
    if q.format != dtypes.i4:
        return q.values
    shape, place = list(q.values.shape), q.ndim + q.axis
    pairs = rnp.expand_dims(q.values, place + 1)
    pairs = rnp.broadcast_to(pairs, (*shape[: place + 1], 2, *shape[place + 1 :]))
    # Shift the even number up by 4 bits, the odd one by 0; shifting down by 4 then extends the
    # signs. The shift counts [4, 0] are a strided iota, so that they cost nothing in a kernel.
    shift_counts = ops.iota(shape=(5,), axis=0, dtype=dtypes.i8)[::-4]
    up = ops.broadcast(shift_counts, shape=pairs.shape, axes=(place + 1,))
    shape[place] *= 2
    numbers = rnp.reshape((pairs << up) >> 4, shape)
    return numbers[(slice(None),) * place + (slice(q.size),)] if shape[place] != q.size else numbers


def _spread(scale: Array, q: Quantized) -> Array:
    """The scales, repeated for each element of the axis, or one for all."""
    if not type_of(scale).shape:
        return scale
    place = q.ndim + q.axis
    count, size = scale.shape[place], q.shape[place]
    if count == 1:
        return scale
    shape = (*scale.shape[:place], count, size // count, *scale.shape[place + 1 :])
    spread = rnp.broadcast_to(rnp.expand_dims(scale, place + 1), shape)
    return rnp.reshape(spread, (*scale.shape[:place], size, *scale.shape[place + 1 :]))


# --- products ---------------------------------------------------------------------------------


def matmul(x: Any, y: Any) -> Array:
    """The matrix product of arrays, one or both quantised; the operators are `x @ q` and `q @ y`.

    Shapes: [*B, M, K] @ [K, N] -> [*B, M, N]; a quantised operand has at least rank 2.
    Types:  the dtype of the operand that is not quantised, else that of the first.
            Sums are in f32, or exact in i32: those of two i8 arrays without zero points, as
            long as they cannot exceed it (fewer than 131,072 products).
    Scales that are constant along K multiply the result; others multiply the loaded numbers.

    >>> import rune, rune.numpy as rnp
    >>> q = rune.quantize(rnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    >>> rnp.array([1.0, 1.0]) @ q
    Array([3.992126, 6.015748], f32[2], cpu:0)
    """
    result_dtype = _result_dtype(x, y)
    lhs, outer_lhs = _side(x, -1, _rank(y))
    rhs, outer_rhs = _side(y, -2, _rank(x))
    exact = lhs.dtype == rhs.dtype == dtypes.i8 and _sums_fit(lhs.shape[-1])
    into = dtypes.i32 if exact else dtypes.f32
    out = rnp.astype(rnp.matmul(rnp.astype(lhs, into), rnp.astype(rhs, into)), "f32")
    for scale in (outer_lhs, outer_rhs):
        out = out if scale is None else out * scale
    return rnp.astype(out, result_dtype)


def _sums_fit(count: Size) -> bool:
    """Whether i32 holds any sum of `count` products of two i8 numbers, which are at most 2**14."""
    most = bounds(count)[1]
    return most is not None and most < 2**17


def _result_dtype(x: Any, y: Value) -> np.dtype:
    plain = [type_of(v).dtype for v in (x, y) if not isinstance(v, Quantized)]
    if any(d not in dtypes.FLOATING for d in plain):
        names = ", ".join(map(dtypes.short, plain))
        raise DtypeError(f"matmul: cannot multiply {names} by quantised numbers (floats required)")
    return plain[0] if plain else x.dtype


def _rank(x: Value) -> int:
    return x.ndim if isinstance(x, Quantized) else type_of(x).ndim


def _side(x: Value, contraction_axis: int, other: int) -> tuple[Any, Any]:
    """(the factor, the scale of the result or None); `other` is the rank of the other factor."""
    if not isinstance(x, Quantized):
        return rnp.asarray(x), None
    if x.ndim < 2:
        raise ShapeError(f"matmul: cannot multiply quantised numbers of rank {x.ndim} (2 required)")
    if _varies_along(x, contraction_axis):
        return rnp.astype(dequantize(x), "f32"), None
    scale, numbers = x.scale, _unpacked(x)
    if type_of(scale).shape and other == 1:
        scale = rnp.squeeze(scale, contraction_axis)  # the product has no such axis
    return (numbers if x.zero is None else _shifted(x)), scale


def _varies_along(q: Quantized, axis: int) -> bool:
    """Whether the scale or zero point varies along an axis that a product contracts."""
    shape = type_of(q.scale).shape
    return bool(shape) and shape[axis] != 1
