"""Sliding windows as views: shear, and its transpose, unshear.

    shear     y[…, o, …, k] = x[…, o·stride + k·dilation, …, k]
    unshear   x[…, i, …, k] = y[…, o, …, k] where i = o·stride + k·dilation, else 0

The window axes k are last, one for each of `axes`. `windows(x)` shears x repeated along k, which
exposes every window of x without moving an element: reductions and dots read it in place. Its
transpose sums the overlaps: a sum over k of an unshear instead of a scatter. Unshear needs no
primitive: with its gaps filled by zeros it is a shear of stride 1, from the last element of a
window to the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Source, View
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, Value
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops.arithmetic import zero_like
from rune.ops.family import Batched, stretch, view_of
from rune.ops.index_dims import up
from rune.ops.movement import pad, reverse

if TYPE_CHECKING:
    from rune.array import Array

Ints = tuple[int, ...]
ADDED = 2  # `dtype.isbuiltin` of a dtype that a library adds to NumPy, as bf16


def reach(size: Size, dilation: int) -> Size:
    """The elements that a window of `size` spans."""
    return (size - 1) * dilation + 1 if size != 0 else 0


def window_count(length: Size, size: Size, stride: int, dilation: int) -> Size:
    """How many windows fit in `length` elements."""
    free = length - reach(size, dilation)
    if isinstance(free, int):
        return max(free // stride + 1, 0)
    return free // stride + 1


# --- shear ------------------------------------------------------------------------------------


def _check(name: str, x: ArrayType, axes: Ints, strides: Ints, dilations: Ints) -> None:
    rank = len(axes)
    fits = len(strides) == len(dilations) == rank <= x.ndim and len(set(axes)) == rank
    outer = all(0 <= a < x.ndim - rank for a in axes)
    if not (fits and outer) or any(s < 1 for s in (*strides, *dilations)):
        raise ShapeError(
            f"{name}: cannot slide over {x} (axes {axes}, strides {strides}, dilations "
            f"{dilations}; the last {rank} axes are the windows')"
        )


def _window_sizes(x: ArrayType, axes: Ints) -> Shape:
    return x.shape[x.ndim - len(axes) :]


def _with_axes(shape: Shape, axes: Ints, sizes: Sequence[Size]) -> Shape:
    sizes_by_axis = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        sizes_by_axis[axis] = size
    return tuple(sizes_by_axis)


def _shear_type(x: ArrayType, *, axes: Ints, strides: Ints, dilations: Ints) -> ArrayType:
    _check("shear", x, axes, strides, dilations)
    sizes = _window_sizes(x, axes)
    counts = [window_count(x.shape[a], k, s, d) for a, k, s, d in zip(axes, sizes, strides, dilations, strict=True)]
    return x.with_shape(_with_axes(x.shape, axes, counts))


def _shear_reference(x: np.ndarray, *, axes: Ints, strides: Ints, dilations: Ints) -> np.ndarray:
    shape, steps = _sheared(x.shape, x.strides, axes, strides, dilations)
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    # NumPy makes strided views of its own dtypes only; unpickled ones are copies, of number 0.
    plain = x.view(f"u{x.dtype.itemsize}") if x.dtype.isbuiltin == ADDED else x
    if not plain.flags.c_contiguous:
        return np.lib.stride_tricks.as_strided(plain, shape, steps, writeable=False).view(x.dtype)
    return _strided(plain, shape, steps).view(x.dtype)


def _sheared(sizes: Ints, steps: Ints, axes: Ints, strides: Ints, dilations: Ints) -> tuple[Ints, Ints]:
    """The shape and the byte steps of the result, for those of the operand."""
    first, shape, new_steps = len(sizes) - len(axes), list(sizes), list(steps)
    for number, (axis, stride, dilation) in enumerate(zip(axes, strides, dilations, strict=True)):
        count = window_count(sizes[axis], sizes[first + number], stride, dilation)
        assert isinstance(count, int)
        shape[axis] = count
        new_steps[first + number] += dilation * steps[axis]
        new_steps[axis] *= stride
    return tuple(shape), tuple(new_steps)


def _strided(x: np.ndarray, shape: Ints, steps: Ints) -> np.ndarray:
    """A view of a contiguous array, in a third of the time of `as_strided`."""
    view: np.ndarray = np.ndarray(shape, x.dtype, x, 0, steps)
    view.flags.writeable = False
    return view


def shearing(x: ArrayType, *, axes: Ints, strides: Ints, dilations: Ints) -> Callable[[np.ndarray], np.ndarray] | None:
    """`shear` of arrays of one type, as a function of NumPy; None where it may be no view."""
    if x.is_symbolic or x.dtype.isbuiltin == ADDED:
        return None
    sizes = tuple(d for d in x.shape if isinstance(d, int))
    dense_steps = tuple(math.prod(sizes[k + 1 :]) * x.dtype.itemsize for k in range(x.ndim))
    shape, steps = _sheared(sizes, dense_steps, axes, strides, dilations)
    if 0 in shape:
        return None

    def view(x: np.ndarray) -> np.ndarray:
        if not x.flags.c_contiguous:
            return _shear_reference(x, axes=axes, strides=strides, dilations=dilations)
        return _strided(x, shape, steps)

    return view


def _shear_view(indices: tuple, x: ArrayType, *, axes: Ints, strides: Ints, dilations: Ints) -> Source:
    index, first = list(indices), x.ndim - len(axes)
    for number, (axis, stride, dilation) in enumerate(zip(axes, strides, dilations, strict=True)):
        index[axis] = indices[axis] * stride + indices[first + number] * dilation
    return view_of(tuple(index))


def _shear_transpose(
    ct: Value, linear: Batched, x: ArrayType, *, axes: Ints, strides: Ints, dilations: Ints
) -> list[Array]:
    sizes = tuple(x.shape[a] for a in axes)
    return [unshear(ct, axes, sizes, strides, dilations)]


shear: Primitive = Primitive(
    "shear",
    "movement",
    _shear_type,
    _shear_reference,
    jvp=(lambda dx, x, y, **params: shear(dx, **params),),
    transpose=_shear_transpose,
    batch=lambda batched, size, x, *, axes, **params: (shear(x, axes=up(axes), **params), True),
    lower=View(_shear_view),
)


def unshear(y: Value, axes: Ints, sizes: Shape, strides: Ints, dilations: Ints) -> Array:
    """Each window put back where `shear` took it from, 0 everywhere else.

    Shapes: y [*B, *O, *K] -> [*B, *sizes, *K], `axes` naming where O and `sizes` stand.
    """
    shape = type_of(y).shape
    first, rank = len(shape) - len(axes), len(shape)
    low: list[Size] = [0] * rank
    high: list[Size] = [0] * rank
    interior = [0] * rank
    for number, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        low[axis] = (shape[first + number] - 1) * dilations[number]
        high[axis] = size - reach(shape[axis], strides[number])
        interior[axis] = strides[number] - 1
    spread = pad(y, zero_like(y), low=tuple(low), high=tuple(high), interior=tuple(interior))
    inner = tuple(range(first, rank))
    ones = (1,) * len(axes)
    reversed_windows = shear(reverse(spread, axes=inner), axes=axes, strides=ones, dilations=dilations)
    return reverse(reversed_windows, axes=inner)


def windows(x: Operand, axes: Ints, sizes: Shape, strides: Ints, dilations: Ints) -> Array:
    """All windows along `axes`: those axes count windows, and the windows' own axes come last.

    Shapes: x [*B, *D] -> [*B, *O, *sizes], where O windows fit into D elements.
    """
    shape = type_of(x).shape
    return shear(stretch(x, (*shape, *sizes)), axes=axes, strides=strides, dilations=dilations)


PRIMITIVES = (shear,)
