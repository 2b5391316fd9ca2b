"""Conversion and checks of arguments, shared by all functions of rune.numpy.

Arrays, tracers, NumPy data and Python scalars count as arrays. As in JAX, lists do not, since they
hide a copy; only `array` accepts them. NumPy arguments that make no sense for immutable arrays are
refused by name. Sizes and axes must be Python integers, since shapes are known while tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set, Sized
from math import prod
from typing import Any, TypeGuard, TypeVar

import numpy as np

from rune import dtypes
from rune.array import Array, as_array
from rune.backends import Device
from rune.backends.shared.host_memory import machine_bytes
from rune.core.interpreter import Tracer, type_of
from rune.core.no_sharding import is_unsaid
from rune.core.partition_spec import PartitionSpec
from rune.core.types import ArrayType, Shape
from rune.dims import Dim, Size
from rune.errors import ArgumentError, DtypeError, OutOfMemory, ShapeError, TracerArrayConversionError
from rune.ops.arithmetic import convert
from rune.ops.conventions import astype, entries, normalised_axis, reshape, same_dtype
from rune.ops.operators import Operators
from rune.ops.promote import operand, promoted, unrounded
from rune.sharding.context import unchecked
from rune.sharding.shardings import NamedSharding, Sharding
from rune.transforms.compile.placement import destinations, device_put, put_each
from rune.transforms.eval_shape import described
from rune.typing import ArrayLike

X = TypeVar("X")  # an array, or a tree of arrays


def value(name: str, x: Any) -> Any:
    """`x` as an array or tracer; a Python scalar or symbolic size stays weak.

    Errors: ArgumentError for a list or anything else that is not an array.
    """
    if isinstance(x, Operators | Tracer):
        return x
    scalar = dtypes.scalar_type(x)
    if scalar is not None:
        return as_array(x, *scalar)
    operand_value = operand(name, x)
    return as_array(operand_value) if isinstance(operand_value, np.ndarray) else operand_value


def type_like(name: str, x: object) -> ArrayType:
    """The type of an array, or of an object with only a shape and a dtype, which is never weak.

    Errors: ArgumentError for anything else.
    """
    if isinstance(x, Operators | Tracer):
        return type_of(x)
    type = described(x)
    return type_of(value(name, x)) if type is None else type.strong()


def values(name: str, xs: object) -> list[Array]:
    """A sequence of arrays, or an array's slices along its first axis, as a list of arrays."""
    return [value(name, x) for x in members(name, xs)]


def members(name: str, xs: object) -> list[Array]:
    """A sequence of arrays, or an array's slices along its first axis, as a list."""
    if isinstance(xs, Operators | np.ndarray):
        xs = list(value(name, xs))
    if not _is_collection(xs):
        raise ArgumentError(f"{name}: cannot take {type(xs).__name__} (sequence of arrays required)")
    arrays: list[Array] = list(xs)
    if not arrays:
        raise ArgumentError(f"{name}: cannot take no arrays (at least one required)")
    return arrays


def _is_collection(xs: object) -> TypeGuard[Iterable[Array]]:
    """Whether `xs` has ordered members; classes that only define `len` and indexing count too."""
    is_ordered = isinstance(xs, Iterable) or hasattr(type(xs), "__getitem__")
    return isinstance(xs, Sized) and is_ordered and not isinstance(xs, str | bytes | Mapping | Set)


def together(name: str, *xs: ArrayLike) -> list[Array]:
    """Arrays in their common promoted dtype; shapes are not changed.

    A number is rounded once, to that dtype: 1/3 with an f64 array keeps the digits that `value`
    would lose.
    Errors: ArgumentError if an argument is not an array; DtypeError where no promotion exists.
    """
    operands = same_dtype(name, *xs)
    return [as_array(x, x.dtype) if isinstance(x, np.ndarray) else value(name, x) for x in operands]


def in_dtype(name: str, x: ArrayLike, dtype: np.dtype) -> Array:
    """`x` as an array of a dtype, to which numbers and NumPy data are rounded once.

    Errors: ArgumentError if an argument is not an array.
    """
    exact = unrounded(name, x)
    return as_array(exact, dtype) if is_on_host(exact) else astype(value(name, exact), dtype)


def is_on_host(x: ArrayLike) -> bool:
    """Whether `x` is a Python number or NumPy data."""
    return dtypes.scalar_type(x) is not None or isinstance(x, np.ndarray | np.generic)


def inexact(name: str, x: ArrayLike) -> Any:
    """`x` in an inexact dtype: integers and bools become f32 (64-bit ones f64)."""
    x_type = getattr(x, "type", None)
    if isinstance(x_type, ArrayType) and x_type.dtype in dtypes.FLOATING:
        return x
    return promoted(name, x, kind="inexact")[0]


def default_inexact(name: str, x: ArrayLike) -> Array:
    """`x` in an inexact dtype, bools and integers in the default one: f64 under x64."""
    number, wide = inexact(name, x), dtypes.canonical(dtypes.f64)
    is_whole = type_of(value(name, x)).dtype not in dtypes.INEXACT
    return convert(number, dtype=wide) if is_whole and wide == dtypes.f64 else number


def floating(name: str, x: ArrayLike) -> Any:
    """`x` as a real array, with integers and bools as floats.

    Errors: DtypeError for complex numbers.
    """
    number = inexact(name, x)
    if type_of(number).dtype in dtypes.COMPLEX:
        raise DtypeError(f"{name}: cannot take {type_of(number)} (real dtype required)")
    return number


def refuse(name: str, **arguments: object) -> None:
    """Errors: ArgumentError when one of these arguments is given (is not None)."""
    for argument, argument_value in arguments.items():
        if argument_value is not None:
            raise ArgumentError(
                f"{name}: cannot use {argument}= (given {type(argument_value).__name__})",
                hint="arrays are immutable and laid out by the compiler; use the result instead",
            )


def refuse_order(name: str, order: str | None) -> None:
    """Errors: ArgumentError for any memory order other than row-major."""
    if order not in (None, "K", "C"):
        refuse(name, order=order)


def static_int(name: str, parameter: str, x: Any) -> int:
    """A Python integer. Errors: ArgumentError; TracerIntegerConversionError for a tracer."""
    try:
        return x.__index__()
    except AttributeError:
        raise ArgumentError(f"{name}: cannot use {x!r} as {parameter} (integer required)") from None


def static_count(name: str, parameter: str, x: object) -> int:
    """A Python integer that counts numbers, rows or steps, for which the machine has room.

    Errors: ArgumentError if it is not an integer or is negative; OutOfMemory beyond the room.
    """
    count = static_int(name, parameter, x)
    if count < 0:
        raise ArgumentError(f"{name}: cannot use {count} as {parameter} (at least 0)")
    require_room(name, count)
    return count


def require_room(name: str, *shape: Size) -> None:
    """Errors: OutOfMemory where the machine has no room for 64-bit numbers of this shape.

    Computations in Python or NumPy check this first, since they would otherwise run almost forever.
    """
    byte_count, limit = 8 * prod(d for d in shape if isinstance(d, int)), machine_bytes() or _ADDRESSES
    if byte_count > limit:
        size_text = f"{byte_count} B" if byte_count.bit_length() <= 64 else "more than any machine has"
        raise OutOfMemory(f"{name}: cannot allocate numbers of this size on the CPU ({size_text}, limit {limit} B)")


_ADDRESSES = 1 << 47  # the most bytes that a process can address


def static_size(name: str, parameter: str, x: Size) -> Size:
    """A Python integer; symbolic sizes pass through. Errors: as static_int."""
    return x if isinstance(x, Dim) else static_int(name, parameter, x)


def shape_of(name: str, shape: Any) -> Shape:
    """A shape from an integer or a sequence of integers; symbolic sizes pass through.

    Errors: ShapeError for a negative size, ArgumentError if an argument is not an integer.
    """
    sizes = static_sizes(name, "a size", shape)
    if any(s < 0 for s in sizes):
        raise ShapeError(f"{name}: cannot make the shape {sizes} (a size is negative)")
    return sizes


def static_ints(name: str, parameter: str, xs: object) -> tuple[int, ...]:
    """A tuple of Python integers from an integer, a sequence or a concrete array."""
    return tuple(static_int(name, parameter, x) for x in entries(xs))


def static_sizes(name: str, parameter: str, xs: object) -> tuple[Size, ...]:
    """Like `static_ints`; symbolic sizes pass through."""
    return tuple(static_size(name, parameter, x) for x in entries(xs))


def listed(name: str, parameter: str, xs: Any) -> list[Any]:
    """The members of a sequence, of any type. Errors: ArgumentError if it is not iterable."""
    try:
        return list(xs)
    except TypeError:
        raise ArgumentError(f"{name}: cannot use {parameter}={xs!r} (a sequence required)") from None


def placed(x: Array, device: str | Device | None) -> Array:
    """`x` on a device and committed to it; unchanged for None. Errors: DeviceError."""
    return x if device is None else device_put(x, device)


def laid_out(x: X, sharding: Sharding | None) -> X:
    """`x` laid out on the devices of a mesh; unchanged for None. Errors: ShapeError."""
    if is_unsaid(sharding):
        return x
    return put_each("out_sharding", "", x, destinations("out_sharding", "out_sharding", sharding, x))


def resolved(function: Callable[..., X], sharding: Sharding, *args: object, **options: object) -> X:
    """The result of a function, laid out by a sharding where its operands leave that open."""
    if is_unsaid(sharding):
        return function(*args, **options)
    with unchecked():
        result = function(*args, **options)
    return laid_out(result, sharding)


def beside(out: Array, x: ArrayLike) -> Array:
    """`out` on the device that `x` is committed to; unchanged if either is traced.

    On a mesh it is split as `x` is if it has the same shape, and otherwise whole on each device.
    """
    if type(x) is not Array or type(out) is not Array or not x.committed:
        return out
    sharding = x.sharding
    if isinstance(sharding, NamedSharding) and out.shape != x.shape:
        return device_put(out, NamedSharding(sharding.mesh, PartitionSpec()))
    return device_put(out, x.device)


def known(name: str, x: ArrayLike, parameter: str) -> np.ndarray:
    """The values of `x`, on which the size of a result depends.

    parameter: the parameter that gives the size instead.
    Errors: TracerArrayConversionError for a traced x.
    """
    try:
        return np.asarray(x)
    except TracerArrayConversionError:
        raise TracerArrayConversionError(
            f"{name}: cannot size a result by the values of a traced {type_of(x)}",
            hint=f"say its size with {parameter}=",
        ) from None


def known_nonzero(x: ArrayLike) -> np.ndarray:
    """Which elements of `x` are not 0, if its values are known; they are known during
    differentiation, too.

    Comparing drops tangents, but under `jit` it would trace constants too, so those are read
    directly.
    Errors: TracerArrayConversionError for other traced arrays.
    """
    return np.asarray(x != 0) if isinstance(x, Tracer) else np.asarray(x) != 0


def along(name: str, x: ArrayLike, axis: int | None) -> tuple[ArrayLike, int]:
    """The array, flattened for None, and the axis counted from the front."""
    if axis is None:
        x, axis = reshape(x, -1), 0
    return x, normalised_axis(name, axis, type_of(x))


def rank(x: object) -> int:
    """Number of axes of any value."""
    return len(type_of(x).shape)
