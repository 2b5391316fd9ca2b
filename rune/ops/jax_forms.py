"""JAX's parameters for gathers, scatters, sorts, products and solves: dimension numbers and axes.

Code that rewrites programs binds these operations by the parameters of JAX's equations, and reads
those parameters back. Each operation takes its names (`jax_names`) and its form (`jax_form`) from
here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.jax_names import Form, Names, OfOperands, Params, Translation, always, ignored
from rune.core.primitive import Primitive
from rune.core.program import Atom, Literal
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError
from rune.ops.arithmetic import cast
from rune.ops.index_dims import IndexDims
from rune.ops.movement import move_axis
from rune.ops.scalars import int_bounds
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.array import Array

Axes = tuple[int, ...]


# --- values of JAX's parameters ---------------------------------------------------------------


def _index_dims(*axes: Sequence[int]) -> IndexDims:
    return IndexDims(*map(tuple, axes))


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
    collapsed_slice_dims: Axes  # operand axes of window size 1, absent from the result
    start_index_map: Axes  # operand axis that each component of an index refers to
    operand_batching_dims: Axes = ()
    start_indices_batching_dims: Axes = ()

    def to_dims(self) -> IndexDims:
        """The same as an `IndexDims`."""
        return _index_dims(
            self.offset_dims,
            self.collapsed_slice_dims,
            self.start_index_map,
            self.operand_batching_dims,
            self.start_indices_batching_dims,
        )


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
    inserted_window_dims: Axes  # operand axes of window size 1, absent from the updates
    scatter_dims_to_operand_dims: Axes  # operand axis of each component of an index
    operand_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()

    def to_dims(self) -> IndexDims:
        """The same, as operations here take it."""
        return _index_dims(
            self.update_window_dims,
            self.inserted_window_dims,
            self.scatter_dims_to_operand_dims,
            self.operand_batching_dims,
            self.scatter_indices_batching_dims,
        )


class GatherScatterMode(enum.StrEnum):
    """What happens to a window that leaves the array; equal to the word for it in equations.

    >>> from rune import lax
    >>> lax.GatherScatterMode.from_any("drop")
    <GatherScatterMode.FILL_OR_DROP: 'fill'>
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"

    @staticmethod
    def from_any(mode: str | None) -> GatherScatterMode:
        """A mode from itself, from its name ("clip", "fill", "drop", "promise_in_bounds") or from
        None.
        """
        names = {None: "fill", "drop": "fill"}
        try:
            return GatherScatterMode(names.get(mode, mode))
        except ValueError:
            raise ArgumentError(
                f"gather: cannot index with mode {mode!r} (clip, fill, drop, promise_in_bounds)"
            ) from None


def mode_word(mode: str | None) -> str:
    """The word for a mode in equations."""
    meaning = GatherScatterMode.from_any(mode)
    return "fill" if meaning is GatherScatterMode.ONE_HOT else meaning.value


class ConvDimensionNumbers(NamedTuple):
    """Axes by role: (batch, feature, *spatial) of lhs and out, (out, in, *spatial) of rhs.

    >>> from rune import lax
    >>> lax.conv_dimension_numbers((1, 5, 5, 3), (8, 3, 2, 2), ("NHWC", "OIHW", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


# --- gathers and scatters ---------------------------------------------------------------------


def outside(type: ArrayType) -> float | bool | int:
    """What a window that leaves an array reads: NaN, True, or an integer at the end of the
    range.
    """
    if type.dtype in dtypes.INEXACT:
        return np.nan
    if type.dtype == dtypes.bool_:
        return True
    low, high = int_bounds(type.dtype)
    return high if type.dtype in dtypes.UNSIGNED else low


def window_of(operand: ArrayType, updates: ArrayType, dims: IndexDims) -> Shape:
    """The sizes of a scatter's windows, derived from its updates."""
    sizes: list[Size] = [1] * operand.ndim
    for axis, at in zip(dims.window_axes(operand.ndim), dims.offset, strict=False):
        sizes[axis] = updates.shape[at]
    return tuple(sizes)


def _fields(dims: IndexDims) -> tuple[Axes, ...]:
    return dims.offset, dims.collapsed, dims.start_map, dims.operand_batching, dims.indices_batching


def _fill_value(params: Params, operands: Sequence[Atom]) -> object:
    """The value read out of bounds; None if there is none, or if only the call tells it."""
    fill = operands[2]
    return fill.val if params["mode"] == "fill" and isinstance(fill, Literal) else None


_UNORDERED: Names = {"indices_are_sorted": always(False), "unique_indices": always(False)}
GATHER_NAMES: Names = {
    "dimension_numbers": lambda params: GatherDimensionNumbers(*_fields(params["dims"])),
    "fill_value": OfOperands(_fill_value),
    **_UNORDERED,
}
SCATTER_NAMES: Names = {
    "dimension_numbers": lambda params: ScatterDimensionNumbers(*_fields(params["dims"])),
    "update_consts": always(()),
    **_UNORDERED,
}


def gather_form(gather: Callable[[], Primitive]) -> Form:
    """JAX's form of a gather: the value read out of bounds is a parameter, not an operand."""

    def bind(
        operand: Value,
        indices: Value,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Sequence[Size],
        mode: str | None = None,
        fill_value: object = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Array:
        fill = outside(type_of(operand)) if fill_value is None else fill_value
        dims, sizes = dimension_numbers.to_dims(), tuple(slice_sizes)
        return gather()(
            operand, indices, literal_like(fill, operand), dims=dims, slice_sizes=sizes, mode=mode_word(mode)
        )

    return Form("dimension_numbers", bind)


def scatter_form(scatter: Callable[[], Primitive]) -> Form:
    """JAX's form of a scatter: the updates determine the window sizes, and the primitive the
    combination.
    """

    def bind(
        operand: Value,
        indices: Value,
        updates: Value,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: str | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        update_jaxpr: object = None,
        update_consts: Sequence[object] = (),
    ) -> Array:
        dims = dimension_numbers.to_dims()
        sizes = window_of(type_of(operand), type_of(updates), dims)
        return scatter()(operand, indices, updates, dims=dims, slice_sizes=sizes, mode=mode_word(mode))

    return Form("dimension_numbers", bind)


# --- sorts: along any axis --------------------------------------------------------------------

LAST_AXIS = OfOperands(lambda params, operands: operands[0].type.ndim - 1)
SORT_NAMES: Names = {"dimension": LAST_AXIS, "is_stable": always(True)}


def _along(primitive: Primitive, axis: int, operands: Sequence[Value], params: Params) -> list[Array]:
    """The results for rows along an axis."""
    last = type_of(operands[0]).ndim - 1
    outs = primitive(*(move_axis(x, axis, last) for x in operands), **params)
    return [move_axis(out, last, axis) for out in outs]


def sort_form(sort: Callable[[], Primitive]) -> Form:
    """JAX's form of a sort along an axis; every sort here is stable, whether requested or not."""

    def bind(*operands: Value, dimension: int, num_keys: int, is_stable: bool = True) -> list[Array]:
        return _along(sort(), dimension, operands, {"num_keys": num_keys})

    return Form("dimension", bind)


def top_k_form(top_k: Callable[[], Primitive]) -> Form:
    """JAX's form of the largest elements along an axis."""
    return Form("axis", lambda x, *, k, axis: _along(top_k(), axis, [x], {"k": k}))


# --- products ---------------------------------------------------------------------------------

PRODUCT_NAMES: Names = {
    "precision": ignored(None),
    "preferred_element_type": always(None),
    "out_sharding": always(None),
}
CONV_NAMES: Names = {
    "window_strides": "strides",
    "dimension_numbers": Translation(
        lambda params: ConvDimensionNumbers(*params["specs"]),
        lambda numbers, params: {"specs": tuple(map(tuple, numbers))},
    ),
    "feature_group_count": Translation(
        lambda params: params["groups"][0],
        lambda count, params: {"groups": (count, params.get("batch_group_count", 1))},
    ),
    "batch_group_count": Translation(
        lambda params: params["groups"][1],
        lambda count, params: {"groups": (params.get("feature_group_count", 1), count)},
    ),
    **PRODUCT_NAMES,
}


def product_form(product: Callable[[], Primitive]) -> Form:
    """JAX's form of a product: operands are converted to the preferred type of its result."""

    def bind(*operands: Value, preferred_element_type: np.dtype | None, **params: object) -> Array:
        if preferred_element_type is not None:
            operands = tuple(cast(x, dtypes.as_dtype(preferred_element_type)) for x in operands)
        return product().bind(*operands, **params)

    return Form("preferred_element_type", bind)
