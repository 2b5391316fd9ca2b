"""Movement: transpose, slice, pad, reverse, concatenate. Pure index maps; none becomes a kernel.

`reshape` and `broadcast` are in family.py, which every rule rests on. Axes are normalised and
sizes are explicit here; NumPy's conveniences live in `rune.numpy`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.jax_names import Params, Translation
from rune.core.lower import Bounds, Piece, Source, View
from rune.core.primitive import Joint, Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, Value
from rune.dims import Size, at_most
from rune.errors import ShapeError
from rune.ops.arithmetic import select, zero_like
from rune.ops.family import Batched, broadcast, fit, reduce_sum, reshape, same_dtype, types_text, view_of, zeros_like

if TYPE_CHECKING:
    from rune.array import Array

# --- transpose --------------------------------------------------------------------------------


def _transpose_type(x: ArrayType, *, permutation: tuple[int, ...]) -> ArrayType:
    if sorted(permutation) != list(range(x.ndim)):
        raise ShapeError(f"transpose: cannot transpose {x} (permutation {permutation})")
    return x.with_shape(tuple(x.shape[p] for p in permutation))


def inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `permutation`."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


transpose: Primitive = Primitive(
    "transpose",
    "movement",
    _transpose_type,
    lambda x, *, permutation: x.transpose(permutation),
    jvp=(lambda dx, x, y, *, permutation: transpose(dx, permutation=permutation),),
    transpose=lambda ct, linear, x, *, permutation: [transpose(ct, permutation=inverse(permutation))],
    batch=lambda batched, size, x, *, permutation: (transpose(x, permutation=(0, *(p + 1 for p in permutation))), True),
    lower=View(lambda indices, x, *, permutation: view_of(tuple(indices[i] for i in inverse(permutation)))),
)


# --- slice ------------------------------------------------------------------------------------


def _slice_type(x: ArrayType, *, start: Shape, limit: Shape, stride: tuple[int, ...]) -> ArrayType:
    if not len(start) == len(limit) == len(stride) == x.ndim or any(s < 1 for s in stride):
        raise ShapeError(f"slice: cannot slice {x} (start {start}, limit {limit}, stride {stride})")
    for axis, (low, high, size) in enumerate(zip(start, limit, x.shape, strict=True)):
        inside = low == high or (0 <= low and low <= high and high <= size)
        if not inside:
            raise ShapeError(f"slice: cannot slice {x} (axis {axis}: {low} to {high} of {size})")
    return x.with_shape(tuple((h - lo + s - 1) // s for lo, h, s in zip(start, limit, stride, strict=True)))


def slicing(
    x: ArrayType, *, start: tuple[int, ...], limit: tuple[int, ...], stride: tuple[int, ...]
) -> Callable[[np.ndarray], np.ndarray]:
    """The slice of arrays of one type, as a NumPy function."""
    return itemgetter(tuple(slice(*bounds) for bounds in zip(start, limit, stride, strict=True)))


def _slice_transpose(
    ct: Value, linear: Batched, x: ArrayType, *, start: Shape, limit: Shape, stride: tuple[int, ...]
) -> list[Array]:
    sizes = type_of(ct).shape
    spread = [(n - 1) * s + 1 if n != 0 else 0 for n, s in zip(sizes, stride, strict=True)]
    high = tuple(d - lo - n for d, lo, n in zip(x.shape, start, spread, strict=True))
    interior = tuple(s - 1 for s in stride)
    return [pad(ct, zero_like(ct), low=start, high=high, interior=interior)]


def _slice_batch(
    batched: Batched, size: Size, x: Value, *, start: Shape, limit: Shape, stride: tuple[int, ...]
) -> tuple[Array, bool]:
    return slice_(x, start=(0, *start), limit=(size, *limit), stride=(1, *stride)), True


def _of_strides(strides: Sequence[int] | None, params: Params) -> Params:
    return {"stride": tuple(strides or [1] * len(params["start_indices"]))}


slice_: Primitive = Primitive(
    "slice",
    "movement",
    _slice_type,
    lambda x, *, start, limit, stride: x[tuple(slice(*bounds) for bounds in zip(start, limit, stride, strict=True))],
    jvp=(lambda dx, x, y, **params: slice_(dx, **params),),
    transpose=_slice_transpose,
    batch=_slice_batch,
    lower=View(
        lambda indices, x, *, start, limit, stride: view_of(
            tuple(i * s + lo for i, s, lo in zip(indices, stride, start, strict=True))
        )
    ),
    jax_names={
        "start_indices": "start",
        "limit_indices": "limit",
        "strides": Translation(lambda params: params["stride"], _of_strides),
    },
)


# --- pad --------------------------------------------------------------------------------------


def _pad_type(x: ArrayType, value: ArrayType, *, low: Shape, high: Shape, interior: tuple[int, ...]) -> ArrayType:
    same_dtype("pad", x, value)
    fits = len(low) == len(high) == len(interior) == x.ndim and value.shape == ()
    if not fits or any(i < 0 for i in interior):
        raise ShapeError(f"pad: cannot pad {types_text((x, value))} (low {low}, high {high}, interior {interior})")
    shape = tuple(_padded(d, lo, hi, gap) for d, lo, hi, gap in zip(x.shape, low, high, interior, strict=True))
    for axis, size in enumerate(shape):
        if size < 0:
            raise ShapeError(f"pad: cannot pad {x} (axis {axis}: size would be {size})")
    return x.with_shape(shape)


def behind(size: Size, high: int, interior: int) -> Size:
    """The padding after an axis; an axis that may be empty has no gaps, not N - 1 = -1 of them."""
    if isinstance(size, int) or interior == 0 or at_most(1, size):
        return high
    return high + interior * (1 // (size + 1))


def _padded(size: Size, low: Size, high: Size, interior: int) -> Size:
    spread = size if interior == 0 or size == 0 else (size - 1) * (interior + 1) + 1
    return spread + low + high


def padding(
    x: ArrayType, value: ArrayType, *, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """The padding of arrays of one shape, as a function of NumPy; None for symbolic sizes."""
    sizes = tuple(d for d in x.shape if isinstance(d, int))
    return None if x.is_symbolic else _padding(sizes, low, high, interior)


def _padding(
    sizes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    shape, places = tuple(map(_padded, sizes, low, high, interior)), map(_places, sizes, low, high, interior)
    source, target = zip(*places, strict=True) if sizes else ((), ())

    def padded(x: np.ndarray, value: np.ndarray) -> np.ndarray:
        out = np.full(shape, value, x.dtype)
        out[target] = x[source]
        return out

    return padded if any((*low, *high, *interior)) else lambda x, value: x.copy()


def _places(size: int, low: int, high: int, gap: int) -> tuple[slice, slice]:
    """The elements of an axis that remain, and their places in the result."""
    # Element i goes to low + i * step, which must be in the result.
    step = gap + 1
    first = max(0, -(low // step))
    end = max(first, min(size, (_padded(size, low, high, gap) - 1 - low) // step + 1))
    start = low + first * step
    return slice(first, end), slice(start, start + (end - first) * step, step) if first < end else slice(0)


def _pad_transpose(
    ct: Value, linear: Batched, x: ArrayType, value: Value, *, low: Shape, high: Shape, interior: tuple[int, ...]
) -> list[Array | None]:
    """The cotangent of x is the padded cotangent cropped; that of the value is the sum of the
    rest.
    """
    cotangents = [_crop(ct, low, high, interior) if linear[0] else None, None]
    if linear[1]:
        shape = x.shape if linear[0] else type_of(x).shape
        inside = _where_padded(shape, low=low, high=high, interior=interior)
        padding = select(inside, zero_like(ct), ct)
        cotangents[1] = reduce_sum(padding, axes=tuple(range(type_of(ct).ndim)))
    return cotangents


def _where_padded(shape: Shape, **params: object) -> Array:
    """Where a padded array of `shape` holds its own elements, as bool."""
    yes, no = np.ones((), np.bool_), np.zeros((), np.bool_)
    return pad(fit(yes, shape), no, **params)


def _crop(ct: Value, low: Shape, high: Shape, interior: tuple[int, ...]) -> Array:
    negative_low, negative_high = tuple(-lo for lo in low), tuple(-hi for hi in high)
    zeros = (0,) * len(low)
    with_gaps = pad(ct, zero_like(ct), low=negative_low, high=negative_high, interior=zeros)
    if all(gap == 0 for gap in interior):
        return with_gaps
    shape = type_of(with_gaps).shape
    return slice_(with_gaps, start=zeros, limit=shape, stride=tuple(g + 1 for g in interior))


def _pad_jvp(tangents: Sequence[Value | None], args: Sequence[Value], y: Value, **params: object) -> Array:
    (dx, dv), x = tangents, args[0]
    return pad(zeros_like(x) if dx is None else dx, zero_like(x) if dv is None else dv, **params)


def _pad_batch(
    batched: Batched, size: Size, x: Value, value: Value, *, low: Shape, high: Shape, interior: tuple[int, ...]
) -> tuple[Array, bool]:
    if not batched[0]:
        shape = type_of(x).shape
        x = broadcast(x, shape=(size, *shape), axes=tuple(range(1, len(shape) + 1)))
    params = {"low": (0, *low), "high": (0, *high), "interior": (0, *interior)}
    if not batched[1]:
        return pad(x, value, **params), True
    # A padding value per lane: pad a mask, and take the lane's value where it is false.
    array = pad(x, zero_like(x), **params)
    mask = _where_padded(type_of(x).shape, **params)
    return select(mask, array, broadcast(value, shape=type_of(array).shape, axes=(0,))), True


def _pad_view(
    indices: tuple, x: ArrayType, value: ArrayType, *, low: Shape, high: Shape, interior: tuple[int, ...]
) -> Source:
    where, index = [], []
    for i, size, lo, hi, gap in zip(indices, x.shape, low, high, interior, strict=True):
        if all(isinstance(n, int) and n == 0 for n in (lo, hi, gap)):
            # No condition: an axis without padding can be split over devices.
            index.append(i)
            continue
        inner = i - lo
        where.append(Bounds(inner, 0, _padded(size, 0, 0, gap)))
        if gap != 0:
            where.append(Bounds(inner % (gap + 1), 0, 1))
        index.append(inner // (gap + 1))
    return Source((Piece(0, tuple(index), tuple(where)),), fill=1)


def _padding_config(params: Params) -> tuple[tuple[int, int, int], ...]:
    return tuple(zip(params["low"], params["high"], params["interior"], strict=True))


def _of_padding_config(config: Sequence[tuple[int, int, int]], params: Params) -> Params:
    return {name: tuple(c[i] for c in config) for i, name in enumerate(("low", "high", "interior"))}


pad: Primitive = Primitive(
    "pad",
    "movement",
    _pad_type,
    lambda x, value, *, low, high, interior: _padding(x.shape, low, high, interior)(x, value),
    jvp=Joint(_pad_jvp),
    transpose=_pad_transpose,
    batch=_pad_batch,
    lower=View(_pad_view),
    jax_names={"padding_config": Translation(_padding_config, _of_padding_config)},
)


# --- reverse ----------------------------------------------------------------------------------


def _reverse_type(x: ArrayType, *, axes: tuple[int, ...]) -> ArrayType:
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ShapeError(f"reverse: cannot reverse {x} (axes {axes})")
    return x


def _reverse_view(indices: tuple, x: ArrayType, *, axes: tuple[int, ...]) -> Source:
    return view_of(tuple(d - 1 - i if a in axes else i for a, (i, d) in enumerate(zip(indices, x.shape, strict=True))))


_ALL, _BACKWARDS = slice(None), slice(None, None, -1)

reverse: Primitive = Primitive(
    "reverse",
    "movement",
    _reverse_type,
    lambda x, *, axes: x[(*[_BACKWARDS if axis in axes else _ALL for axis in range(x.ndim)], ...)],
    jvp=(lambda dx, x, y, *, axes: reverse(dx, axes=axes),),
    transpose=lambda ct, linear, x, *, axes: [reverse(ct, axes=axes)],
    batch=lambda batched, size, x, *, axes: (reverse(x, axes=tuple(a + 1 for a in axes)), True),
    lower=View(_reverse_view),
    jax_names={"dimensions": "axes"},
)


# --- concatenate ------------------------------------------------------------------------------


def _concatenate_type(*types: ArrayType, axis: int) -> ArrayType:
    dtype = same_dtype("concatenate", *types)
    first = types[0].shape
    for other in types[1:]:
        if len(other.shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(first, other.shape)) if i != axis
        ):
            raise ShapeError(
                f"concatenate: cannot join {types_text(types)} along axis {axis} (all other axes must agree)"
            )
    total: Size = 0
    for t in types:
        total = total + t.shape[axis]
    shape = (*first[:axis], total, *first[axis + 1 :])
    return ArrayType(shape, dtype, all(t.weak for t in types))


def _concatenate_jvp(tangents: Sequence[Value | None], args: Sequence[Value], y: Value, *, axis: int) -> Array:
    """One concatenation of all tangents; those that are zero become arrays of zeros."""
    arrays = [fit(zero_like(a), type_of(a).shape) if t is None else t for t, a in zip(tangents, args, strict=True)]
    return concatenate(*arrays, axis=axis)


def _concatenate_transpose(ct: Value, linear: Batched, *inputs: Any, axis: int) -> list[Array | None]:
    cotangents, start = [], 0
    for is_linear, x in zip(linear, inputs, strict=True):
        size = type_of(x).shape[axis] if not is_linear else x.shape[axis]
        cotangents.append(part(ct, axis, start, start + size) if is_linear else None)
        start = start + size
    return cotangents


def part(a: Operand, axis: int, start: Size, limit: Size, stride: int = 1) -> Array:
    """The elements start to limit of one axis, every `stride`th; both are sizes."""
    shape = type_of(a).shape
    axis %= len(shape)
    low = tuple(start if i == axis else 0 for i in range(len(shape)))
    high = tuple(limit if i == axis else d for i, d in enumerate(shape))
    steps = tuple(stride if i == axis else 1 for i in range(len(shape)))
    return slice_(a, start=low, limit=high, stride=steps)


def spread_batches(batched: Batched, size: Size, args: Sequence[Value]) -> list[Value]:
    """Every argument with a leading batch axis; those without one are broadcast."""
    return [a if b else repeat_lane(a, size) for a, b in zip(args, batched, strict=True)]


def move_axis(x: Operand, source: int, target: int) -> Any:
    """`x` with one axis moved."""
    order = [i for i in range(type_of(x).ndim) if i != source]
    order.insert(target, source)
    return x if source == target else transpose(x, permutation=tuple(order))


def repeat_lane(x: Operand, size: Size) -> Array:
    """`x` with a new leading axis of `size`."""
    shape = type_of(x).shape
    return broadcast(x, shape=(size, *shape), axes=tuple(range(1, len(shape) + 1)))


def _concatenate_view(indices: tuple, *types: ArrayType, axis: int) -> Source:
    pieces, start = [], 0
    for number, t in enumerate(types):
        end = start + t.shape[axis]
        index = tuple(i - start if a == axis else i for a, i in enumerate(indices))
        pieces.append(Piece(number, index, (Bounds(indices[axis], start, end),)))
        start = end
    return Source(tuple(pieces))


concatenate: Primitive = Primitive(
    "concatenate",
    "movement",
    _concatenate_type,
    lambda *xs, axis: np.concatenate(xs, axis),
    jvp=Joint(_concatenate_jvp),
    transpose=_concatenate_transpose,
    batch=lambda batched, size, *xs, axis: (concatenate(*spread_batches(batched, size, xs), axis=axis + 1), True),
    lower=View(_concatenate_view),
    jax_names={"dimension": "axis"},
)

PRIMITIVES = (broadcast, reshape, transpose, slice_, pad, reverse, concatenate)
