"""NumPy's conventions for reductions: any axis, keepdims, small integers widened, half types exact.

Array methods share this with the functions of the same names in `rune.numpy`. The result of a
reduction is never weak. Means and variances of half types are computed in f32 and rounded once, so
that no sum overflows on the way to a mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.values import DTypeLike, Operand, Value
from rune.dims import Size, product
from rune.errors import ShapeError
from rune.ops import arithmetic as a
from rune.ops import family as f
from rune.ops import reduction, transcendental
from rune.ops.complex_numbers import imag, is_complex, real, real_dtype
from rune.ops.conventions import Axis, astype, by_parts, normalised_axes, normalised_axis, reshape
from rune.ops.movement import slice_, transpose
from rune.ops.promote import operand, promoted
from rune.ops.sorting import sort

if TYPE_CHECKING:
    from rune.array import Array


def reduce(name: str, primitive: Primitive, x: Operand, axis: Axis = None, keepdims: bool = False) -> Array:
    """A reduction primitive with NumPy's axis and keepdims."""
    type = type_of(x)
    axes = normalised_axes(name, axis, type)
    out = primitive(x, axes=axes)
    if type.weak:
        out = a.convert(out, dtype=type.dtype)
    return _with_unit_axes(out, type.shape, axes) if keepdims else out


def _with_unit_axes(out: Value, shape: tuple, axes: tuple[int, ...]) -> Array:
    return f.reshape(out, shape=tuple(1 if i in axes else d for i, d in enumerate(shape)))


def summable(x: Operand, dtype: DTypeLike | None = None) -> Any:
    """`x` in the dtype of its sum: small integers and bools widen to the default width."""
    if dtype is not None:
        return astype(x, dtypes.as_dtype(dtype))
    current = type_of(x).dtype
    if current != dtypes.bool_ and current not in dtypes.INTEGER:
        return x
    wide = dtypes.canonical(dtypes.u64 if current in dtypes.UNSIGNED else dtypes.i64)
    return astype(x, wide) if current.itemsize < wide.itemsize else x


def sum(x: Operand, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Array:
    """Sum over axes."""
    return reduce("sum", f.reduce_sum, summable(operand("sum", x), dtype), axis, keepdims)


def prod(x: Value, axis: Axis = None, dtype: np.dtype | None = None, keepdims: bool = False) -> Array:
    """Product over axes."""
    return reduce("prod", reduction.reduce_prod, summable(operand("prod", x), dtype), axis, keepdims)


# --- moments ----------------------------------------------------------------------------------


def _inexact(name: str, x: Operand, dtype: DTypeLike | None) -> tuple[Any, np.dtype]:
    """The operand in the dtype of the computation, and the dtype of the result."""
    x = operand(name, x) if dtype is None else astype(x, dtypes.as_dtype(dtype))
    (x,) = promoted(name, x, kind="inexact")
    result_dtype = type_of(x).dtype
    return a.cast(x, f.wide(result_dtype)), result_dtype


def squared_length(x: Operand) -> Array:
    """x²; for complex numbers |x|², which is real."""
    if not is_complex(x):
        return a.mul(x, x)
    parts = real(x), imag(x)
    return a.add(*(a.mul(p, p) for p in parts))


def _count(x: Operand, axes: tuple[int, ...]) -> Size:
    return product(type_of(x).shape[i] for i in axes)


def mean(x: Operand, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Array:
    """Arithmetic mean over axes, in floats for integer x; `dtype` may request integers."""
    x, result_dtype = _inexact("mean", x, dtype)
    result_dtype = result_dtype if dtype is None else dtypes.as_dtype(dtype)
    axes = normalised_axes("mean", axis, type_of(x))
    total = reduce("mean", f.reduce_sum, x, axes, keepdims)
    return a.cast(_share(total, _count(x, axes)), result_dtype)


def _share(total: Value, count: Size) -> Array:
    """A total divided by a count; each part of a complex total separately."""
    return by_parts(lambda part: a.div(part, f.size_value(count, type_of(part).dtype)), total)


def var(
    x: Value,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    mean: Operand | None = None,
) -> Array:
    """Mean squared distance from the mean, divided by the count minus `ddof`; always real."""
    x, result_dtype = _inexact("var", x, dtype)
    axes = normalised_axes("var", axis, type_of(x))
    if mean is None:
        total = reduce("var", f.reduce_sum, x, axes, True)
        mean = _share(total, _count(x, axes))
    squares = squared_length(a.sub(*promoted("var", x, mean)))
    result_dtype = real_dtype(result_dtype)
    count = f.size_value(_count(x, axes), type_of(squares).dtype)
    total = reduce("var", f.reduce_sum, squares, axes, keepdims)
    return a.cast(a.div(total, left_over(count, ddof)), result_dtype)


def left_over(count: Value, ddof: Value) -> Value:
    """count - ddof, at least 0: the variance of too few elements is NaN or infinite."""
    if not hasattr(ddof, "type"):
        if not ddof:
            return count
        ddof = literal_like(ddof, count)
    less = a.cast(ddof, type_of(count).dtype)
    return a.max(a.sub(count, less), literal_like(0, count))


def std(
    x: Value,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    mean: Operand | None = None,
) -> Any:
    """Square root of the variance."""
    x, result_dtype = _inexact("std", x, dtype)
    root = transcendental.sqrt(var(x, axis, None, ddof, keepdims, mean))
    return a.cast(root, real_dtype(result_dtype))


# --- order ------------------------------------------------------------------------------------


def amax(x: Operand, axis: Axis = None, keepdims: bool = False) -> Array:
    """Maximum over axes; NaN if there is one."""
    return _extremum("max", reduction.reduce_max, reduction.reduce_or, x, axis, keepdims)


def amin(x: Operand, axis: Axis = None, keepdims: bool = False) -> Array:
    """Minimum over axes; NaN if there is one."""
    return _extremum("min", reduction.reduce_min, reduction.reduce_and, x, axis, keepdims)


def ptp(x: Value, axis: Axis = None, keepdims: bool = False) -> Array:
    """Largest minus smallest."""
    return a.sub(amax(x, axis, keepdims), amin(x, axis, keepdims))


def _extremum(name: str, primitive: Primitive, of_bool: Primitive, x: Operand, axis: Axis, keepdims: bool) -> Array:
    x = operand(name, x)
    if is_complex(x):
        return _complex_extremum(name, x, axis, keepdims)
    reduction_primitive = of_bool if type_of(x).dtype == dtypes.bool_ else primitive
    return reduce(name, reduction_primitive, x, axis, keepdims)


def _complex_extremum(name: str, x: Value, axis: Axis, keepdims: bool) -> Array:
    """The first or last of the sorted numbers; NaN if any is."""
    shape, axes = type_of(x).shape, normalised_axes(name, axis, type_of(x))
    remaining = tuple(i for i in range(len(shape)) if i not in axes)
    count = product(shape[i] for i in axes)
    if count == 0:
        raise ShapeError(f"{name}: cannot reduce {type_of(x)} over axes {axes} (no elements)")
    rows = transpose(x, permutation=(*remaining, *axes))
    (sorted_rows,) = sort(reshape(rows, (*(shape[i] for i in remaining), count)), num_keys=1)
    extremum = _element_of_rows(sorted_rows, count - 1 if name == "max" else 0)
    result_shape = tuple(1 if i in axes else d for i, d in enumerate(shape) if keepdims or i not in axes)
    has_nan = reshape(reduction.reduce_or(a.ne(x, x), axes=axes), result_shape)
    return a.select(has_nan, literal_like(complex(np.nan, np.nan), x), reshape(extremum, result_shape))


def _element_of_rows(x: Value, at: Size) -> Array:
    *lead, _ = type_of(x).shape
    zeros, ones = (0,) * len(lead), (1,) * len(lead)
    return slice_(x, start=(*zeros, at), limit=(*lead, at + 1), stride=(*ones, 1))


def any(x: Value, axis: Axis = None, keepdims: bool = False) -> Array:
    """True where any element is nonzero."""
    x = astype(operand("any", x), dtypes.bool_)
    return reduce("any", reduction.reduce_or, x, axis, keepdims)


def all(x: Value, axis: Axis = None, keepdims: bool = False) -> Array:
    """True where every element is nonzero."""
    x = astype(operand("all", x), dtypes.bool_)
    return reduce("all", reduction.reduce_and, x, axis, keepdims)


def argmax(x: Value, axis: int | None = None, keepdims: bool = False) -> Array:
    """Position of the first maximum, or of the first NaN."""
    return _arg(reduction.argmax, x, axis, keepdims)


def argmin(x: Value, axis: int | None = None, keepdims: bool = False) -> Array:
    """Position of the first minimum, or of the first NaN."""
    return _arg(reduction.argmin, x, axis, keepdims)


def _arg(primitive: Primitive, x: Value, axis: int | None, keepdims: bool) -> Array:
    x = operand(primitive.name, x)
    shape = type_of(x).shape
    flat = reshape(x, -1) if axis is None else x
    at = 0 if axis is None else normalised_axis(primitive.name, axis, type_of(x))
    out = primitive(flat, axis=at, dtype=dtypes.canonical(dtypes.i64))
    axes = tuple(range(len(shape))) if axis is None else (at,)
    return _with_unit_axes(out, shape, axes) if keepdims else out


# --- running ----------------------------------------------------------------------------------


def cumsum(x: Value, axis: int | None = None, dtype: DTypeLike | None = None) -> Array:
    """Running sum; over the flattened array for None."""
    return cumulative("cumsum", reduction.cumsum, summable(operand("cumsum", x), dtype), axis)


def cumprod(x: Value, axis: int | None = None, dtype: DTypeLike | None = None) -> Array:
    """Running product; over the flattened array for None."""
    return cumulative("cumprod", reduction.cumprod, summable(operand("cumprod", x), dtype), axis)


def cumulative(name: str, primitive: Primitive, x: Value, axis: int | None) -> Array:
    """A cumulative primitive with NumPy's axis."""
    flat = reshape(x, -1) if axis is None else x
    at = 0 if axis is None else normalised_axis(name, axis, type_of(x))
    out = primitive(flat, axis=at, reverse=False)
    return a.convert(out, dtype=type_of(x).dtype) if type_of(x).weak else out
