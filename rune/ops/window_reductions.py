"""reduce_window: a reduction over every window that slides over an array.

One equation until lowering; then the windows are a view of the padded array (sliding.py) and the
reduction runs over their axes: a single kernel, whatever the rank. Padding, and the gaps of
`base_dilation`, hold the identity of the reduction: they never win and never count.

The derivative of a maximum or minimum goes to the first element of the window, in row-major order,
that equals it, or to the first NaN if the window has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size, product
from rune.errors import ArgumentError, ShapeError
from rune.ops.arithmetic import eq, select, zero_like
from rune.ops.creation import iota
from rune.ops.family import KINDS, Batched, not_linear, reduce_sum, require, reshape, wide
from rune.ops.movement import pad
from rune.ops.reduction import argmax, argmin, expand_axes, reduce_and, reduce_max, reduce_min, reduce_or, reduce_prod
from rune.ops.scalars import order_limits
from rune.ops.sliding import reach, window_count, windows
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.array import Array

Ints = tuple[int, ...]
Pads = tuple[tuple[Size, Size], ...]


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative operation with an identity."""

    reduction: Primitive
    ufunc: np.ufunc
    kind: str
    identity: Callable[[np.dtype], Any]


MONOIDS: dict[str, Monoid] = {
    "add": Monoid(reduce_sum, np.add, "numeric", lambda dtype: 0),
    "mul": Monoid(reduce_prod, np.multiply, "numeric", lambda dtype: 1),
    "max": Monoid(reduce_max, np.maximum, "ordered", lambda dtype: order_limits(dtype)[0]),
    "min": Monoid(reduce_min, np.minimum, "ordered", lambda dtype: order_limits(dtype)[1]),
    "and": Monoid(
        reduce_and,
        np.bitwise_and,
        "bool or integer",
        lambda dtype: True if dtype == dtypes.bool_ else np.array(-1).astype(dtype)[()],
    ),
    "or": Monoid(reduce_or, np.bitwise_or, "bool or integer", lambda dtype: 0),
}


@dataclass(frozen=True, slots=True)
class Slide:
    """How windows slide, by axis. All parameters of `reduce_window` except the name of the
    monoid.
    """

    window: Shape
    strides: Ints
    padding: Pads
    base_dilation: Ints
    window_dilation: Ints

    def with_lane(self) -> Slide:
        """The same with a leading batch axis."""
        return Slide(
            (1, *self.window),
            (1, *self.strides),
            ((0, 0), *self.padding),
            (1, *self.base_dilation),
            (1, *self.window_dilation),
        )

    @property
    def axes(self) -> Ints:
        """The axes along which windows hold more than single elements."""
        return tuple(
            a
            for a, (k, s) in enumerate(zip(self.window, self.strides, strict=True))
            if not (s == 1 and isinstance(k, int) and k == 1)
        )

    @property
    def pads(self) -> dict[str, tuple]:
        """The parameters of `pad` for the array over which windows slide."""
        return {
            "low": tuple(lo for lo, _ in self.padding),
            "high": tuple(hi for _, hi in self.padding),
            "interior": tuple(d - 1 for d in self.base_dilation),
        }

    @property
    def is_padded(self) -> bool:
        """Whether the padding adds or crops anything."""
        return any(v != 0 for values in self.pads.values() for v in values)


def _slide(params: dict[str, Any]) -> Slide:
    return Slide(**params)


def counts(shape: Shape, slide: Slide) -> Shape:
    """The number of windows along every axis. Errors: ShapeError for an empty window."""
    numbers = []
    for axis, size in enumerate(shape):
        low, high = slide.padding[axis]
        length = reach(size, slide.base_dilation[axis]) + low + high
        at = slide.strides[axis], slide.window_dilation[axis]
        numbers.append(window_count(length, slide.window[axis], *at))
    return tuple(numbers)


def _type_rule(x: ArrayType, *, combine: str, **params: object) -> ArrayType:
    if combine not in MONOIDS:
        raise ArgumentError(f"reduce_window: cannot combine by {combine!r} (one of {', '.join(MONOIDS)})")
    slide, monoid = _slide(params), MONOIDS[combine]
    require("reduce_window", KINDS[monoid.kind], monoid.kind, x)
    fields = (slide.window, slide.strides, slide.padding, slide.base_dilation)
    ranks = {len(f) for f in (*fields, slide.window_dilation)}
    steps = (*slide.strides, *slide.base_dilation, *slide.window_dilation)
    if ranks != {x.ndim} or any(s < 1 for s in steps) or any(k < 1 for k in slide.window):
        raise ShapeError(
            f"reduce_window: cannot slide over {x} (window {slide.window}, strides "
            f"{slide.strides}, padding {slide.padding}, dilations {slide.base_dilation} and "
            f"{slide.window_dilation}; one positive number per axis required)"
        )
    return x.with_shape(counts(x.shape, slide))


def _laid_out(x: Value, slide: Slide, fill: Value) -> tuple[Value, Ints]:
    """All windows of x, and those axes of the result that run within a window."""
    array = pad(x, fill, **slide.pads) if slide.is_padded else x
    axes = slide.axes
    sizes = tuple(slide.window[a] for a in axes)
    strides, dilations = (tuple(values[a] for a in axes) for values in (slide.strides, slide.window_dilation))
    ndim = type_of(x).ndim
    view = windows(array, axes, sizes, strides, dilations)
    return view, tuple(range(ndim, ndim + len(axes)))


def _expand(x: Value, *, combine: str, **params: object) -> Array:
    monoid, dtype = MONOIDS[combine], type_of(x).dtype
    view, axes = _laid_out(x, _slide(params), literal(monoid.identity(dtype), dtype))
    return monoid.reduction(view, axes=axes)


def _reference(x: np.ndarray, *, combine: str, **params: object) -> np.ndarray:
    slide, monoid = _slide(params), MONOIDS[combine]
    dtype = wide(x.dtype) if combine in ("add", "mul") else x.dtype
    fill = np.asarray(monoid.identity(x.dtype)).astype(x.dtype)
    assert pad.reference is not None
    array = pad.reference(x, fill, **slide.pads) if slide.is_padded else np.asarray(x)
    for axis in slide.axes:  # one axis after another: the cost is the sum of the sizes, not their product
        array = _reduce_axis(array, axis, slide, monoid.ufunc, dtype)
    return np.ascontiguousarray(array).astype(x.dtype, copy=False)


def _reduce_axis(x: np.ndarray, axis: int, slide: Slide, ufunc: np.ufunc, dtype: np.dtype) -> np.ndarray:
    stride, dilation, size = slide.strides[axis], slide.window_dilation[axis], slide.window[axis]
    assert isinstance(size, int)
    count = window_count(x.shape[axis], size, stride, dilation)
    assert isinstance(count, int)
    total: Any = None
    for k in range(size):
        part = slice(k * dilation, k * dilation + max(count - 1, 0) * stride + min(count, 1), stride)
        elements = x[(slice(None),) * axis + (part,)]
        total = elements.astype(dtype) if total is None else ufunc(total, elements, dtype=dtype)
    return total


# --- derivatives ------------------------------------------------------------------------------


def _jvp(dx: Value, x: Value, y: Value, *, combine: str, **params: object) -> Array:
    if combine == "add":
        return reduce_window(dx, combine=combine, **params)
    if combine == "mul":
        return _product_jvp(dx, x, y, _slide(params))
    return _first_jvp(dx, x, _slide(params), combine)


def _product_jvp(dx: Value, x: Value, y: Value, slide: Slide) -> Array:
    one = literal(1, type_of(x).dtype)
    (primal, axes), (tangent, _) = _laid_out(x, slide, one), _laid_out(dx, slide, zero_like(dx))
    assert isinstance(reduce_prod.jvp, tuple)
    rule = reduce_prod.jvp[0]
    assert callable(rule)
    return rule(tangent, primal, y, axes=axes)


def _first_jvp(dx: Value, x: Value, slide: Slide, combine: str) -> Array:
    dtype = type_of(x).dtype
    primal_windows, axes = _laid_out(x, slide, literal(MONOIDS[combine].identity(dtype), dtype))
    tangents, _ = _laid_out(dx, slide, zero_like(dx))
    outer = type_of(primal_windows).shape[: len(type_of(primal_windows).shape) - len(axes)]
    sizes = type_of(primal_windows).shape[len(outer) :]
    flat = (*outer, product(sizes))
    last = len(outer)
    search = argmax if combine == "max" else argmin
    first = search(reshape(primal_windows, shape=flat), axis=last, dtype=dtypes.i32)
    position = iota(shape=flat, axis=last, dtype=dtypes.i32)
    is_first = eq(position, expand_axes(first, flat, (last,)))
    tangents = reshape(tangents, shape=flat)
    return reduce_sum(select(is_first, tangents, zero_like(dx)), axes=(last,))


def _transpose(ct: Value, linear: Batched, x: ArrayType, *, combine: str, **params: object) -> list[Array]:
    """For a sum: every element gets the cotangents of all windows that contain it."""
    if combine != "add":
        raise not_linear(f"reduce_window of {x}", f"combine={combine!r} is not linear")
    slide = _slide(params)
    padding = tuple(_back(type_of(ct).shape[a], x.shape[a], slide, a) for a in range(x.ndim))
    back = reduce_window(
        ct,
        combine="add",
        window=slide.window,
        strides=slide.base_dilation,
        padding=padding,
        base_dilation=slide.strides,
        window_dilation=slide.window_dilation,
    )
    return [back]


def _back(count: Size, size: Size, slide: Slide, axis: int) -> tuple[Size, Size]:
    low = reach(slide.window[axis], slide.window_dilation[axis]) - 1 - slide.padding[axis][0]
    inner = reach(count, slide.strides[axis])
    span = reach(size, slide.base_dilation[axis])
    return low, span + reach(slide.window[axis], slide.window_dilation[axis]) - 1 - inner - low


def _batch(batched: Batched, size: Size, x: Value, *, combine: str, **params: object) -> tuple[Array, bool]:
    slide = _slide(params).with_lane()
    return reduce_window(x, combine=combine, **fields_of(slide)), True


def fields_of(slide: Slide) -> dict[str, Any]:
    """The parameters of `reduce_window`, by name."""
    names = ("window", "strides", "padding", "base_dilation", "window_dilation")
    return {name: getattr(slide, name) for name in names}


reduce_window: Primitive = Primitive(
    "reduce_window",
    "reduction",
    _type_rule,
    _reference,
    jvp=(_jvp,),
    transpose=_transpose,
    batch=_batch,
    expand=_expand,
)

PRIMITIVES = (reduce_window,)
