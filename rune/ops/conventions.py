"""NumPy's conventions for the operators and methods of arrays: axes, promotion, shapes.

Negative axes, -1 in a shape and promotion are resolved here, once, for the methods of arrays and
for `rune.numpy`; the primitives below know nothing of them. Reductions are in statistics.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import ml_dtypes
import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.dims import Size, UndecidedComparison, divides, equal, product, ranges
from rune.errors import ArgumentError, AxisError, DimensionError, DtypeError, ShapeError
from rune.ops import arithmetic as a
from rune.ops import complex_numbers as cn
from rune.ops import contraction, movement, transcendental
from rune.ops import family as f
from rune.ops.promote import (
    apply,
    as_type,
    broadcast_shape,
    broadcast_to,
    constant,
    operand,
    promoted,
    scalar_kind,
    takes_real_part,
    unrounded,
)

if TYPE_CHECKING:
    from rune.array import Array

Axis = int | Sequence[int] | None

# Columns of each matrix of a batch up to which one product for all of them is faster.
FEW_COLUMNS = range(1, 9)


def entries(x: object) -> tuple[Size, ...]:
    """The members of a sequence or a vector of any class; anything else as its own only member.

    The caller checks that they are integers.
    """
    if isinstance(x, int):  # the common case
        return (x,)
    is_many = isinstance(x, Iterable) and not isinstance(x, str) and getattr(x, "ndim", 1) != 0
    return tuple(x) if is_many else (x,)  # type: ignore[return-value, arg-type]


def normalised_axis(name: str, axis: int, of: ArrayType, new: int = 0) -> int:
    """`axis` counted from the front, for an array of type `of` that gains `new` axes.

    Errors: AxisError "sum: cannot find axis 2 of f32[3] (its axes are -1 to 0)"; ArgumentError,
    which is a TypeError, if it is not an integer.
    """
    try:
        number = axis.__index__()
    except AttributeError:
        raise ArgumentError(f"{name}: cannot use {axis!r} as an axis of {of} (integer required)") from None
    ndim = of.ndim + new
    if not -ndim <= number < ndim:
        type_text = f"{of} with {new} more" if new else str(of)
        axes = f"its axes are {-ndim} to {ndim - 1}" if ndim else "it has none"
        raise AxisError(f"{name}: cannot find axis {number} of {type_text} ({axes})")
    return number % ndim


def normalised_axes(name: str, axis: Axis, of: ArrayType, new: int = 0) -> tuple[int, ...]:
    """All axes for None. Errors: AxisError if an axis is out of range or repeated."""
    if axis is None:
        return tuple(range(of.ndim + new))
    axes = entries(axis)
    axes_from_front = tuple(normalised_axis(name, i, of, new) for i in axes)  # type: ignore[arg-type]
    twice = next((i for i in axes_from_front if axes_from_front.count(i) > 1), None)
    if twice is not None:
        raise AxisError(f"{name}: cannot use axes {axes} of {of} (axis {twice} twice)")
    return axes_from_front


def size_of(x: Operand) -> Size:
    """Number of elements."""
    return product(type_of(x).shape)


# --- arithmetic -------------------------------------------------------------------------------


def true_divide(x: Operand, y: Operand) -> Any:
    """x / y; integers divide as floats."""
    return a.div(*promoted("divide", x, y, kind="inexact"))


def floor_divide(x: Operand, y: Operand) -> Array:
    """Quotient rounded towards minus infinity."""
    x, y = promoted("floor_divide", x, y, kind="numeric")
    dtype = type_of(x).dtype
    if dtype in dtypes.UNSIGNED:
        return a.div(x, y)
    if dtype in dtypes.FLOATING:
        return _floor_divide_floats(x, y)
    quotient, remainder = a.div(x, y), a.rem(x, y)
    opposite = a.ne(a.sign(remainder), a.sign(y))
    down = a.logical_and(a.ne(remainder, constant(0, remainder)), opposite)
    return a.select(down, a.sub(quotient, constant(1, quotient)), quotient)


def _floor_divide_floats(x: Operand, y: Operand) -> Array:
    # (x - remainder) / y is a whole number up to rounding; x / y alone may round to the next one.
    remainder = a.rem(x, y)
    quotient = a.div(a.sub(x, remainder), y)
    opposite = a.ne(a.lt(remainder, constant(0, remainder)), a.lt(y, constant(0, y)))
    down = a.logical_and(a.ne(remainder, constant(0, remainder)), opposite)
    integral = a.round(a.select(down, a.sub(quotient, constant(1, quotient)), quotient))
    plain = a.floor(a.div(x, y))
    result = a.select(a.eq(integral, constant(0, integral)), a.copysign(constant(0, integral), plain), integral)
    return a.select(a.ne(y, constant(0, y)), result, plain)


def truncated_remainder(x: Operand, y: Operand) -> Array:
    """Remainder with the sign of the dividend; 0 where an integer is divided by 0."""
    return _truncated_remainder(*promoted("fmod", x, y, kind="numeric"))


def _truncated_remainder(x: Operand, y: Operand) -> Array:
    if type_of(x).dtype in dtypes.INTEGER:
        x = a.select(a.eq(y, constant(0, y)), constant(0, x), x)
    return a.rem(x, y)


def remainder(x: Operand, y: Operand) -> Any:
    """Remainder with the sign of the divisor; 0 where an integer is divided by 0."""
    x, y = promoted("remainder", x, y, kind="numeric")
    truncated = _truncated_remainder(x, y)
    if type_of(x).dtype in dtypes.UNSIGNED:
        return truncated
    zero = constant(0, truncated)
    below = a.lt(y, constant(0, y))
    opposite = a.logical_and(a.ne(truncated, zero), a.ne(a.lt(truncated, zero), below))
    floor_remainder = a.select(opposite, a.add(truncated, y), truncated)
    if type_of(x).dtype not in dtypes.FLOATING:
        return floor_remainder
    # A zero takes the sign of y; sums, unlike copysign, keep the derivative 1 there.
    return a.select(below, a.neg(a.sub(zero, floor_remainder)), a.add(floor_remainder, zero))


def power(x: Operand, y: Operand) -> Any:
    """x ** y. A whole exponent known in Python becomes repeated multiplication.

    Errors: DtypeError for an integer to a negative Python integer.
    """
    if isinstance(y, int | np.integer) and type(y) is not bool and not dtypes.scalar_type(x):
        (x,) = promoted("power", x, kind="numeric")
        return transcendental.integer_pow(x, exponent=int(y))
    x, y = promoted("power", x, y, kind="numeric")
    if type_of(x).dtype in dtypes.INEXACT:
        return transcendental.pow(x, y)
    return _integer_power(x, y)


def _integer_power(x: Operand, y: Any) -> Any:
    """Square and multiply over the exponent's bits; wraps like all integer arithmetic."""
    base, result = x, f.fit(constant(1, x), _joint(x, y))
    for bit in range(type_of(y).dtype.itemsize * 8 - (type_of(y).dtype in dtypes.SIGNED)):
        odd = a.ne(a.logical_and(y, constant(1 << bit, y)), constant(0, y))
        result = a.select(odd, a.mul(result, x), result)
        x = a.mul(x, x)
    if type_of(y).dtype in dtypes.UNSIGNED:
        return result
    # 1 / x^|y| truncates to 0 unless x is 1 or -1, for which the loop's answer holds.
    fraction = a.logical_and(a.lt(y, constant(0, y)), a.ne(a.abs(base), constant(1, base)))
    return a.select(fraction, constant(0, result), result)


def _joint(x: Operand, y: Value) -> tuple:
    return type_of(x).shape or type_of(y).shape


def absolute(x: Operand) -> Any:
    """Magnitude; unsigned and bool values unchanged."""
    x = operand("absolute", x)
    without_sign = dtypes.UNSIGNED | {dtypes.bool_}
    return x if type_of(x).dtype in without_sign else a.abs(x)


def clip(x: Operand, low: Operand | None = None, high: Operand | None = None) -> Any:
    """x kept within [low, high]; None leaves a side open. At a bound the derivative is 0.5."""
    operands = [v for v in (x, low, high) if v is not None]
    x, *bounds = promoted("clip", *operands)
    if low is not None:
        x = a.max(x, bounds.pop(0))
    return x if high is None else a.min(x, bounds.pop(0))


def round(x: Value, decimals: int = 0) -> Any:
    """x rounded to `decimals` places, halves to even; negative ones round integers to tens,
    hundreds, …
    """
    x = operand("round", x)
    _require_numbers("round", x)
    if cn.is_complex(x):
        return by_parts(lambda part: round(part, decimals), x)
    if type_of(x).dtype not in dtypes.FLOATING:
        if type_of(x).dtype == dtypes.bool_:
            raise DtypeError(f"round: cannot round {type_of(x)} to {decimals} decimals")
        return x if decimals >= 0 else _round_integer(x, 10**-decimals)
    if decimals == 0:
        return a.round(x)
    type = type_of(x)
    factor = np.asarray(10.0 ** abs(decimals)).astype(f.wide(type.dtype))
    out, back = (a.mul, a.div) if decimals > 0 else (a.div, a.mul)
    integral = a.round(out(a.cast(x, f.wide(type.dtype)), factor))
    return a.cast(back(integral, factor), type.dtype)


def _round_integer(x: Value, unit: int) -> Array:
    """The nearest multiple of unit, halves to the even multiple, in integers alone."""
    if unit > ml_dtypes.iinfo(type_of(x).dtype).max:
        return a.mul(x, constant(0, x))
    quotient = floor_divide(x, constant(unit, x))
    remainder = a.sub(x, a.mul(quotient, constant(unit, x)))
    other = a.sub(constant(unit, x), remainder)  # distance upwards; 2 * remainder might overflow
    odd = a.ne(a.logical_and(quotient, constant(1, x)), constant(0, x))
    up = a.logical_or(a.gt(remainder, other), a.logical_and(a.eq(remainder, other), odd))
    return a.mul(a.add(quotient, a.convert(up, dtype=type_of(x).dtype)), constant(unit, x))


def astype(x: Operand, dtype: np.dtype) -> Any:
    """Conversion to `dtype`; to bool, whether x is nonzero."""
    x = operand("astype", x)
    type = type_of(x)
    if dtype == dtypes.bool_ and type.dtype not in dtypes.KEYS | {dtypes.bool_}:
        return a.ne(x, constant(0, x))
    return x if type.dtype == dtype and not type.weak else a.convert(x, dtype=dtype)


def converted(x: Operand, dtype: np.dtype) -> Array:
    """As `astype`, where the user asks for it: complex_to_real="warned" allows real parts."""
    x = operand("astype", x)
    return astype(cn.real(x) if takes_real_part(type_of(x).dtype, dtype) else x, dtype)


# --- complex numbers --------------------------------------------------------------------------


def _require_numbers(name: str, x: Operand) -> None:
    f.require(name, dtypes.ANY, "numeric", type_of(x))


class _Copyable(Protocol):
    def copy(self) -> Self: ...


_C = TypeVar("_C", bound=_Copyable)


def distinct(out: _C, x: object) -> _C:
    """`out`, or a copy of it if it is `x` itself: results outlive the donation of an operand."""
    return out.copy() if out is x else out


def real(x: Operand) -> Any:
    """The real part; a real value unchanged."""
    _require_numbers("real", x)
    return cn.real(x) if cn.is_complex(x) else x


def imag(x: Operand) -> Any:
    """The imaginary part; zeros of a real value."""
    _require_numbers("imag", x)
    return cn.imag(x) if cn.is_complex(x) else f.zeros_like(x)


def conj(x: Any) -> Any:
    """The complex conjugate; a real value unchanged."""
    _require_numbers("conj", x)
    return cn.conj(x) if cn.is_complex(x) else x


def ordered(comparison: Primitive, x: Operand, y: Operand) -> Array:
    """An order comparison; complex numbers compare by real part, then by imaginary part."""
    name, x_type = comparison.name, getattr(x, "type", None)
    if type(x_type) is ArrayType and x_type.dtype.kind != "c" and x_type is getattr(y, "type", None):
        return comparison(x, y)  # the common case
    if dtypes.COMPLEX.isdisjoint(scalar_kind(unrounded(name, v))[0] for v in (x, y)):
        return apply(comparison, x, y)
    x, y = promoted(name, x, y)
    first, second = real(x), real(y)
    return a.select(a.eq(first, second), comparison(imag(x), imag(y)), comparison(first, second))


def by_parts(rule: Callable[[Any], Any], x: Operand) -> Array:
    """`rule` of x; for complex x, `rule` of each part."""
    return cn.complex(rule(cn.real(x)), rule(cn.imag(x))) if cn.is_complex(x) else rule(x)


def is_finite(x: Operand) -> Array:
    """Whether x is neither infinite nor NaN; for complex x, whether this holds for both parts."""
    if not cn.is_complex(x):
        return a.is_finite(x)
    return a.logical_and(a.is_finite(cn.real(x)), a.is_finite(cn.imag(x)))


# --- shapes -----------------------------------------------------------------------------------


def reshape(x: Operand, shape: Size | tuple[Size, ...] | list[Size]) -> Any:
    """Another shape with as many elements; one size may be -1. Errors: ShapeError."""
    x = operand("reshape", x)
    sizes = tuple([int(s) if isinstance(s, np.integer) else s for s in entries(shape)])
    if sizes.count(-1) > 1:
        raise ShapeError(f"reshape: cannot reshape {type_of(x)} to {sizes} (-1 more than once)")
    if -1 in sizes:
        sizes = tuple([_missing(x, sizes) if s == -1 else s for s in sizes])
    return x if sizes == type_of(x).shape else f.reshape(x, shape=sizes)


def _missing(x: Value, sizes: tuple[Size, ...]) -> Size:
    total, known = size_of(x), product(s for s in sizes if s != -1)
    message = f"reshape: cannot reshape {type_of(x)} to {sizes} ({total} elements"
    if known == 0 or divides(known, total) is False:
        raise ShapeError(f"{message} do not divide by {known})")
    if not divides(known, total):
        hint = f"declare a size that is a multiple of {known} as one, as {known}*k in in_dims"
        raise DimensionError(f"{message} may not divide by {known})", hint)
    return total // known


def transpose(x: Operand, axes: Sequence[int] | None = None) -> Any:
    """The axes permuted; reversed for None."""
    x = operand("transpose", x)
    type = type_of(x)
    ndim = type.ndim
    order = tuple(range(ndim))[::-1] if axes is None else normalised_axes("transpose", axes, type)
    if len(order) != ndim:
        raise AxisError(f"transpose: cannot permute {type} by {axes} (each of {ndim} axes once)")
    return x if order == tuple(range(ndim)) else movement.transpose(x, permutation=order)


def matrix_transpose(x: Value) -> Any:
    """The last two axes swapped. Errors: ShapeError for a rank below 2."""
    ndim = type_of(x).ndim
    if ndim < 2:
        raise ShapeError(f"matrix_transpose: cannot transpose {type_of(x)} (rank 2 required)")
    return movement.transpose(x, permutation=(*range(ndim - 2), ndim - 1, ndim - 2))


def swapaxes(x: Operand, first: int, second: int) -> Array:
    """Two axes exchanged."""
    x = operand("swapaxes", x)
    i, j = (normalised_axis("swapaxes", axis, type_of(x)) for axis in (first, second))
    order = list(range(type_of(x).ndim))
    order[i], order[j] = j, i
    return transpose(x, order)


def squeeze(x: Value, axis: Axis = None) -> Array:
    """Axes of size 1 removed. Errors: ShapeError if a named axis is longer."""
    shape = type_of(x).shape
    if axis is None:
        axes = {i for i in range(len(shape)) if _is_one(x, i)}
    else:
        axes = set(normalised_axes("squeeze", axis, type_of(x)))
    for i in axes:
        if shape[i] != 1:
            raise ShapeError(f"squeeze: cannot remove axis {i} of {type_of(x)} (size {shape[i]})")
    return f.reshape(x, shape=tuple(d for i, d in enumerate(shape) if i not in axes))


def _is_one(x: Value, axis: int) -> bool:
    size = type_of(x).shape[axis]
    if (is_one := equal(size, 1)) is None:
        raise UndecidedComparison(
            f"squeeze: cannot decide whether axis {axis} of {type_of(x)} is 1 ({ranges(size)})",
            "give axis=, or declare the size in dims from 2 on",
            (size, "==", 1),
        )
    return is_one


def expand_dims(x: Operand, axis: int | Sequence[int]) -> Array:
    """Axes of size 1 inserted at positions `axis` of the result."""
    x = operand("expand_dims", x)
    axes = entries(axis)
    ndim = type_of(x).ndim + len(axes)
    at = set(normalised_axes("expand_dims", axes, type_of(x), len(axes)))  # type: ignore[arg-type]
    sizes = iter(type_of(x).shape)
    return f.reshape(x, shape=tuple(1 if i in at else next(sizes) for i in range(ndim)))


# --- products ---------------------------------------------------------------------------------


def matmul(x: Value, y: Value) -> Array:
    """Matrix product with NumPy's broadcasting of leading axes; rank 1 is a vector.

    Shapes: [*B, M, K] @ [*B, K, N] -> [*B, M, N].
    Errors: ShapeError names both shapes and the axes that conflict.
    """
    x, y = same_dtype("matmul", x, y)
    p, q = type_of(x), type_of(y)
    if not p.shape or not q.shape:
        raise ShapeError(f"matmul: cannot multiply {p} and {q} (rank 0; use * for scalars)")
    cx, cy = p.ndim - 1, q.ndim - 2 if q.ndim > 1 else 0
    if p.shape[cx] != q.shape[cy]:
        raise ShapeError(
            f"matmul: cannot multiply {p} and {q} "
            f"(axis {cx} of the first: {p.shape[cx]}, axis {cy} of the second: {q.shape[cy]})"
        )
    if q.ndim <= 2:
        return contract(x, y, (((cx,), (cy,)), ((), ())))
    return _batched_matmul(x, y)


def same_dtype(name: str, *values: Operand) -> list[Any]:
    """Arrays of the one dtype that the values promote to; their shapes are unchanged."""
    types = [getattr(v, "type", None) for v in values]
    first = types[0]
    if type(first) is ArrayType and all([t is first or (type(t) is ArrayType and _is_like(t, first)) for t in types]):
        return list(values)
    operands = [unrounded(name, v) for v in values]
    dtype, weak = dtypes.promote(*map(scalar_kind, operands))
    return [as_type(v, dtype, weak, name) for v in operands]


def _is_like(a: ArrayType, b: ArrayType) -> bool:
    return a.dtype is b.dtype and not a.weak and not b.weak


def contract(x: Operand, y: Operand, numbers: contraction.Numbers) -> Array:
    """dot_general; for bools, whether any product is true."""
    if type_of(x).dtype != dtypes.bool_:
        return contraction.dot_general(x, y, dimension_numbers=numbers)
    integers = [a.cast(v, dtypes.i32) for v in (x, y)]
    return astype(contraction.dot_general(*integers, dimension_numbers=numbers), dtypes.bool_)


def _batched_matmul(x: Value, y: Value) -> Array:
    from_x, from_y = type_of(x).shape[:-2], type_of(y).shape[:-2]
    vector = type_of(x).ndim == 1
    if vector:
        x = expand_dims(x, 0)
    shape = broadcast_shape("matmul", from_x, from_y)
    if not from_x and type_of(y).shape[-1] in FEW_COLUMNS:
        # One matrix by many vectors is one product, with a row for each column.
        out = matrix_transpose(contract(y, x, (((type_of(y).ndim - 2,), (1,)), ((), ()))))
        return squeeze(out, -2) if vector else out
    x = broadcast_to("matmul", x, (*shape, *type_of(x).shape[-2:]))
    y = broadcast_to("matmul", y, (*shape, *type_of(y).shape[-2:]))
    n = len(shape)
    batch = tuple(range(n))
    out = contract(x, y, (((n + 1,), (n,)), (batch, batch)))
    return squeeze(out, -2) if vector else out


def dot(x: Operand, y: Operand) -> Any:
    """NumPy's dot: inner product over the last axis of x and the last but one of y."""
    x, y = same_dtype("dot", x, y)
    p, q = type_of(x), type_of(y)
    if not p.shape or not q.shape:
        return apply(a.mul, x, y)
    cx, cy = p.ndim - 1, q.ndim - 2 if q.ndim > 1 else 0
    if p.shape[cx] != q.shape[cy]:
        raise ShapeError(
            f"dot: cannot multiply {p} and {q} "
            f"(axis {cx} of the first: {p.shape[cx]}, axis {cy} of the second: {q.shape[cy]})"
        )
    return contract(x, y, (((cx,), (cy,)), ((), ())))
