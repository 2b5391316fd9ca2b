"""Sequences from one number to another: in equal steps, or by equal factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.core.values import Value
from rune.dims import Dim, Size, at_most
from rune.errors import ArgumentError
from rune.numpy.arguments import placed, static_size, value
from rune.numpy.shapes import expand_dims
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops import family
from rune.ops.complex_numbers import real_dtype
from rune.ops.movement import move_axis
from rune.ops.promote import as_type, broadcast_shape, broadcast_to, constant, promoted, unrounded
from rune.ops.scalars import int_bounds, wrapped
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: Size = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: Size = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: object = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: Size,
    endpoint: bool,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: Size = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Any: ...
@tiered
def linspace(
    start: Any,
    stop: Any,
    num: Size = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array | tuple[Array, Array]:
    """`num` evenly spaced values from start to stop, which is included if `endpoint`.

    Shapes: start, stop [*B] -> [num, *B], the new axis at `axis`.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `num` is not an integer; DtypeError for
            an unknown dtype; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.linspace(0.0, 1.0, 3)
    Array([0. , 0.5, 1. ], f32[3], cpu:0)
    """
    num = static_size("linspace", "a count", num)
    if num < 0:
        raise ArgumentError(f"linspace: cannot make {num} values")
    ends, target = (start, stop), None if dtype is None else dtypes.as_dtype(dtype)
    start, stop = _in_floats("linspace", ends, target)
    parts = num - 1 if endpoint else num
    float_dtype = type_of(start).dtype
    target = float_dtype if target is None else target
    start, stop = (c.astype(x, family.wide(float_dtype)) for x in (start, stop))
    values = _between(start, stop, num, parts, endpoint)
    if target in dtypes.INTEGER:
        counter = _counter(ends, num, parts, target)
        values = ops.floor(values) if counter is None else _floor_steps(ends, num, parts, counter)
    at = c.normalised_axis("linspace", axis, type_of(values))
    values = placed(c.astype(move_axis(values, 0, at), target), device)
    if not retstep:
        return values
    step = ops.div(ops.sub(stop, start), _number(parts, type_of(start).dtype) if parts != 0 else math.nan)
    return values, c.astype(step, float_dtype)


def _in_floats(name: str, xs: Sequence[ArrayLike], dtype: DTypeLike | None) -> list[Value]:
    """Numbers and arrays in one floating dtype: `dtype`, if it is floating.

    Python numbers are rounded once, to that dtype: 1/3 with an f64 array keeps all of its digits.
    """
    raw = [unrounded(name, x) for x in xs]
    if dtype is not None and dtypes.as_dtype(dtype) in dtypes.INEXACT:
        ends = [as_type(x, dtypes.as_dtype(dtype), name=name) for x in raw]
    else:
        ends = promoted(name, *raw, kind="inexact")
    return [as_array(x, x.dtype) if isinstance(x, np.ndarray) else x for x in ends]


def _if_wide(dtype: DTypeLike | None) -> DTypeLike | None:
    """The dtype to compute in if the result has 64 bits; None for that of the operands."""
    wide = dtype is not None and dtypes.as_dtype(dtype) in (dtypes.f64, dtypes.c128)
    return dtype if wide else None


def _number(size: Size, dtype: np.dtype) -> Value:
    return family.size_value(size, dtype) if isinstance(size, Dim) else as_type(size, dtype)


def _counter(ends: Any, num: Any, parts: Size, target: np.dtype) -> np.dtype | None:
    """The dtype in which `_floor_steps` is exact; None if the numbers are not known integers."""
    if not all(isinstance(n, int) for n in (*ends, num)):
        return None
    if all(abs(n) < 2**15 for n in (*ends, num)):
        return dtypes.i32
    low, high = int_bounds(target)
    if min(ends) < low or max(ends) > high:
        return None
    if int(parts) < 2**15 and target.itemsize >= 4:
        return target
    return dtypes.u64 if target in dtypes.UNSIGNED else dtypes.i64


def _floor_steps(ends: tuple[int, int], num: Size, parts: Size, dtype: np.dtype) -> Any:
    """floor(start + (stop - start) * k / parts) in integers: in floats it may fall just below a
    whole number.

    A product may wrap around, and the sum wraps back. The square of `parts` has to fit the dtype.
    """
    parts = max(int(parts), 1)
    quotient, remainder = divmod(ends[1] - ends[0], parts)
    k = ops.iota(shape=(num,), axis=0, dtype=dtype)
    return ends[0] + wrapped(quotient, dtype) * k + remainder * k // parts


def _between(start: ArrayLike, stop: ArrayLike, num: Size, parts: Size, endpoint: bool) -> Array:
    shape = type_of(start).shape or type_of(stop).shape
    dtype = type_of(start).dtype
    steps = real_dtype(dtype)
    step_numbers = ops.iota(shape=(num, *shape), axis=0, dtype=steps)
    t = ops.div(step_numbers, ops.max(_number(parts, steps), as_type(1, steps)))
    t = c.astype(t, dtype)
    ends = [broadcast_to("linspace", x, (num, *shape)) for x in (start, stop)]
    values = ops.add(ops.mul(ends[0], ops.sub(as_type(1, dtype), t)), ops.mul(ends[1], t))
    # 1 - t and t may not add up to exactly 1 in floats; the last value has to be exactly stop.
    if not endpoint or at_most(num, 1):
        return values
    return ops.select(ops.eq(t, as_type(1, dtype)), ends[1], values)


@tiered
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Values evenly spaced on a log scale, from base**start to base**stop.

    Shapes: start, stop and base broadcast to [*S] -> [num, *S], num at `axis`.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `num` is not an integer; DtypeError for
            an unknown dtype; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.logspace(0.0, 2.0, 3)
    Array([  1.,  10., 100.], f32[3], cpu:0)
    """
    if getattr(base, "ndim", 0):
        operands = (value("logspace", x) for x in (start, stop, base))
        operands = promoted("logspace", *operands, kind="inexact")
        start, stop, base = (broadcast_to("logspace", x, _common_shape(operands)) for x in operands)
        base = expand_dims(base, axis)
    exponents = linspace(start, stop, num, endpoint, dtype=_if_wide(dtype), axis=axis)
    values = c.power(base, exponents)
    return values if dtype is None else c.astype(values, dtypes.as_dtype(dtype))


@tiered
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Values in geometric progression from start to stop.

    Shapes: start, stop [*B] -> [num, *B], the new axis at `axis`; an end of 0 gives NaN.
    Types:  real ends of different signs give NaN; complex ends give a spiral.
    Errors: ArgumentError if an argument is not an array or `num` is not an integer; DtypeError for
            an unknown dtype; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.geomspace(1.0, 8.0, 4)
    Array([1., 2., 4., 8.], f32[4], cpu:0)
    """
    ends = _in_floats("geomspace", (start, stop), _if_wide(dtype))
    kind = type_of(ends[0])
    shape = _common_shape(ends)
    first, last = (ops.cast(broadcast_to("geomspace", x, shape), family.wide(kind.dtype)) for x in ends)
    logs = linspace(family.zeros_like(first), _log_ratio(first, last), num, endpoint, axis=axis)
    at = c.normalised_axis("geomspace", axis, type_of(logs))
    first, last = (broadcast_to("geomspace", c.expand_dims(x, at), type_of(logs).shape) for x in (first, last))
    # In two steps where one would leave the range of the dtype.
    is_near = ops.lt(ops.abs(logs), constant(_range(logs), ops.abs(logs)))
    one, half = constant(1, logs), constant(0.5, logs)
    factor = ops.exp(ops.mul(logs, ops.select(is_near, one, half)))
    out = ops.mul(ops.mul(first, factor), ops.select(is_near, one, factor))
    number = ops.iota(shape=type_of(logs).shape, axis=at, dtype=dtypes.i32)
    # The ends are exact: the first one stays a number if the last is not finite.
    out = ops.select(ops.eq(number, constant(0, number)), first, out)
    if endpoint and num > 1:
        out = ops.select(ops.eq(number, constant(num - 1, number)), last, out)
    return c.astype(out, kind.dtype if dtype is None else dtypes.as_dtype(dtype))


def _log_ratio(start: Value, stop: Value) -> Array:
    """log(stop / start), where the quotient itself may leave the range of its dtype."""
    sizes = [c.astype(ops.abs(x), type_of(x).dtype) for x in (stop, start)]
    signs = ops.div(*map(ops.div, (stop, start), sizes))
    gap = ops.sub(*map(ops.log, sizes))
    is_near = ops.lt(ops.abs(gap), constant(_range(gap), ops.abs(gap)))
    # The quotient keeps more digits. Elsewhere it is 1, so that its derivatives are finite.
    quotient = ops.div(*(ops.select(is_near, size, constant(1, size)) for size in sizes))
    return ops.add(ops.select(is_near, ops.log(quotient), gap), ops.log(signs))


def _range(x: ArrayLike) -> float:
    """The logarithm of a factor up to which numbers and their reciprocals are normal."""
    return -math.log(float(finfo(type_of(x).dtype).tiny))


def _common_shape(values: Sequence[Value]) -> Shape:
    return broadcast_shape("geomspace", *(type_of(v).shape for v in values))
