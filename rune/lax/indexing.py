"""Windows at many positions known at run time: gather, scatter.

They use XLA's notation, in which dimension numbers express everything that indexing can do; most of
it is simpler with `rune.numpy` and `x.at[...]`.
Source: XLA operation semantics, Gather and Scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune import ops
from rune.array import Array
from rune.control import while_loop
from rune.core.interpreter import literal_like, type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.lax.arguments import given_axes
from rune.numpy.arguments import shape_of, value
from rune.ops.index_values import modulo
from rune.ops.jax_forms import GatherDimensionNumbers, ScatterDimensionNumbers, mode_word, outside, window_of
from rune.ops.scatters import multiply_at
from rune.ops.updates import writing_mode
from rune.typing import ArrayLike


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[Size],
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | None = None,
    fill_value: object = None,
) -> Array:
    """Windows of `slice_sizes` that begin at the vectors along the last axis of `start_indices`.

    mode:  for windows that leave the operand, "fill" reads `fill_value` (NaN; the lowest number for
           integers, the highest for unsigned ones), "clip" moves them inside. By default they are
           moved inside too, but have no cotangents. Whether indices are sorted or unique makes no
           difference to the result.
    Shapes: operand [*S], start_indices int[*B, K] -> [*B] with the axes of a window at offset_dims.
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array or `mode` is unknown; DtypeError
            unless `start_indices` are integers; ShapeError if the shapes do not match.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> lax.gather(rnp.array([5, 6, 7]), rnp.array([[2], [0]]), numbers, (1,))
    Array([7, 5], i32[2], cpu:0)
    """
    x, indices = value("gather", operand), value("gather", start_indices)
    n = _required("gather", dimension_numbers, GatherDimensionNumbers)
    fill = outside(type_of(x)) if fill_value is None else fill_value
    return ops.gather(
        x,
        indices,
        literal_like(fill, x),
        dims=n.to_dims(),
        slice_sizes=shape_of("gather", slice_sizes),
        mode="promise_in_bounds" if mode is None else mode_word(mode),
    )


def _required(name: str, numbers: object, kind: type[Any]) -> Any:
    if not isinstance(numbers, kind):
        raise ArgumentError(
            f"{name}: cannot use {type(numbers).__name__} as dimension_numbers ({kind.__name__} required)"
        )
    return numbers


def _scatter(name: str, write: Callable[..., Array]) -> Callable[..., Array]:
    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Array:
        x, new = alike_arrays(name, operand, updates)
        n = _required(name, dimension_numbers, ScatterDimensionNumbers)
        dims = n.to_dims()
        sizes = window_of(type_of(x), type_of(new), dims)
        how = writing_mode(type_of(x).shape, mode_word(mode))
        return write(x, value(name, scatter_indices), new, dims=dims, slice_sizes=sizes, mode=how)

    function.__name__ = function.__qualname__ = name
    return function


def alike_arrays(name: str, operand: ArrayLike, updates: ArrayLike) -> tuple[Array, Array]:
    """An array and its updates, which have its dtype; a Python scalar takes on that dtype."""
    x, new = value(name, operand), value(name, updates)
    weak = type_of(new).weak and not type_of(new).shape
    return x, ops.cast(new, type_of(x).dtype) if weak else new


_TEXT = """{doc}

    Windows that leave the operand are left out, unless mode="clip" moves them inside. Updates are
    applied in row-major order. Whether indices are sorted or unique makes no difference.

    Shapes: operand [*S], scatter_indices [*B, K], updates as the dimension numbers say -> [*S].
    Types:  one dtype, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for updates of another dtype,
            or positions that are not integers; ShapeError for updates of another shape.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, at = rnp.array([1.0, 2.0, 3.0]), rnp.array([[2], [0]])
    >>> lax.{name}(x, at, rnp.array([5.0, 2.0]), numbers)
    Array({result}, f32[3], cpu:0)
    """


def _documented(name: str, write: Callable[..., Array], doc: str, result: str) -> Callable[..., Array]:
    function = _scatter(name, write)
    function.__doc__ = _TEXT.format(name=name, doc=doc, result=result)
    return function


scatter = _documented("scatter", ops.scatter, "The operand with windows overwritten.", "[2., 2., 5.]")
scatter_add = _documented("scatter_add", ops.scatter_add, "The operand with updates added to windows.", "[3., 2., 8.]")
scatter_mul = _documented("scatter_mul", multiply_at, "The operand with windows multiplied.", "[ 2.,  2., 15.]")
scatter_min = _documented("scatter_min", ops.scatter_min, "The lesser of windows and updates.", "[1., 2., 3.]")
scatter_max = _documented("scatter_max", ops.scatter_max, "The greater of windows and updates.", "[2., 2., 5.]")


def scatter_sub(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, *args: object, **kwargs: object
) -> Array:
    """The operand with updates subtracted from windows; arguments as for `scatter_add`.

    Shapes: as for `scatter_add`. Types: one numeric dtype, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError if the shapes do not match.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(rnp.ones(2), rnp.array([[1]]), rnp.array([3.0]), numbers)
    Array([ 1., -2.], f32[2], cpu:0)
    """
    x, new = alike_arrays("scatter_sub", operand, updates)
    return scatter_add(x, scatter_indices, ops.neg(new), *args, **kwargs)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ArrayLike | None = None,
) -> Array:
    """The operand with `func` applied to its elements in the windows.

    An element in several windows is changed once for each of them, one after another.
    Shapes: operand [*S], scatter_indices int[*B, K] -> [*S]. Types: that of `operand`.
    Errors: ArgumentError if an argument is not an array or `mode` is unknown; DtypeError for bools
            as `operand` and unless `scatter_indices` are integers; ShapeError if the
            shapes do not match.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(rnp.arange(3.0), rnp.array([[2]]), rnp.square, numbers, update_shape=(1,))
    Array([0., 1., 4.], f32[3], cpu:0)
    """
    x = value("scatter_apply", operand)
    shape = shape_of("scatter_apply", update_shape)
    # How many windows cover each element, hence how many times `func` applies to it.
    count = scatter_add(
        ops.fit(np.int32(0), type_of(x).shape),
        scatter_indices,
        ops.fit(np.int32(1), shape),
        dimension_numbers,
        mode=mode,
    )
    most = ops.reduce_max(count, axes=tuple(range(type_of(count).ndim)))

    def step(state: tuple[Any, Any]) -> tuple[Array, Array]:
        rounds, total = state
        return rounds + 1, ops.select(ops.gt(count, rounds), func(total), total)

    if unique_indices:
        return step((np.int32(0), x))[1]
    return while_loop(lambda state: ops.lt(state[0], most), step, (np.int32(0), x))[1]


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The windows of `src` at positions idxs[k] along axes[k]; positions wrap around.

    Shapes: idxs int[N] for each of `axes` -> [N, *S], S of `src` with 1 at `axes`.
    Types:  that of `src`.
    Errors: ArgumentError if an argument is not an array, and unless every axis has its positions;
            ShapeError for positions without or with more than one axis; AxisError for an axis out
            of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.index_take(rnp.arange(6).reshape(2, 3), (rnp.array([0, 1]),), (1,))
    Array([[0, 3],
           [1, 4]], i32[2,2], cpu:0)
    """
    x = value("index_take", src)
    places = given_axes("index_take", x, axes)
    if len(idxs) != len(places):
        raise ArgumentError(f"index_take: cannot use {len(idxs)} index arrays for {len(places)} axes")
    vectors = [_wrapped(value("index_take", i), type_of(x).shape[a]) for i, a in zip(idxs, places, strict=True)]
    sizes = tuple(1 if a in places else d for a, d in enumerate(type_of(x).shape))
    offset = tuple(range(1, type_of(x).ndim - len(places) + 1))
    numbers = GatherDimensionNumbers(offset, tuple(sorted(places)), places)
    # After the modulo every position is in range, so the mode makes no difference.
    return gather(x, ops.concatenate(*vectors, axis=1), numbers, sizes, mode="clip")


def _wrapped(positions: Array, extent: Size) -> Array:
    """The positions as a column [N, 1], within an axis of this length."""
    if type_of(positions).ndim != 1:
        raise ShapeError(f"index_take: cannot use positions {type_of(positions)} (one axis required)")
    return ops.reshape(modulo(positions, extent), shape=(*type_of(positions).shape, 1))
