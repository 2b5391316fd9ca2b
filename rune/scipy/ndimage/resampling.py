"""Interpolation between the elements of an array, and images shifted, rotated and scaled by it.

Modes are those of borders.py; "wrap" and "constant" mean what SciPy calls "grid-wrap" and
"grid-constant", as in JAX: between the last element and the one beyond it there is interpolation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.ops.conventions import normalised_axes
from rune.ops.family import wide
from rune.scipy.ndimage.borders import inside, number, per_axis, require_mode
from rune.scipy.sequences import from_sequences
from rune.scipy.special.arguments import reals
from rune.typing import ArrayLike, DTypeLike, Nested, Shape


def map_coordinates(
    input: Nested,
    coordinates: Array | Sequence[ArrayLike],
    order: int = 1,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """The values of `input` at coordinates between its elements.

    Shapes: input [N1, …, ND], coordinates D arrays [*T] (or one [D, *T]) -> [*T].
    order:  1 linear, 0 the nearest element.
    mode, cval: the elements beyond the border. "constant" is SciPy's "grid-constant", as in JAX:
            beyond the last element, values change linearly to `cval`; SciPy's "constant" jumps to
            it.
    Types:  of `input`; integers are rounded, halves away from 0.
    Errors: ShapeError if coordinates do not match, and for an empty input in a mode without `cval`;
            ArgumentError for an unknown order or mode.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import map_coordinates
    >>> map_coordinates(rnp.arange(4.0), [rnp.array([0.5, 2.0])], 1)
    Array([0.5, 2. ], f32[2], cpu:0)
    """
    x = rnp.asarray(input)
    where = [reals("map_coordinates", c)[0] for c in from_sequences(*coordinates)]
    if len(where) != x.ndim:
        raise ShapeError(f"map_coordinates: cannot take {len(where)} coordinates of {x.shape}")
    if order not in (0, 1):
        raise ArgumentError(f"map_coordinates: cannot use order={order} (0 or 1)")
    require_mode("map_coordinates", mode)
    if 0 in x.shape:
        return _of_nothing(x, where, mode, cval)
    choices = [_neighbours(at, size, order, mode) for at, size in zip(where, x.shape)]
    total: Any = 0.0
    for corner in itertools.product(*choices):
        weight: Array | float = 1.0
        is_known: Array | bool = True
        for _, share, known in corner:
            weight, is_known = weight * share, is_known & known
        value = x[tuple(place for place, _, _ in corner)]
        total = total + weight * rnp.where(is_known, value, cval)
    return _nearest_integers(total, x.dtype) if _is_whole(x.dtype) else rnp.astype(total, x.dtype)


def _is_whole(dtype: np.dtype) -> bool:
    return rnp.issubdtype(dtype, rnp.integer) or rnp.issubdtype(dtype, rnp.bool_)


def _nearest_integers(x: Array, dtype: DTypeLike) -> Array:
    """The nearest whole numbers, halves away from 0."""
    nearest = _rounded(x)
    return rnp.not_equal(nearest, 0) if rnp.issubdtype(dtype, rnp.bool_) else rnp.astype(nearest, dtype)


def _rounded(x: Array) -> Array:
    """The nearest whole numbers, halves away from 0. The sum x + 0.5 is itself rounded."""
    integral = rnp.trunc(x)
    return integral + rnp.where(rnp.abs(x - integral) >= 0.5, rnp.sign(x), 0.0)


def _of_nothing(x: Array, where: Sequence[Array], mode: str, cval: ArrayLike) -> Array:
    """The values beyond an empty input."""
    shape = rnp.broadcast_shapes(*(at.shape for at in where))
    if mode not in ("constant", "grid-constant") and 0 not in shape:
        raise ShapeError(f"map_coordinates: cannot interpolate {x.shape} (no elements)")
    return rnp.full(shape, cval, x.dtype)


def _neighbours(at: Array, size: Size, order: int, mode: str) -> list[tuple[Array, Array, Array | bool]]:
    """Positions to read along an axis, their weights, and whether they are in bounds."""
    low = _rounded(at) if order == 0 else rnp.floor(at)
    shares = [rnp.ones_like(at)] if order == 0 else [1.0 - (at - low), at - low]
    neighbours = []
    for step, share in enumerate(shares):
        place = (low + step).astype(rnp.int32)  # not a sum of integers, which would wrap
        known: Array | bool = True
        if mode in ("constant", "grid-constant"):
            known = (place >= 0) & (place < size)
        neighbours.append((inside(mode, place, size), share, known))
    return neighbours


def _grid(shape: Shape, dtype: DTypeLike) -> list[Array]:
    """The coordinates of all elements, axis by axis."""
    axes = [rnp.arange(n).astype(dtype) for n in shape]
    return list(rnp.meshgrid(*axes, indexing="ij"))


def _kind(x: Array) -> DTypeLike:
    """The dtype of coordinates: as precise as the numbers, and f32 at least, for long axes."""
    return wide(rnp.finfo(x.dtype).dtype) if rnp.issubdtype(x.dtype, rnp.inexact) else rnp.float32


def affine_transform(
    input: Nested,
    matrix: Nested,
    offset: ArrayLike | Sequence[float] = 0.0,
    output_shape: Shape | None = None,
    order: int = 1,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """The array whose element at o is that of `input` at matrix @ o + offset.

    matrix: [D, D]; [D] for a diagonal; or [D, D + 1] or [D + 1, D + 1], whose last column is the
            offset.
    order, mode: as map_coordinates: SciPy's default order is 3, and its "constant" gives `cval` at
            once beyond the last element.
    Shapes: input [N1, …, ND] -> output_shape, by default as input. Types: as input.
    Errors: ShapeError for another matrix.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import affine_transform
    >>> affine_transform(rnp.arange(3.0), rnp.array([1.0]), 1.0)
    Array([1., 2., 0.], f32[3], cpu:0)
    """
    x, turn = rnp.asarray(input), rnp.asarray(matrix)
    d = x.ndim
    if turn.shape in ((d, d + 1), (d + 1, d + 1)):
        turn, offset = turn[:d, :d], turn[:d, d]
    if turn.shape not in ((d,), (d, d)):
        raise ShapeError(f"affine_transform: cannot use matrix {turn.shape} on rank {d}")
    shape = x.shape if output_shape is None else tuple(output_shape)
    grid = _grid(shape, _kind(x))
    moves = per_axis("affine_transform", "offset", offset, range(d))
    if turn.ndim == 1:
        where = [turn[i] * grid[i] + moves[i] for i in range(d)]
    else:
        where = [sum((turn[i, j] * grid[j] for j in range(1, d)), turn[i, 0] * grid[0]) + moves[i] for i in range(d)]
    return map_coordinates(x, where, order, mode, cval)


def shift(
    input: Nested, shift: ArrayLike | Sequence[float], order: int = 1, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """`input` shifted by a number of elements, whole or not, along each axis.

    order, mode: as map_coordinates: SciPy's default order is 3, and its "constant" gives `cval` at
            once beyond the last element.
    Shapes: as input; shift [] or [D], one for each axis. Types: as input.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import shift
    >>> shift(rnp.arange(3.0), 1.0)
    Array([0., 0., 1.], f32[3], cpu:0)
    """
    x = rnp.asarray(input)
    moves = per_axis("shift", "shift", shift, range(x.ndim))
    where = [at - moves[i] for i, at in enumerate(_grid(x.shape, _kind(x)))]
    return map_coordinates(x, where, order, mode, cval)


def zoom(
    input: Nested,
    zoom: float | Sequence[float],
    order: int = 1,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    *,
    grid_mode: bool = False,
) -> Array:
    """`input` resampled to round(size * zoom) elements along each axis.

    zoom:  known while tracing, for all axes or each.   grid_mode: the distance that is stretched is
           that between the borders of the elements, instead of their centres.
    order, mode: as map_coordinates: SciPy's default order is 3, and its "constant" gives `cval` at
            once beyond the last element.
    Shapes: [N1, …, ND] -> [round(N1 zoom), …, round(ND zoom)]. Types: as input.
    Errors: ArgumentError if a zoom is not a number or is negative.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import zoom
    >>> zoom(rnp.array([0.0, 2.0]), 1.5)
    Array([0., 1., 2.], f32[3], cpu:0)
    """
    x = rnp.asarray(input)
    factors: list[Any] = [number("zoom", "zoom", f) for f in per_axis("zoom", "zoom", zoom, range(x.ndim))]
    if not all(0 <= f < math.inf for f in factors):
        raise ArgumentError(f"zoom: cannot use zoom={factors} (0 or more, and finite)")
    shape = tuple(round(n * f) for n, f in zip(x.shape, factors))
    where = []
    for at, old, new in zip(_grid(shape, _kind(x)), x.shape, shape):
        if grid_mode:
            where.append((at + 0.5) * (old / max(new, 1)) - 0.5)
        else:
            where.append(at * ((old - 1) / (new - 1) if new > 1 else 1.0))
    return map_coordinates(x, where, order, mode, cval)


def rotate(
    input: Nested,
    angle: float,
    axes: tuple[int, int] = (1, 0),
    reshape: bool = True,
    order: int = 1,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """`input` rotated by an angle in degrees in the plane of two axes.

    angle:   known while tracing.   reshape: the result is large enough for all of `input`.
    order, mode: as map_coordinates: SciPy's default order is 3, and its "constant" gives `cval` at
            once beyond the last element.
    Shapes: as input; with `reshape` both axes as long as needed. Types: as input.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import rotate
    >>> rnp.round(rotate(rnp.array([[1.0, 2.0]]), 90.0), 3)
    Array([[2.],
           [1.]], f32[2,1], cpu:0)
    """
    x = rnp.asarray(input)
    first, second = sorted(normalised_axes("rotate", axes, x.type))
    turn = math.radians(number("rotate", "angle", angle))
    c, s = math.cos(turn), math.sin(turn)
    plane = np.array([[c, s], [-s, c]])
    old = np.array([x.shape[first], x.shape[second]])
    new = _extent(plane, old) if reshape else old
    shape = list(x.shape)
    shape[first], shape[second] = (int(n) for n in new)
    offset = (old - 1) / 2 - plane @ ((new - 1) / 2)
    matrix, moves = np.eye(x.ndim), np.zeros(x.ndim)
    for i, a in enumerate((first, second)):
        moves[a] = offset[i]
        for j, b in enumerate((first, second)):
            matrix[a, b] = plane[i, j]
    kind = _kind(x)
    return affine_transform(x, rnp.asarray(matrix, kind), rnp.asarray(moves, kind), shape, order, mode, cval)


def _extent(plane: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The sizes of the smallest box around a rotated one."""
    rows, columns = sizes
    corners = plane @ np.array([[0, 0, rows, rows], [0, columns, 0, columns]])
    return (np.ptp(corners, axis=1) + 0.5).astype(int)
