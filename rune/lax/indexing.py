"""Windows at positions known at run time: dynamic slices, gather, scatter.

A start that would make a dynamic slice leave the array is moved inside; negative starts count from
the end. `gather` and the scatters speak the language of XLA's, in which everything that indexing
can say is said by dimension numbers; `rune.numpy` and `x.at[...]` say most of it more plainly.
Source: XLA operation semantics, DynamicSlice, Gather and Scatter.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.control import while_loop
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.lax.arguments import alike, given_axes
from rune.lax.movement import expand_dims, squeeze
from rune.numpy.arguments import shape_of, value
from rune.ops import IndexDims
from rune.ops.family import size_value
from rune.ops.scalars import int_bounds

Axes = tuple[int, ...]

# --- dynamic slices ---------------------------------------------------------------------------


def _starts(name: str, x: Any, start_indices: Any, negative: bool | Sequence[bool]) -> list[Any]:
    """One start per axis as rank-0 integers, negative ones counted from the end if allowed."""
    type = type_of(x)
    given = list(start_indices) if not isinstance(start_indices, tuple) else start_indices
    if len(given) != type.ndim:
        raise ShapeError(f"{name}: cannot start in {type} at {len(given)} indices (one per axis)")
    allowed = [negative] * type.ndim if isinstance(negative, bool) else list(negative)
    if len(allowed) != type.ndim:
        raise ArgumentError(
            f"{name}: cannot use {len(allowed)} of allow_negative_indices for {type} (one per axis)"
        )
    starts = zip(given, type.shape, allowed, strict=True)
    return [_start(value(name, s), d, counts_back) for s, d, counts_back in starts]


def _start(start: Any, size: Any, counts_back: bool) -> Any:
    if type_of(start).dtype in dtypes.UNSIGNED or not counts_back:
        return start
    whole = size_value(size, type_of(start).dtype)
    return ops.select(ops.lt(start, literal_like(0, start)), ops.add(start, whole), start)


def dynamic_slice(
    operand: Any, start_indices: Any, slice_sizes: Sequence[Size], *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:  # fmt: skip
    """A window of static sizes that begins at `start_indices`.

    allow_negative_indices: whether those below 0 count from the end; else they count as 0.
    Shapes: operand [*S], start_indices int[] of each axis -> slice_sizes.
    Types:  that of `operand`.
    Errors: ArgumentError for what is no array; ShapeError for another rank.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_slice(rnp.arange(5), (3,), (2,))
    Array([3, 4], i32[2], cpu:0)
    """
    x = value("dynamic_slice", operand)
    starts = _starts("dynamic_slice", x, start_indices, allow_negative_indices)
    return ops.dynamic_slice(x, *starts, sizes=shape_of("dynamic_slice", slice_sizes))


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:  # fmt: skip
    """The array with the window that begins at `start_indices` replaced.

    allow_negative_indices: whether those below 0 count from the end; else they count as 0.
    Shapes: operand [*S], update within it, start_indices int[] of each axis -> [*S]. Types: kept.
    Errors: ArgumentError for what is no array; DtypeError for operands of different dtypes;
            ShapeError for shapes that do not fit.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_update_slice(rnp.zeros(3), rnp.ones(1), (1,))
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    x, new = value("dynamic_update_slice", operand), value("dynamic_update_slice", update)
    starts = _starts("dynamic_update_slice", x, start_indices, allow_negative_indices)
    return ops.dynamic_update_slice(x, new, *starts)


def _at_axis(name: str, x: Any, index: Any, axis: int) -> tuple[list[Any], int]:
    (found,) = given_axes(name, x, (axis,))
    starts: list[Any] = [0] * type_of(x).ndim
    starts[found] = index
    return starts, found


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *,
    allow_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """`slice_size` positions along one axis, from `start_index` on.

    Shapes: [*A, N, *B] -> [*A, slice_size, *B].
    Types:  that of `operand`.
    Errors: ArgumentError for what is no array, `start_index` that is no integer and
            `slice_size` that is no integer; ShapeError for no elements; AxisError for an axis
            out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_slice_in_dim(rnp.arange(5), 1, 2)
    Array([1, 2], i32[2], cpu:0)
    """
    x = value("dynamic_slice_in_dim", operand)
    starts, found = _at_axis("dynamic_slice_in_dim", x, start_index, axis)
    sizes = list(type_of(x).shape)
    sizes[found] = slice_size
    return dynamic_slice(x, tuple(starts), sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *,
    allow_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """One position along an axis, which keeps size 1 unless `keepdims` is false.

    Shapes: [*A, N, *B] -> [*A, 1, *B] or [*A, *B]; index int[].
    Types:  that of `operand`.
    Errors: ArgumentError for what is no array and `index` that is no integer; ShapeError for no
            elements; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_index_in_dim(rnp.arange(5), 2, keepdims=False)
    Array(2, i32[], cpu:0)
    """
    picked = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return picked if keepdims else squeeze(picked, (axis,))


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """The array with positions along one axis replaced, from `start_index` on.

    Shapes: operand [*A, N, *B], update [*A, K, *B] -> that of `operand`. Types: kept.
    Errors: ArgumentError for what is no array and `start_index` that is no integer; DtypeError
            for operands of different dtypes; ShapeError for shapes that do not fit; AxisError
            for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_update_slice_in_dim(rnp.zeros(3), rnp.ones(2), 1, axis=0)
    Array([0., 1., 1.], f32[3], cpu:0)
    """
    x = value("dynamic_update_slice_in_dim", operand)
    starts, _ = _at_axis("dynamic_update_slice_in_dim", x, start_index, axis)
    return dynamic_update_slice(
        x, update, tuple(starts), allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """The array with one position along an axis replaced.

    Shapes: operand [*A, N, *B], update [*A, 1, *B] or [*A, *B] -> that of `operand`.
    Types:  that of `operand`, into which the update is converted.
    Errors: ArgumentError for what is no array and `index` that is no integer; ShapeError for
            another rank; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_update_index_in_dim(rnp.zeros(3), 7.0, 1, axis=0)
    Array([0., 7., 0.], f32[3], cpu:0)
    """
    x, (new,) = value("dynamic_update_index_in_dim", operand), alike("update", update)
    new = ops.cast(new, type_of(x).dtype)
    if type_of(new).ndim == type_of(x).ndim - 1:
        new = expand_dims(new, (axis,))
    return dynamic_update_slice_in_dim(
        x, new, index, axis, allow_negative_indices=allow_negative_indices
    )


# --- gather and scatter -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GatherDimensionNumbers:
    """How the windows of a gather lie in the operand and in the result.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> lax.gather(rnp.array([5, 6, 7]), rnp.array([[2], [0]]), numbers, (1,))
    Array([7, 5], i32[2], cpu:0)
    """

    offset_dims: Axes  # axes of the result that run over a window
    collapsed_slice_dims: Axes  # operand axes of window size 1 that the result lacks
    start_index_map: Axes  # operand axis of each component of an index
    operand_batching_dims: Axes = ()
    start_indices_batching_dims: Axes = ()


@dataclass(frozen=True, slots=True)
class ScatterDimensionNumbers:
    """How the windows of a scatter lie in the updates and in the operand.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(rnp.zeros(3), rnp.array([[2], [0]]), rnp.array([5.0, 6.0]), numbers)
    Array([6., 0., 5.], f32[3], cpu:0)
    """

    update_window_dims: Axes  # axes of the updates that run over a window
    inserted_window_dims: Axes  # operand axes of window size 1 that the updates lack
    scatter_dims_to_operand_dims: Axes  # operand axis of each component of an index
    operand_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()


class GatherScatterMode(enum.Enum):
    """What a window that leaves the array means.

    >>> from rune import lax
    >>> lax.GatherScatterMode.from_any("drop")
    <GatherScatterMode.FILL_OR_DROP: 'fill'>
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """A mode by itself, by name ("clip", "fill", "drop", "promise_in_bounds") or None."""
        if isinstance(mode, GatherScatterMode):
            return mode
        names = {None: "fill", "drop": "fill"}
        try:
            return GatherScatterMode(names.get(mode, mode))
        except ValueError:
            raise ArgumentError(
                f"gather: cannot index with mode {mode!r} (clip, fill, drop, promise_in_bounds)"
            ) from None


def _mode(mode: Any) -> str:
    found = GatherScatterMode.from_any(mode)
    return "fill" if found is GatherScatterMode.ONE_HOT else found.value


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[Size],
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Windows of `slice_sizes` that begin at the vectors along the last axis of `start_indices`.

    mode:  "fill" (the default) reads `fill_value` for windows that leave the operand (NaN; for
           integers the lowest number, for unsigned ones the highest), "clip" moves them inside.
    Whether indices are sorted or unique makes no difference to the result.
    Shapes: operand [*S], start_indices int[*B, K] -> [*B] with the axes of a window at offset_dims.
    Types:  that of `operand`.
    Errors: ArgumentError for what is no array and another `mode`; DtypeError for anything but
            integers as `start_indices`; ShapeError for shapes that do not fit.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> lax.gather(rnp.array([5, 6, 7]), rnp.array([[2], [0]]), numbers, (1,))
    Array([7, 5], i32[2], cpu:0)
    """
    x, indices = value("gather", operand), value("gather", start_indices)
    n = _required("gather", dimension_numbers, GatherDimensionNumbers)
    dims = IndexDims(
        tuple(n.offset_dims), tuple(n.collapsed_slice_dims), tuple(n.start_index_map),
        tuple(n.operand_batching_dims), tuple(n.start_indices_batching_dims),
    )  # fmt: skip
    fill = _outside(x) if fill_value is None else fill_value
    return ops.gather(
        x, indices, literal_like(fill, x), dims=dims, slice_sizes=shape_of("gather", slice_sizes),
        mode=_mode(mode),
    )  # fmt: skip


def _required(name: str, numbers: Any, kind: type[Any]) -> Any:
    if not isinstance(numbers, kind):
        raise ArgumentError(
            f"{name}: cannot use {type(numbers).__name__} as dimension_numbers "
            f"({kind.__name__} required)"
        )
    return numbers


def _outside(x: Any) -> Any:
    dtype = type_of(x).dtype
    if dtype in dtypes.INEXACT:
        return np.nan
    if dtype == dtypes.bool_:
        return True
    low, high = int_bounds(dtype)
    return high if dtype in dtypes.UNSIGNED else low


def _window(operand: Any, updates: Any, dims: IndexDims) -> tuple:
    """The sizes of a scatter's windows, which its updates tell."""
    ndim, shape = type_of(operand).ndim, type_of(updates).shape
    sizes: list[Any] = [1] * ndim
    for axis, at in zip(dims.window_axes(ndim), dims.offset, strict=False):
        sizes[axis] = shape[at]
    return tuple(sizes)


def _scatter(name: str, primitive: Primitive) -> Callable[..., Any]:
    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Any:
        x, new = alike_arrays(name, operand, updates)
        n = _required(name, dimension_numbers, ScatterDimensionNumbers)
        dims = IndexDims(
            tuple(n.update_window_dims), tuple(n.inserted_window_dims),
            tuple(n.scatter_dims_to_operand_dims), tuple(n.operand_batching_dims),
            tuple(n.scatter_indices_batching_dims),
        )  # fmt: skip
        return primitive(
            x, value(name, scatter_indices), new, dims=dims, slice_sizes=_window(x, new, dims),
            mode=_mode(mode),
        )  # fmt: skip

    function.__name__ = function.__qualname__ = name
    return function


def alike_arrays(name: str, operand: Any, updates: Any) -> tuple[Any, Any]:
    """An array and its updates, which have its dtype; a Python scalar takes it."""
    x, new = value(name, operand), value(name, updates)
    weak = type_of(new).weak and not type_of(new).shape
    return x, ops.cast(new, type_of(x).dtype) if weak else new


_TEXT = """{doc}

    Windows that leave the operand are left out, unless mode="clip" moves them inside. Updates are
    applied in row-major order. Whether indices are sorted or unique makes no difference.

    Shapes: operand [*S], scatter_indices [*B, K], updates as the dimension numbers say -> [*S].
    Types:  one dtype, kept.
    Errors: ArgumentError for what is no array; DtypeError for updates of another dtype, or
            positions that are no integers; ShapeError for updates that do not fit.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, at = rnp.array([1.0, 2.0, 3.0]), rnp.array([[2], [0]])
    >>> lax.{name}(x, at, rnp.array([5.0, 2.0]), numbers)
    Array({shown}, f32[3], cpu:0)
    """


def _documented(name: str, primitive: Primitive, doc: str, shown: str) -> Callable[..., Any]:
    function = _scatter(name, primitive)
    function.__doc__ = _TEXT.format(name=name, doc=doc, shown=shown)
    return function


scatter = _documented(
    "scatter", ops.scatter, "The operand with windows overwritten.", "[2., 2., 5.]"
)
scatter_add = _documented(
    "scatter_add", ops.scatter_add, "The operand with updates added to windows.", "[3., 2., 8.]"
)
scatter_mul = _documented(
    "scatter_mul", ops.scatter_mul, "The operand with windows multiplied.", "[ 2.,  2., 15.]"
)
scatter_min = _documented(
    "scatter_min", ops.scatter_min, "The lesser of windows and updates.", "[1., 2., 3.]"
)
scatter_max = _documented(
    "scatter_max", ops.scatter_max, "The greater of windows and updates.", "[2., 2., 5.]"
)


def scatter_sub(operand: Any, scatter_indices: Any, updates: Any, *args: Any, **kwargs: Any) -> Any:
    """The operand with updates subtracted from windows; arguments as for `scatter_add`.

    Shapes: as for `scatter_add`. Types: one numeric dtype, kept.
    Errors: ArgumentError for what is no array; DtypeError for operands of different dtypes;
            ShapeError for shapes that do not fit.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(rnp.ones(2), rnp.array([[1]]), rnp.array([3.0]), numbers)
    Array([ 1., -2.], f32[2], cpu:0)
    """
    x, new = alike_arrays("scatter_sub", operand, updates)
    return scatter_add(x, scatter_indices, ops.neg(new), *args, **kwargs)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """The operand with `func` applied to its elements in the windows.

    An element in several windows is changed once for each of them, one after the other.
    Shapes: operand [*S], scatter_indices int[*B, K] -> [*S]. Types: that of `operand`.
    Errors: ArgumentError for what is no array and another `mode`; DtypeError for bools as
            `operand` and anything but integers as `scatter_indices`; ShapeError for shapes that
            do not fit.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(rnp.arange(3.0), rnp.array([[2]]), rnp.square, numbers, update_shape=(1,))
    Array([0., 1., 4.], f32[3], cpu:0)
    """
    x = value("scatter_apply", operand)
    shape = shape_of("scatter_apply", update_shape)
    count = scatter_add(
        ops.fit(np.int32(0), type_of(x).shape), scatter_indices, ops.fit(np.int32(1), shape),
        dimension_numbers, mode=mode,
    )  # fmt: skip
    most = ops.reduce_max(count, axes=tuple(range(type_of(count).ndim)))

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        done, found = state
        return done + 1, ops.select(ops.gt(count, done), func(found), found)

    if unique_indices:
        return step((np.int32(0), x))[1]
    return while_loop(lambda state: ops.lt(state[0], most), step, (np.int32(0), x))[1]


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """The windows of `src` at positions idxs[k] along axes[k], for vectors of positions.

    Shapes: idxs int[N] for each of `axes` -> [N, *S], S of `src` with 1 at `axes`.
    Types:  that of `src`.
    Errors: ArgumentError for what is no array; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.index_take(rnp.arange(6).reshape(2, 3), (rnp.array([0, 1]),), (1,))
    Array([[0, 3],
           [1, 4]], i32[2,2], cpu:0)
    """
    x = value("index_take", src)
    found = given_axes("index_take", x, axes)
    vectors = [ops.reshape(value("index_take", i), shape=(_length(i), 1)) for i in idxs]
    sizes = tuple(1 if a in found else d for a, d in enumerate(type_of(x).shape))
    offset = tuple(range(1, type_of(x).ndim - len(found) + 1))
    numbers = GatherDimensionNumbers(offset, tuple(sorted(found)), found)
    return gather(x, ops.concatenate(*vectors, axis=1), numbers, sizes, mode="clip")


def _length(vector: Any) -> Any:
    return type_of(vector).shape[0]
