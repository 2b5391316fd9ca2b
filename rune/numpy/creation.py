"""Arrays from nothing or from host data.

Constants are broadcast literals and ranges are iota, so that nothing large is captured when a
function is traced. Without a dtype the result is f32 or i32 (`rune.enable_x64` changes that); a
Python scalar gives a weak rank-0 array, as in JAX. Sizes may be symbolic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.backends import Device
from rune.core.interpreter import literal, type_of
from rune.core.types import Shape
from rune.dims import Dim, Size, maximum
from rune.errors import ArgumentError, RuneError
from rune.numpy.arguments import beside, in_dtype, laid_out, placed, refuse_order, shape_of, type_like, value
from rune.ops import conventions as c
from rune.ops import family
from rune.ops.nested import holds_arrays, shared_dtype, stacked
from rune.ops.operators import Operators
from rune.ops.promote import as_type, broadcast_to, scalar_kind, stands_for_array, unrounded
from rune.ops.scalars import wrapped
from rune.sharding import Mesh
from rune.sharding.shardings import Sharding
from rune.transforms.compile.tiers import tiered
from rune.transforms.sharding.explicit.stage import like
from rune.typing import ArrayLike, DTypeLike, Nested

# --- host data --------------------------------------------------------------------------------


def array(
    object: object,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """An array from nested lists, NumPy data, scalars, arrays or traced values.

    copy: whether an array that is passed gives another one, which outlives its donation.
    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: those of the data, with axes of size 1 in front up to ndmin.
    Types:  32-bit without a dtype; an explicit 64-bit dtype is honoured. In lists, Python numbers
            take the dtype of the NumPy data and arrays beside them.
    Errors: OverflowError for a Python integer out of range; ArgumentError for ragged lists.

    >>> import rune.numpy as rnp
    >>> rnp.array([[1, 2], [3, 4]], dtype="bf16")
    Array([[1, 2],
           [3, 4]], bf16[2,2], cpu:0)
    """
    refuse_order("array", order)
    out = from_object(object, None if dtype is None else dtypes.as_dtype(dtype))
    out = c.distinct(out, object) if copy else out
    missing = ndmin - type_of(out).ndim
    out = out if missing <= 0 else c.expand_dims(out, tuple(range(missing)))
    return laid_out(placed(out, device), out_sharding)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """`array`, except that arrays pass through.

    Data that another library exports by DLPack are copied.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: those of the data. Types: as `array`; an array keeps its own unless dtype is given.
    Errors: ArgumentError for copy=False where data has to be copied.

    >>> import rune.numpy as rnp
    >>> rnp.asarray([1, 2])
    Array([1, 2], i32[2], cpu:0)
    """
    if copy is False and not _is_kept(a, dtype):
        raise ArgumentError(f"asarray: cannot keep copy=False ({type(a).__name__} is copied)")
    return laid_out(array(a, dtype, bool(copy), order, device=device), out_sharding)


def copy(a: Nested, order: str | None = None) -> Array:
    """Another array with the contents of `a`, which outlives the donation of `a`.

    Shapes: any, unchanged. Types: that of `a`.
    Errors: DtypeError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.copy(rnp.arange(2))
    Array([0, 1], i32[2], cpu:0)
    """
    return asarray(a, order=order, copy=True)


def asanyarray(a: Nested, dtype: DTypeLike | None = None, order: str | None = None) -> Array:
    """`asarray`: there is one class of arrays.

    Shapes: those of the data. Types: as `asarray`.
    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.asanyarray([1, 2])
    Array([1, 2], i32[2], cpu:0)
    """
    return asarray(a, dtype, order)


def asarray_chkfinite(a: Nested, dtype: DTypeLike | None = None, order: str | None = None) -> Array:
    """`asarray`, with a check that all data are finite.

    Shapes: those of the data. Types: as `asarray`.
    Errors: ArgumentError for NaN or infinity; TracerArrayConversionError for a traced array.

    >>> import rune.numpy as rnp
    >>> rnp.asarray_chkfinite([1.0])
    Array([1.], f32[1], cpu:0)
    """
    out = asarray(a, dtype, order)
    if type_of(out).dtype in dtypes.INEXACT and not np.all(np.isfinite(np.asarray(out))):
        raise ArgumentError(f"asarray_chkfinite: cannot take {type_of(out)} (NaN or infinite)")
    return out


def _is_kept(a: ArrayLike, dtype: DTypeLike | None) -> bool:
    """Whether `a` is already an array of that dtype."""
    is_array = isinstance(a, Operators)
    return is_array and (dtype is None or dtypes.as_dtype(dtype) == type_of(a).dtype)


def from_object(x: object, dtype: np.dtype | None) -> Any:
    """`array` of any data, with no other option."""
    if isinstance(x, Operators):
        return x if dtype is None else c.converted(x, dtype)
    scalar = dtypes.scalar_type(x)
    if scalar is not None:
        return as_array(x, dtype or scalar[0], scalar[1] and dtype is None)
    if isinstance(x, list | tuple):
        return _from_sequence(x, dtype)
    if isinstance(x, Dim) and dtype is not None:
        return as_type(x, dtype)
    if isinstance(x, Dim) or stands_for_array(x):
        out = value("array", x)
        return out if dtype is None else c.converted(out, dtype)
    return as_array(x, dtype)


def _from_sequence(x: list | tuple, dtype: np.dtype | None) -> Array:
    dtype = dtype or shared_dtype(x)
    if not holds_arrays(x):
        try:
            return as_array(x, dtype)
        except RuneError:  # a DtypeError explains itself
            raise
        except ValueError as error:
            raise ArgumentError(f"array: cannot make an array of ragged lists ({error})") from None
    rows = stacked("array", [from_object(row, dtype) for row in x])
    return ops.convert(rows, dtype=type_of(rows).dtype)


# --- constants --------------------------------------------------------------------------------


def _filled(shape: Shape, fill: ArrayLike, dtype: DTypeLike | None) -> Array:
    fill_dtype, weak = scalar_kind(fill) if dtype is None else (dtypes.as_dtype(dtype), False)
    # For keys, the fill value becomes each of their words.
    fill = literal(fill, fill_dtype) if fill_dtype in dtypes.KEYS else as_type(fill, fill_dtype, weak, "full")
    return ops.broadcast(fill, shape=shape, axes=())


def zeros(
    shape: object,
    dtype: DTypeLike | None = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Zeros.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: (N, M, …) -> [N, M, …], an integer N -> [N]. Types: f32 unless dtype is given.
    Errors: ArgumentError for a size that is not an integer; ShapeError for a negative one;
            DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.zeros((2,), int)
    Array([0, 0], i32[2], cpu:0)
    """
    out = _filled(shape_of("zeros", shape), 0, dtype or dtypes.canonical(dtypes.f64))
    return laid_out(placed(out, device), out_sharding)


def ones(
    shape: int | Shape,
    dtype: DTypeLike | None = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Ones.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: as `zeros`. Types: f32 unless dtype is given.
    Errors: ArgumentError if `shape` is not an integer; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.ones(2)
    Array([1., 1.], f32[2], cpu:0)
    """
    out = _filled(shape_of("ones", shape), 1, dtype or dtypes.canonical(dtypes.f64))
    return laid_out(placed(out, device), out_sharding)


def empty(
    shape: int | Shape,
    dtype: DTypeLike | None = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Zeros: memory is never left undefined.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: as `zeros`. Types: f32 unless dtype is given.
    Errors: ArgumentError if `shape` is not an integer; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.empty(2)
    Array([0., 0.], f32[2], cpu:0)
    """
    return laid_out(zeros(shape, dtype, device=device), out_sharding)


def full(
    shape: int | Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """An array filled with `fill_value`, which may be an array that broadcasts to `shape`.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: (N, M, …) -> [N, M, …], an integer N -> [N]; fill_value broadcasts to it.
    Types:  a Python scalar without dtype gives a weak result.
    Errors: ArgumentError if an argument is not an array or `shape` is not an integer; DtypeError
            for complex numbers and an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.full(2, 7, "int8")
    Array([7, 7], i8[2], cpu:0)
    """
    sizes = shape_of("full", shape)
    if dtypes.scalar_type(fill_value) is not None:
        return laid_out(placed(_filled(sizes, fill_value, dtype), device), out_sharding)
    if dtype is None:
        fill = value("full", fill_value)
    else:
        fill = in_dtype("full", fill_value, dtypes.as_dtype(dtype))
    return laid_out(placed(broadcast_to("full", fill, sizes), device), out_sharding)


def _like(
    name: str, x: ArrayLike, fill: ArrayLike, dtype: DTypeLike | None, shape: object, device: str | Device | None
) -> Array:
    type = type_like(name, x)
    sizes = type.shape if shape is None else shape_of(name, shape)
    array = full(sizes, fill, type.dtype if dtype is None else dtype)
    weak = type.weak and dtype is None
    array = ops.convert(array, dtype=type.dtype, weak=True) if weak else array
    if device is not None:
        return placed(array, device)
    return beside(like(array, x) if Mesh.has_explicit and isinstance(x, Array) else array, x)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Zeros of the shape and dtype of `a`, or of those given.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: any, unchanged. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.zeros_like(rnp.ones(2, "int8"))
    Array([0, 0], i8[2], cpu:0)
    """
    return laid_out(_like("zeros_like", a, 0, dtype, shape, device), out_sharding)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Ones of the shape and dtype of `a`, or of those given.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: any, unchanged. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.ones_like(rnp.zeros(2), bool)
    Array([ True,  True], bool[2], cpu:0)
    """
    return laid_out(_like("ones_like", a, 1, dtype, shape, device), out_sharding)


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: str | Device | None = None,
) -> Array:
    """Zeros of the shape and dtype of `prototype`, or of those given.

    Shapes: any, unchanged. Types: that of `prototype`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.empty_like(rnp.ones(2))
    Array([0., 0.], f32[2], cpu:0)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: object = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """An array like `a`, filled with `fill_value`.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: that of `a` unless shape is given. Types: that of `a` unless dtype is given.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.full_like(rnp.zeros(2), 0.5)
    Array([0.5, 0.5], f32[2], cpu:0)
    """
    return laid_out(_like("full_like", a, fill_value, dtype, shape, device), out_sharding)


# --- counting ---------------------------------------------------------------------------------


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: str | Device | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """start, start + step, … below stop; arange(n) counts from 0 to n - 1.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: three scalars -> [ceil((stop - start) / step)].
    Types:  without a dtype, the common one of the arguments: i32 or f32 for Python numbers. Into
            integers, the bounds say how many there are, then start and step are cut to whole
            numbers, as in JAX: arange(0, 2, 0.5, dtype=int) are four zeros.
    Errors: ConcretizationTypeError for traced bounds: the size would depend on data;
            ArgumentError for bools, complex numbers and a step of 0.

    >>> import rune.numpy as rnp
    >>> rnp.arange(3), rnp.arange(1.0, 2.0, 0.5)
    (Array([0, 1, 2], i32[3], cpu:0), Array([1. , 1.5], f32[2], cpu:0))
    """
    kinds = [scalar_kind(unrounded("arange", x)) for x in (start, stop, step) if x is not None]
    out_dtype = dtypes.promote(*kinds)[0] if dtype is None else dtypes.as_dtype(dtype)
    if stop is None:
        start, stop = 0, start
    return laid_out(placed(_arange(start, stop, 1 if step is None else step, out_dtype), device), out_sharding)


def _arange(start: Any, stop: Any, step: Any, out_dtype: np.dtype) -> Array:
    if isinstance(stop, Dim) or isinstance(start, Dim):
        if not isinstance(step, int) or step == 0:
            raise ArgumentError(
                f"arange: cannot count by {step} from {start} to {stop} "
                "(between symbolic sizes, a whole step other than 0 required)"
            )
        count = maximum(0, -((start - stop) // step))
        return _count_to(count, start, step, out_dtype)
    low, high, by = (_concrete(x) for x in (start, stop, step))
    if by == 0 or out_dtype not in dtypes.NUMERIC:
        raise ArgumentError(f"arange: cannot count by {by} in {dtypes.short(out_dtype)}")
    exact = all(isinstance(n, int) for n in (low, high, by))  # also beyond 2**53
    count = max(0, -((low - high) // by) if exact else math.ceil((high - low) / by))
    is_integral = float(low).is_integer() and float(by).is_integer()
    if out_dtype in dtypes.INTEGER or (is_integral and out_dtype.itemsize >= 4):
        return _count_to(count, int(low), int(by), out_dtype)
    return as_array(np.arange(low, high, by)[:count].astype(out_dtype), out_dtype)


def _concrete(x: Any) -> Any:
    """A Python number from a rank-0 argument. Errors: for a traced one."""
    if isinstance(x, int | float):
        return x
    number = unrounded("arange", x)
    number = number if isinstance(number, np.ndarray) else value("arange", x)
    if type_of(number).shape or type_of(number).dtype in dtypes.COMPLEX:
        raise ArgumentError(f"arange: cannot count with {type_of(number)} (real scalar required)")
    return number.__index__() if type_of(number).dtype in dtypes.INTEGER else number.item()


def _count_to(count: Size, start: ArrayLike, step: int, dtype: np.dtype) -> Array:
    counts = ops.iota(shape=(count,), axis=0, dtype=dtype)
    if step != 1:
        by = wrapped(step, dtype) if dtype in dtypes.INTEGER else step  # sums wrap to the correct value
        counts = ops.mul(counts, as_type(by, dtype, name="arange"))
    if isinstance(start, Dim):
        return ops.add(counts, family.size_value(start, dtype))
    return counts if start == 0 else ops.add(counts, as_type(start, dtype, name="arange"))


@tiered
def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Coordinate arrays of the grid spanned by vectors; with `sparse`, broadcastable ones.

    Shapes: xi [N_i] -> each [N_1, N_0, N_2, …] ("xy") or [N_0, N_1, N_2, …] ("ij").
    Types:  each its own.
    Errors: ArgumentError if an argument is not an array or `indexing` is unknown.

    >>> import rune.numpy as rnp
    >>> rnp.meshgrid(rnp.arange(2), rnp.arange(1), indexing="ij")[0]
    Array([[0],
           [1]], i32[2,1], cpu:0)
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: cannot use indexing={indexing!r} ('xy' or 'ij' required)")
    vectors = [c.reshape(value("meshgrid", x), -1) for x in xi]
    n = len(vectors)
    axes = list(range(n))
    if indexing == "xy" and n > 1:
        axes[:2] = [1, 0]
    sizes: list[Any] = [1] * n
    for v, axis in zip(vectors, axes, strict=True):
        sizes[axis] = type_of(v).shape[0]
    spread = [
        ops.reshape(v, shape=tuple(sizes[i] if i == axis else 1 for i in range(n)))
        for v, axis in zip(vectors, axes, strict=True)
    ]
    return spread if sparse else [broadcast_to("meshgrid", v, tuple(sizes)) for v in spread]
