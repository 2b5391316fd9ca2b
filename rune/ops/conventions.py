"""NumPy's conventions for what arrays do as operators and methods: axes, promotion, keepdims.

Negative axes, `axis=None`, -1 in a shape and integer promotion are resolved here, once, for the
methods of arrays and for `rune.numpy`; primitives below know nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.dims import Size, exact_div, product
from rune.errors import AxisError, DtypeError, ShapeError
from rune.ops import arithmetic as a
from rune.ops import contraction, movement, reduction, transcendental
from rune.ops import family as f
from rune.ops.promote import apply, broadcast_shape, broadcast_to, operand, promoted

Axis = int | Sequence[int] | None


def normalised_axis(name: str, axis: int, ndim: int) -> int:
    """`axis` counted from the front. Errors: AxisError when it is out of range."""
    try:
        number = axis.__index__()
    except AttributeError:
        raise AxisError(f"{name}: cannot use {axis!r} as an axis (integer required)") from None
    if not -ndim <= number < ndim:
        raise AxisError(f"{name}: cannot find axis {number} (the array has {ndim} axes)")
    return number % ndim


def normalised_axes(name: str, axis: Axis, ndim: int) -> tuple[int, ...]:
    """All axes for None. Errors: AxisError when one is out of range or given twice."""
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    found = tuple(normalised_axis(name, i, ndim) for i in given)  # type: ignore[arg-type]
    if len(set(found)) != len(found):
        raise AxisError(f"{name}: cannot use axes {given} (an axis twice)")
    return found


def size_of(x: Any) -> Size:
    """Number of elements."""
    return product(type_of(x).shape)


# --- arithmetic -------------------------------------------------------------------------------


def true_divide(x: Any, y: Any) -> Any:
    """x / y; integers divide as floats."""
    return a.div(*promoted("divide", x, y, kind="inexact"))


def floor_divide(x: Any, y: Any) -> Any:
    """Quotient rounded towards minus infinity."""
    x, y = promoted("floor_divide", x, y)
    dtype = type_of(x).dtype
    if dtype in dtypes.UNSIGNED:
        return a.div(x, y)
    if dtype in dtypes.FLOATING:
        return _floor_divide_floats(x, y)
    quotient, rest = a.div(x, y), a.rem(x, y)
    opposite = a.ne(a.sign(rest), a.sign(y))
    down = a.logical_and(a.ne(rest, a.zero_like(rest)), opposite)
    return a.select(down, a.sub(quotient, literal_like(1, quotient)), quotient)


def _floor_divide_floats(x: Any, y: Any) -> Any:
    # (x - mod) / y is a whole number up to rounding; x / y alone may round across one.
    mod = remainder(x, y)
    quotient = a.round(a.div(a.sub(x, mod), y))
    plain = a.floor(a.div(x, y))
    return a.select(a.is_finite(quotient), quotient, plain)


def remainder(x: Any, y: Any) -> Any:
    """Remainder with the sign of the divisor."""
    x, y = promoted("remainder", x, y)
    rest = a.rem(x, y)
    if type_of(x).dtype in dtypes.UNSIGNED:
        return rest
    zero = a.zero_like(rest)
    opposite = a.logical_and(a.ne(rest, zero), a.ne(a.lt(rest, zero), a.lt(y, a.zero_like(y))))
    moved = a.select(opposite, a.add(rest, y), rest)
    if type_of(x).dtype not in dtypes.FLOATING:
        return moved
    return a.select(a.eq(moved, zero), a.copysign(zero, y), moved)


def power(x: Any, y: Any) -> Any:
    """x ** y. A Python integer exponent becomes repeated multiplication.

    Errors: DtypeError for an integer to a negative Python integer.
    """
    if type(y) is int and not dtypes.scalar_type(x):
        return transcendental.integer_pow(operand("power", x), exponent=y)
    x, y = promoted("power", x, y)
    if type_of(x).dtype in dtypes.FLOATING:
        return transcendental.pow(x, y)
    if type_of(x).dtype in dtypes.INTEGER:
        return _integer_power(x, y)
    raise DtypeError(f"power: cannot raise {type_of(x)} to {type_of(y)}")


def _integer_power(x: Any, y: Any) -> Any:
    """Square and multiply over the exponent's bits; wraps like all integer arithmetic."""
    result = f.fit(literal_like(1, x), _joint(x, y))
    for bit in range(type_of(y).dtype.itemsize * 8 - 1):
        odd = a.ne(a.logical_and(y, literal_like(1 << bit, y)), a.zero_like(y))
        result = a.select(odd, a.mul(result, x), result)
        x = a.mul(x, x)
    return result


def _joint(x: Any, y: Any) -> tuple:
    return type_of(x).shape or type_of(y).shape


def absolute(x: Any) -> Any:
    """Magnitude; unsigned and bool values as they are."""
    x = operand("absolute", x)
    kept = dtypes.UNSIGNED | {dtypes.bool_}
    return x if type_of(x).dtype in kept else a.abs(x)


def astype(x: Any, dtype: np.dtype) -> Any:
    """Conversion to `dtype`; to bool, whether nonzero."""
    x = operand("astype", x)
    found = type_of(x)
    if dtype == dtypes.bool_ and found.dtype != dtypes.bool_:
        return a.ne(x, a.zero_like(x))
    return x if found.dtype == dtype and not found.weak else a.convert(x, dtype=dtype)


# --- shapes -----------------------------------------------------------------------------------


def reshape(x: Any, shape: Any) -> Any:
    """Another shape of the same size; one size may be -1. Errors: ShapeError."""
    x = operand("reshape", x)
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    total = size_of(x)
    if sizes.count(-1) > 1:
        raise ShapeError(f"reshape: cannot reshape {type_of(x)} to {sizes} (-1 more than once)")
    if -1 in sizes:
        known = product(s for s in sizes if s != -1)
        sizes = tuple(_missing(x, total, known, sizes) if s == -1 else s for s in sizes)
    sizes = tuple(s if not hasattr(s, "__index__") else _as_int(s) for s in sizes)
    return x if sizes == type_of(x).shape else f.reshape(x, shape=sizes)


def _as_int(size: Any) -> Any:
    return int(size) if isinstance(size, np.integer) else size


def _missing(x: Any, total: Size, known: Size, sizes: tuple) -> Size:
    if known == 0 or (isinstance(total, int) and isinstance(known, int) and total % known):
        raise ShapeError(
            f"reshape: cannot reshape {type_of(x)} to {sizes} "
            f"({total} elements do not divide by {known})"
        )
    return exact_div(total, known)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes permuted; reversed for None."""
    x = operand("transpose", x)
    ndim = type_of(x).ndim
    order = tuple(range(ndim))[::-1] if axes is None else normalised_axes("transpose", axes, ndim)
    if len(order) != ndim:
        raise AxisError(f"transpose: cannot permute {type_of(x)} by {tuple(axes or ())}")
    return x if order == tuple(range(ndim)) else movement.transpose(x, permutation=order)


def matrix_transpose(x: Any) -> Any:
    """The last two axes swapped. Errors: ShapeError below rank 2."""
    ndim = type_of(x).ndim
    if ndim < 2:
        raise ShapeError(f"matrix_transpose: cannot transpose {type_of(x)} (rank 2 required)")
    return movement.transpose(x, permutation=(*range(ndim - 2), ndim - 1, ndim - 2))


def squeeze(x: Any, axis: Axis = None) -> Any:
    """Axes of size 1 removed. Errors: ShapeError when a named axis is longer."""
    shape = type_of(x).shape
    if axis is None:
        gone = {i for i, d in enumerate(shape) if d == 1}
    else:
        gone = set(normalised_axes("squeeze", axis, len(shape)))
    for i in gone:
        if shape[i] != 1:
            raise ShapeError(f"squeeze: cannot remove axis {i} of {type_of(x)} (size {shape[i]})")
    return f.reshape(x, shape=tuple(d for i, d in enumerate(shape) if i not in gone))


def expand_dims(x: Any, axis: int | Sequence[int]) -> Any:
    """Axes of size 1 inserted, so that they stand at `axis` of the result."""
    x = operand("expand_dims", x)
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    ndim = type_of(x).ndim + len(given)
    at = set(normalised_axes("expand_dims", given, ndim))  # type: ignore[arg-type]
    sizes = iter(type_of(x).shape)
    return f.reshape(x, shape=tuple(1 if i in at else next(sizes) for i in range(ndim)))


# --- reductions -------------------------------------------------------------------------------


def reduce(
    name: str, primitive: Primitive, x: Any, axis: Axis = None, keepdims: bool = False
) -> Any:
    """A reduction primitive with NumPy's axis and keepdims."""
    shape = type_of(x).shape
    axes = normalised_axes(name, axis, len(shape))
    out = primitive(x, axes=axes)
    if not keepdims:
        return out
    return f.reshape(out, shape=tuple(1 if i in axes else d for i, d in enumerate(shape)))


def summable(x: Any, dtype: Any = None) -> Any:
    """`x` in the dtype that a sum of it has: small integers and bool widen to 32 bits."""
    if dtype is not None:
        return astype(x, dtypes.as_dtype(dtype))
    found = type_of(x).dtype
    if found == dtypes.bool_ or (found in dtypes.SIGNED and found.itemsize < 4):
        return astype(x, dtypes.i32)
    if found in dtypes.UNSIGNED and found.itemsize < 4:
        return astype(x, dtypes.u32)
    return x


def sum(x: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum over axes."""
    return reduce("sum", f.reduce_sum, summable(operand("sum", x), dtype), axis, keepdims)


def prod(x: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product over axes."""
    return reduce(
        "prod", reduction.reduce_prod, summable(operand("prod", x), dtype), axis, keepdims
    )


def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over axes; integers as floats."""
    (x,) = promoted("mean", x, kind="inexact")
    axes = normalised_axes("mean", axis, type_of(x).ndim)
    count = product(type_of(x).shape[i] for i in axes)
    return a.div(sum(x, axes, None, keepdims), f.size_value(count, type_of(x).dtype))


def amax(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Maximum over axes; NaN if there is one."""
    return _extremum("max", reduction.reduce_max, reduction.reduce_or, x, axis, keepdims)


def amin(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Minimum over axes; NaN if there is one."""
    return _extremum("min", reduction.reduce_min, reduction.reduce_and, x, axis, keepdims)


def _extremum(
    name: str, primitive: Primitive, of_bool: Primitive, x: Any, axis: Axis, keepdims: bool
) -> Any:
    x = operand(name, x)
    chosen = of_bool if type_of(x).dtype == dtypes.bool_ else primitive
    return reduce(name, chosen, x, axis, keepdims)


def any(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """True where some element is nonzero."""
    x = astype(operand("any", x), dtypes.bool_)
    return reduce("any", reduction.reduce_or, x, axis, keepdims)


def all(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """True where every element is nonzero."""
    x = astype(operand("all", x), dtypes.bool_)
    return reduce("all", reduction.reduce_and, x, axis, keepdims)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Position of the first maximum, or of the first NaN."""
    return _arg(reduction.argmax, x, axis, keepdims)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Position of the first minimum, or of the first NaN."""
    return _arg(reduction.argmin, x, axis, keepdims)


def _arg(primitive: Primitive, x: Any, axis: int | None, keepdims: bool) -> Any:
    x = operand(primitive.name, x)
    shape = type_of(x).shape
    flat = reshape(x, -1) if axis is None else x
    at = 0 if axis is None else normalised_axis(primitive.name, axis, len(shape))
    out = primitive(flat, axis=at, dtype=dtypes.canonical(dtypes.i64))
    if not keepdims:
        return out
    return f.reshape(
        out, shape=tuple(1 if axis is None or i == at else d for i, d in enumerate(shape))
    )


def cumsum(x: Any, axis: int | None = None) -> Any:
    """Running sum; over the flattened array for None."""
    return cumulative("cumsum", reduction.cumsum, summable(operand("cumsum", x)), axis)


def cumulative(name: str, primitive: Primitive, x: Any, axis: int | None) -> Any:
    """A cumulative primitive with NumPy's axis."""
    flat = reshape(x, -1) if axis is None else x
    at = 0 if axis is None else normalised_axis(name, axis, type_of(x).ndim)
    return primitive(flat, axis=at, reverse=False)


# --- products ---------------------------------------------------------------------------------


def matmul(x: Any, y: Any) -> Any:
    """Matrix product with NumPy's broadcasting of leading axes; rank 1 is a vector.

    Shapes: [*B, M, K] @ [*B, K, N] -> [*B, M, N].
    Errors: ShapeError names both shapes and the axes that conflict.
    """
    x, y = _same_dtype("matmul", x, y)
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
        return contraction.dot_general(x, y, dimension_numbers=(((cx,), (cy,)), ((), ())))
    return _batched_matmul(x, y)


def _same_dtype(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    dtype, _ = dtypes.promote(*(_kind(operand(name, v)) for v in (x, y)))
    return tuple(astype(v, dtype) for v in (x, y))  # type: ignore[return-value]


def _kind(x: Any) -> tuple[np.dtype, bool]:
    found = type_of(x)
    return found.dtype, found.weak


def _batched_matmul(x: Any, y: Any) -> Any:
    from_x, from_y = type_of(x).shape[:-2], type_of(y).shape[:-2]
    vector = type_of(x).ndim == 1
    if vector:
        x = expand_dims(x, 0)
    shape = broadcast_shape("matmul", from_x, from_y)
    x = broadcast_to("matmul", x, (*shape, *type_of(x).shape[-2:]))
    y = broadcast_to("matmul", y, (*shape, *type_of(y).shape[-2:]))
    n = len(shape)
    batch = tuple(range(n))
    out = contraction.dot_general(x, y, dimension_numbers=(((n + 1,), (n,)), (batch, batch)))
    return squeeze(out, -2) if vector else out


def dot(x: Any, y: Any) -> Any:
    """NumPy's dot: inner product over the last axis of x and the last but one of y."""
    x, y = _same_dtype("dot", x, y)
    p, q = type_of(x), type_of(y)
    if not p.shape or not q.shape:
        return apply(a.mul, x, y)
    numbers = (((p.ndim - 1,), (q.ndim - 2 if q.ndim > 1 else 0,)), ((), ()))
    return contraction.dot_general(x, y, dimension_numbers=numbers)
