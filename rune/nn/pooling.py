"""Pooling over one primitive, reduce_window, with windows of any number of dimensions.

The window's axes are the last ones of x; all before them are batches and channels. Fractional
pooling chooses regions of varying size at random (by a key), so that the result has any size.
"""

from __future__ import annotations

import math
from typing import Any

import rune.numpy as rnp
from rune import ops, random
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, DtypeError
from rune.nn.convolutions import Each, each, whole_numbers
from rune.nn.support import real
from rune.ops.conventions import distinct
from rune.ops.window_reductions import Slide, fields_of
from rune.random.streams import take_key
from rune.scipy.special.arguments import rounded, widened
from rune.typing import ArrayLike


def _window(name: str, x: Array, window: Each) -> tuple[int, ...]:
    """The window's sizes; a number stands for all axes but batch and channel."""
    many = max(x.ndim - 2, 1)
    sizes = (window,) * many if isinstance(window, int) else whole_numbers(name, "window", window)
    if len(sizes) > x.ndim:
        raise ArgumentError(f"{name}: cannot slide a window {sizes} over {x.type}")
    return sizes


def _ordered(name: str, x: ArrayLike) -> Array:
    """x as an array. Errors: DtypeError for bools and complex numbers, which have no maxima."""
    x = rnp.asarray(x)
    if x.dtype == bool or rnp.iscomplexobj(x):
        raise DtypeError(f"{name}: cannot take {x.type} (integers or floats required)")
    return x


def _slide(
    name: str, x: Any, sizes: tuple[int, ...], stride: Each | None, padding: Any, dilation: Each, ceil: bool
) -> tuple[Slide, tuple[Size, ...]]:
    """The parameters of reduce_window; how far `ceil` extends windows beyond the padding."""
    rank, outer = len(sizes), x.ndim - len(sizes)
    strides = sizes if stride is None else each(name, "stride", stride, rank)
    dilations = each(name, "dilation", dilation, rank)
    padding = (padding,) * rank if isinstance(padding, int) else whole_numbers(name, "padding", padding)
    pairs = [(p, p) if isinstance(p, int) else tuple(p) for p in padding]
    beyond = (0,) * rank
    if ceil:
        spatial = zip(x.shape[outer:], sizes, strides, dilations, pairs, strict=True)
        beyond = tuple(_beyond(*along_axis) for along_axis in spatial)
    ends = [(lo, hi + more) for (lo, hi), more in zip(pairs, beyond, strict=True)]
    unit = (1,) * outer
    return Slide(
        (*unit, *sizes), (*unit, *strides), ((0, 0),) * outer + tuple(ends), (1,) * x.ndim, (*unit, *dilations)
    ), beyond


def _beyond(size: Size, window: int, stride: int, dilation: int, pads: tuple[int, int]) -> Size:
    """Missing elements of the last window, if it starts within the array or its left padding."""
    low, high = pads
    span = (window - 1) * dilation + 1
    free = size + low + high - span
    count = -(-free // stride) + 1
    if (count - 1) * stride >= size + low:
        count -= 1
    return max((count - 1) * stride - free, 0)


def max_pool(
    x: ArrayLike,
    window: Each,
    stride: Each | None = None,
    padding: object = 0,
    dilation: Each = 1,
    ceil_mode: bool = False,
) -> Array:
    """The largest element of every window. Padding never counts.

    window: sizes along the last axes; a number stands for every axis after batch and channel.
    stride: by default the window's sizes.   padding: a number, one per axis, or pairs.
    ceil_mode: a last window may reach beyond the end, if it starts before it.
    The derivative goes to the first of equal elements, row-major.
    Shapes: x [*B, *S] -> [*B, *T].
    Types:  that of `x`.
    Errors: ArgumentError if `window` is not an integer or an argument is not an array; DtypeError
            for bools and complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.max_pool(rnp.arange(6.0)[None, None], 2)
    Array([[[1., 3., 5.]]], f32[1,1,3], cpu:0)
    """
    x = _ordered("max_pool", x)
    sizes = _window("max_pool", x, window)
    slide, _ = _slide("max_pool", x, sizes, stride, padding, dilation, ceil_mode)
    return ops.reduce_window(x, combine="max", **fields_of(slide))


def avg_pool(
    x: Any,
    window: Each,
    stride: Each | None = None,
    padding: object = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: float | None = None,
) -> Array:
    """The mean of every window.

    count_include_pad: padding counts as elements that are 0; else only elements of x count.
    divisor: divides all sums instead of the count of elements.
    window, stride, padding, ceil_mode: as for `max_pool`; places that `ceil_mode` adds beyond
            the padding never count.
    Shapes: x [*B, *S] -> [*B, *T].
    Types:  bools and integers become floats.
    Errors: ArgumentError if `window` is not an integer; DtypeError if an argument is not an
            array.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.avg_pool(rnp.arange(6.0)[None, None], 2)
    Array([[[0.5, 2.5, 4.5]]], f32[1,1,3], cpu:0)
    """
    x, dtype = widened(real(x))
    sizes = _window("avg_pool", x, window)
    slide, beyond = _slide("avg_pool", x, sizes, stride, padding, 1, ceil_mode)
    total = ops.reduce_window(x, combine="add", **fields_of(slide))
    pads = [p for pair in slide.padding for p in pair]
    counts: Array | float
    if divisor is not None:
        counts = divisor
    elif not any(beyond) and (count_include_pad or not any(pads)):
        counts = math.prod(sizes)
    else:
        counts = _counts(x, slide, beyond, count_include_pad)
    return rounded(total / counts, dtype)


def _counts(x: Any, slide: Slide, beyond: tuple[Size, ...], include_pad: bool) -> Array:
    """The number of elements that count in each window, for all batches and channels."""
    outer = x.ndim - len(beyond)
    inside = rnp.ones((*(1,) * outer, *x.shape[outer:]), x.dtype)
    pads = list(slide.padding)
    if include_pad:
        pad_pairs = [(lo, hi - more) for (lo, hi), more in zip(pads[outer:], beyond, strict=True)]
        inside = rnp.pad(inside, [*pads[:outer], *pad_pairs], constant_values=1)
        pads = [*pads[:outer], *((0, more) for more in beyond)]
    fields = fields_of(slide) | {"padding": tuple(pads)}
    return ops.reduce_window(inside, combine="add", **fields)


# --- to a given size --------------------------------------------------------------------------


def adaptive_avg_pool(x: Any, output_size: Each) -> Array:
    """Means of regions that divide the last axes evenly into `output_size`.

    Region i of n over L elements is floor(i L / n) … ceil((i + 1) L / n).
    Shapes: x [*B, *S] -> [*B, *output_size]. Types: bools and integers become floats.
    Errors: ArgumentError for a size below 1.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.adaptive_avg_pool(rnp.arange(5.0)[None, None], 2)
    Array([[[1., 3.]]], f32[1,1,2], cpu:0)
    """
    original, x = x, real(x)
    for axis, size in _targets("adaptive_avg_pool", x, output_size):
        starts, ends = _even(x.shape[axis], size)
        inside = _regions(x.shape[axis], starts, ends)
        weights = rnp.astype(inside, x.dtype) / rnp.sum(inside, 1, keepdims=True).astype(x.dtype)
        x = rnp.moveaxis(rnp.tensordot(x, weights, ([axis], [1])), -1, axis)
    return distinct(x, original)


def adaptive_max_pool(x: ArrayLike, output_size: Each) -> Array:
    """Maxima of the regions of `adaptive_avg_pool`.

    Shapes: x [*B, *S] -> [*B, *output_size]. Types: integers and floats, that of `x`.
    Errors: ArgumentError for a size below 1; DtypeError for bools and complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.adaptive_max_pool(rnp.arange(5.0)[None, None], 2)
    Array([[[2., 4.]]], f32[1,1,2], cpu:0)
    """
    original, x = x, _ordered("adaptive_max_pool", x)
    for axis, size in _targets("adaptive_max_pool", x, output_size):
        x = _max_of_regions(x, axis, *_even(x.shape[axis], size))
    return distinct(x, original)


def _targets(name: str, x: Array, output_size: Each) -> list[tuple[int, int]]:
    sizes = _window(name, x, output_size)
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise ArgumentError(f"{name}: cannot make {x.type} of size {sizes} (1 or more required)")
    return list(zip(range(x.ndim - len(sizes), x.ndim), sizes, strict=True))


def _even(length: Size, count: int) -> tuple[Array, Array]:
    index = rnp.arange(count)
    return index * length // count, -(-(index + 1) * length // count)


def _regions(length: Size, starts: Array, ends: Array) -> Array:
    """Which elements are in which region: bool [regions, length]."""
    places = rnp.arange(length)
    return (places >= starts[:, None]) & (places < ends[:, None])


def _max_of_regions(x: Array, axis: int, starts: Array, ends: Array) -> Array:
    inside = _regions(x.shape[axis], starts, ends)
    spread = rnp.moveaxis(x, axis, -1)[..., None, :]
    least = -rnp.inf if rnp.issubdtype(x.dtype, rnp.floating) else rnp.iinfo(x.dtype).min
    largest = rnp.max(rnp.where(inside, spread, least), -1)
    return rnp.moveaxis(largest, -1, axis)


def fractional_max_pool(
    x: ArrayLike,
    window: Each,
    output_size: Each | None = None,
    output_ratio: float | None = None,
    key: ArrayLike | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Maxima of windows whose starts are `output_size` steps of nearly equal, random length.

    key:  a key, or None to draw one from `with rune.random.seed(…)`; each batch and channel has
          the same regions.
    Shapes: x [*B, *S] -> [*B, *output_size]. Types: integers and floats, that of `x`.
    Errors: ArgumentError unless just one of output_size and output_ratio is given, and windows fit;
            DtypeError for bools and complex numbers.
    Source: Graham 2014, Fractional max-pooling, arXiv:1412.6071, the pseudorandom sequence.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> x = rnp.arange(9.0)[None, None]
    >>> nn.fractional_max_pool(x, 2, 5, key=rune.random.key(0)).shape
    (1, 1, 5)
    """
    original, x = x, _ordered("fractional_max_pool", x)
    sizes = _window("fractional_max_pool", x, window)
    outer = x.ndim - len(sizes)
    if output_size is not None and output_ratio is None:
        output_sizes = each("fractional_max_pool", "output_size", output_size, len(sizes))
    elif output_ratio is not None and output_size is None:
        output_sizes = tuple(int(n * output_ratio) for n in x.shape[outer:])
    else:
        raise ArgumentError("fractional_max_pool: cannot choose a size (one of output_size and output_ratio required)")
    offsets = random.uniform(take_key("fractional_max_pool", key, name), (len(sizes),))
    for number, (size, count) in enumerate(zip(sizes, output_sizes, strict=True)):
        axis = outer + number
        starts = _fractional(x.shape[axis], size, count, offsets[number])
        x = _max_of_regions(x, axis, starts, starts + size)
    return distinct(x, original)


def _fractional(length: Size, window: int, count: int, u: Array) -> Array:
    """Starts of `count` windows: the last one ends with the axis."""
    if count < 1 or window + count - 1 > length:
        raise ArgumentError(f"fractional_max_pool: cannot place {count} windows of {window} in {length} elements")
    if count == 1:
        return rnp.full((1,), length - window)
    alpha = (length - window) / (count - 1)
    index = rnp.arange(count)
    starts = rnp.floor((index + u) * alpha) - rnp.floor(u * alpha)
    return rnp.where(index == count - 1, length - window, rnp.astype(starts, "i32"))
