"""Collectives under JAX's names: how the lanes of a named axis exchange values.

`axis_name` is the axis name given to `vmap` or `pmap`, or a tuple of such names; trees of arrays
are handled leaf by leaf. In the examples three lanes hold 0, 1 and 2.

Semantics: https://docs.jax.dev/en/latest/jax.lax.html#parallel-operators.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from typing import Any, SupportsIndex, TypedDict, TypeVar

import numpy as np

from rune import dtypes, ops, tree
from rune import numpy as rnp
from rune.array import Array
from rune.core.axes import Name, is_typed, named_axis, names_of
from rune.core.axes import axis_size as size_of
from rune.core.interpreter import type_of
from rune.core.primitive import Collective
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.ops.collectives import varying
from rune.ops.conventions import normalised_axis
from rune.ops.lane_groups import Groups
from rune.typing import ArrayLike

T = TypeVar("T")  # an array, or a tree of arrays
LaneGroups = Sequence[Sequence[SupportsIndex]] | np.ndarray


def _one_name(operation: str, axis_name: Name) -> Hashable:
    names = names_of(axis_name)
    if len(names) != 1:
        raise ArgumentError(f"{operation}: cannot take the axes {axis_name!r} (one name expected)")
    return names[0]


def axis_size(axis_name: Name) -> Any:
    """The number of lanes of the axis; the product for several axes. An integer, not an array.

    Errors: UnboundAxisError if no enclosing axis has the name.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: x / rune.lax.axis_size("i"), axis_name="i")(rnp.arange(2.0))
    Array([0. , 0.5], f32[2], cpu:0)
    """
    return _lanes("axis_size", axis_name)


def _lanes(operation: str, axis_name: Name) -> Any:
    """The number of lanes that an operation has along these axes."""
    return functools.reduce(lambda total, name: total * size_of(name, operation), names_of(axis_name), 1)


def axis_index(axis_name: Name) -> Any:
    """The number of this lane; for several axes, in row-major order.

    Types:  i32[].
    Errors: UnboundAxisError if no enclosing axis has the name.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: x + rune.lax.axis_index("i"), axis_name="i")(rnp.zeros(3))
    Array([0., 1., 2.], f32[3], cpu:0)
    """
    number = None
    for name in names_of(axis_name):
        size = size_of(name, "axis_index")
        position = ops.axis_index(axis_name=name)
        number = position if number is None else number * size + position
    return number


def _as_varying(x: Value, name: Name) -> Value:
    """Marks a value shared by all devices of the axis as varying, where types track this."""
    return varying(x, frozenset({name})) if is_typed(name) else x


class _Group(TypedDict, total=False):
    """The parameters of a collective for groups of lanes; empty if all lanes are one group."""

    groups: Groups


def _grouped(operation: str, axis_name: Name, axis_index_groups: LaneGroups | None) -> _Group:
    """Errors: ArgumentError unless the groups contain every lane of one axis exactly once."""
    if axis_index_groups is None:
        return {}
    size = size_of(_one_name(operation, axis_name), operation)
    groups = tuple(tuple(map(operator.index, group)) for group in axis_index_groups)
    if sorted(lane for group in groups for lane in group) != list(range(size if isinstance(size, int) else 0)):
        raise ArgumentError(
            f"{operation}: cannot take the groups {[*map(list, groups)]} of the axis {axis_name!r} "
            f"(each of its {size} lanes once is expected)"
        )
    return {"groups": groups}


def _group_size(operation: str, axis_name: Name, group: _Group) -> Size:
    """The number of lanes in a group. Errors: ArgumentError if groups differ in size."""
    sizes = {len(lanes) for lanes in group["groups"]} if "groups" in group else {_lanes(operation, axis_name)}
    if len(sizes) != 1:
        raise ArgumentError(f"{operation}: cannot use groups of different sizes ({sorted(sizes)} lanes)")
    return next(iter(sizes))


def _over_names(primitive: Collective, x: T, axis_name: Name, axis_index_groups: LaneGroups | None) -> T:
    group = _grouped(primitive.name, axis_name, axis_index_groups)

    def one(leaf: ArrayLike) -> Value:
        array = rnp.array(leaf)
        x: Value = array.astype(dtypes.i32) if primitive is ops.psum and array.dtype == dtypes.bool_ else array
        for name in names_of(axis_name):
            size_of(name, primitive.name)
            x = primitive(_as_varying(x, name), axis_name=name, **group)
        return x

    return tree.map(one, x)


def psum(x: T, axis_name: Name, *, axis_index_groups: LaneGroups | None = None) -> T:
    """The sum over all lanes, in every lane. A Python number gives a Python number.

    Under vmap(grad(f)) the transpose of psum is psum: cotangents of all lanes are summed.
    axis_index_groups:  lists of lanes, each lane in one of them; each list reduces separately.
    Shapes: any, unchanged. Types: that of `x`; bools become i32.
    Errors: UnboundAxisError if no enclosing axis has the name; ArgumentError if an argument is not
            an array.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: x / rune.lax.psum(x, "i"), axis_name="i")(rnp.arange(3.0))
    Array([0.        , 0.33333334, 0.6666667 ], f32[3], cpu:0)
    """
    if isinstance(x, int | float | complex) and axis_index_groups is None:
        return x * _lanes("psum", axis_name)
    return _over_names(ops.psum, x, axis_name, axis_index_groups)


def pmean(x: T, axis_name: Name, *, axis_index_groups: LaneGroups | None = None) -> T:
    """The mean over all lanes, in every lane.

    axis_index_groups:  lists of lanes, each lane in one of them; each list reduces separately.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: UnboundAxisError if no enclosing axis has the name; ArgumentError if an argument is not
            an array.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: x - rune.lax.pmean(x, "i"), axis_name="i")(rnp.arange(3.0))
    Array([-1.,  0.,  1.], f32[3], cpu:0)
    """
    lanes = _lanes("pmean", axis_name)
    if axis_index_groups is not None:
        lanes = psum(1, axis_name, axis_index_groups=axis_index_groups)  # groups may differ in size
    return tree.map(lambda leaf: psum(leaf, axis_name, axis_index_groups=axis_index_groups) / lanes, x)


def pmax(x: T, axis_name: Name, *, axis_index_groups: LaneGroups | None = None) -> T:
    """The largest value over all lanes, in every lane. Not differentiable.

    axis_index_groups:  lists of lanes, each lane in one of them; each list reduces separately.
    Shapes: any, unchanged. Types: real, that of `x`; the largest bool is True.
    Errors: UnboundAxisError if no enclosing axis has the name; ArgumentError if an argument is not
            an array.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: rune.lax.pmax(x, "i"), axis_name="i")(rnp.array([1.0, 3.0]))
    Array([3., 3.], f32[2], cpu:0)
    """
    return _over_names(ops.pmax, x, axis_name, axis_index_groups)


def pmin(x: T, axis_name: Name, *, axis_index_groups: LaneGroups | None = None) -> T:
    """The smallest value over all lanes, in every lane. Not differentiable.

    axis_index_groups:  lists of lanes, each lane in one of them; each list reduces separately.
    Shapes: any, unchanged. Types: real, that of `x`; the smallest bool is False.
    Errors: UnboundAxisError if no enclosing axis has the name; ArgumentError if an argument is not
            an array.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: rune.lax.pmin(x, "i"), axis_name="i")(rnp.array([1.0, 3.0]))
    Array([1., 1.], f32[2], cpu:0)
    """
    return _over_names(ops.pmin, x, axis_name, axis_index_groups)


def all_gather(
    x: T,
    axis_name: Name,
    *,
    axis_index_groups: LaneGroups | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """The values of all lanes, in every lane.

    axis:  the new axis for the lanes; if `tiled`, an existing axis along which to concatenate them.
    axis_index_groups:  lists of lanes of equal length, each lane in one of them, that exchange
                        separately: L is the size of a group.
    to:    "varying", the only value supported.
    Shapes: x [*S] of L lanes -> [*S] with L inserted at `axis`; `tiled`, that axis L times as long.
    Types:  that of `x`.
    Errors: UnboundAxisError if no enclosing axis has the name; ArgumentError if an argument is not
            an array, and for an unknown `to`.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: rune.lax.all_gather(x, "i"), axis_name="i")(rnp.arange(2.0))
    Array([[0., 1.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    if to != "varying":
        raise ArgumentError(
            f"all_gather: cannot give a result that is {to!r} over the lanes ('varying' required)",
            hint="psum of each lane's block in its place is the same in all lanes",
        )
    names = names_of(axis_name)
    group = _grouped("all_gather", axis_name, axis_index_groups)
    lanes = _group_size("all_gather", axis_name, group)

    def one(x: ArrayLike) -> Any:
        x = rnp.asarray(x)
        x_type = type_of(x)
        place = normalised_axis("all_gather", axis, x_type if tiled else _longer(x_type))
        for name in reversed(names):  # the first name is gathered last, hence varies slowest
            size = lanes if group else size_of(name, "all_gather")
            x = ops.all_gather(x, axis=place, lanes=size, axis_name=name, **group)
        if not tiled:
            return rnp.reshape(x, (*x_type.shape[:place], lanes, *x_type.shape[place:]))
        shape = (*x_type.shape[:place], lanes * x_type.shape[place], *x_type.shape[place + 1 :])
        return rnp.reshape(x, shape)

    return tree.map(one, x)


def _longer(type: ArrayType) -> ArrayType:
    return type.with_shape((1, *type.shape))


def psum_scatter(
    x: T,
    axis_name: Name,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: LaneGroups | None = None,
    tiled: bool = False,
) -> T:
    """The sum over all lanes, each lane receiving its own part.

    scatter_dimension:  the axis to scatter, and to remove: its size must be the number of lanes;
                        if `tiled`, a multiple of that, and each lane keeps its share.
    Shapes: x [L, *S] of L lanes -> [*S]; `tiled`, [L·K, *S] -> [K, *S].
    Types:  numeric, that of `x`.
    axis_index_groups:  lists of lanes of equal length, each lane in one of them, that exchange
                        separately: L is the size of a group.
    Errors:             ShapeError for any other size of that axis.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: rune.lax.psum_scatter(x, "i"), axis_name="i")(rnp.ones((2, 2)))
    Array([2., 2.], f32[2], cpu:0)
    """
    group = _grouped("psum_scatter", axis_name, axis_index_groups)
    lanes = _group_size("psum_scatter", axis_name, group)
    sizes = [lanes] if group else [size_of(name, "psum_scatter") for name in names_of(axis_name)]

    def one(x: Array) -> Any:
        x = rnp.asarray(x)
        place = normalised_axis("psum_scatter", scatter_dimension, type_of(x))
        x = _split(_parts("psum_scatter", x, place, lanes, tiled), place, sizes)
        for name, size in zip(names_of(axis_name), sizes, strict=True):
            x = ops.psum_scatter(x, scatter_axis=place, lanes=size, axis_name=name, **group)
        return x

    return tree.map(one, x)


def _parts(operation: str, x: Array, axis: int, lanes: Size, is_tiled: bool) -> Array:
    """`x` with an axis of one part for each lane; if tiled, an axis of their shares follows it."""
    shape = type_of(x).shape
    if is_tiled and shape[axis] % lanes == 0:
        return rnp.reshape(x, (*shape[:axis], lanes, shape[axis] // lanes, *shape[axis + 1 :]))
    if is_tiled:
        raise ShapeError(
            f"{operation}: cannot share axis {axis} of {type_of(x)} between {lanes} lanes "
            f"({shape[axis]} is not a multiple of {lanes})"
        )
    if shape[axis] != lanes:
        raise ShapeError(
            f"{operation}: cannot give each lane its part of axis {axis} of {type_of(x)} "
            f"({shape[axis]} parts for {lanes} lanes)",
            hint="tiled=True gives each lane an equal share of a longer axis",
        )
    return x


def _split(x: Array, axis: int, sizes: Sequence[Size]) -> Array:
    """`x` with an axis of lanes as an axis for each of the named axes that they are of."""
    shape = type_of(x).shape
    return x if len(sizes) == 1 else rnp.reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))


def all_to_all(
    x: T,
    axis_name: Name,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: LaneGroups | None = None,
    tiled: bool = False,
) -> T:
    """Lane i's part j goes to lane j, as its part i.

    split_axis:   the axis to split into one part per lane. Its size must be the number of lanes or,
                  if `tiled`, a multiple.
    concat_axis:  the new axis for the received parts or, if `tiled`, the axis along which to
                  concatenate them.
    axis_index_groups:  lists of lanes of equal length, each lane in one of them, that exchange
                        separately: L is the size of a group.
    Shapes: x [*S] of L lanes -> [*S] without split_axis, with L at concat_axis; `tiled`, split_axis
            L times shorter and concat_axis L times longer.
    Types:  that of `x`.
    Errors: UnboundAxisError for an unknown axis name; ShapeError if the number of lanes
            does not divide the size.

    >>> import rune, rune.numpy as rnp
    >>> x = rnp.array([[0, 1], [2, 3]])
    >>> rune.vmap(lambda x: rune.lax.all_to_all(x, "i", 0, 0), axis_name="i")(x)
    Array([[0, 2],
           [1, 3]], i32[2,2], cpu:0)
    """
    names = names_of(axis_name)
    group = _grouped("all_to_all", axis_name, axis_index_groups)
    lanes = _group_size("all_to_all", axis_name, group)
    sizes = [lanes] if group else [size_of(name, "all_to_all") for name in names]

    def one(x: Array) -> Any:
        x = rnp.asarray(x)
        split = normalised_axis("all_to_all", split_axis, type_of(x))
        concat = normalised_axis("all_to_all", concat_axis, type_of(x))
        x = _parts("all_to_all", x, split, lanes, tiled)
        # Along several axes one after another: a part is first sent to the row of its lane.
        if len(names) > 1:
            x = _split(rnp.moveaxis(x, split, 0), 0, sizes)
            for place, (name, size) in enumerate(zip(names, sizes, strict=True)):
                x = ops.all_to_all(x, split_axis=place, concat_axis=place, lanes=size, axis_name=name)
            x = rnp.moveaxis(rnp.reshape(x, (lanes, *type_of(x).shape[len(names) :])), 0, concat)
        else:
            name = _one_name("all_to_all", axis_name)
            x = ops.all_to_all(x, split_axis=split, concat_axis=concat, lanes=lanes, axis_name=name, **group)
        return _joined(x, concat) if tiled else x

    return tree.map(one, x)


def _joined(x: Array, axis: int) -> Array:
    shape = type_of(x).shape
    return rnp.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def ppermute(x: T, axis_name: Name, perm: Sequence[tuple[int, int]]) -> T:
    """Sends each lane's value to another lane; lanes that receive nothing get zeros.

    perm:    pairs (lane that sends, lane that receives); lanes of several axes count in row-major
             order
    Shapes: any, unchanged. Types: that of `x`.
    Cost:    along several axes, of which one is of lanes, every lane receives the values of all.
    Errors:  ArgumentError where a lane sends or receives twice, or does not exist.

    >>> import rune, rune.numpy as rnp
    >>> ring = [(0, 1), (1, 2), (2, 0)]
    >>> rune.vmap(lambda x: rune.lax.ppermute(x, "i", ring), axis_name="i")(rnp.arange(3.0))
    Array([2., 0., 1.], f32[3], cpu:0)
    """
    pairs = tuple((int(a), int(b)) for a, b in perm)
    _check_permutation(pairs, _lanes("ppermute", axis_name))
    names = names_of(axis_name)
    if len(names) > 1 and not all(named_axis(name).has_devices for name in names):
        return tree.map(lambda leaf: _permuted(rnp.asarray(leaf), names, pairs), x)
    name = names if len(names) > 1 else _one_name("ppermute", axis_name)
    return tree.map(lambda leaf: ops.ppermute(rnp.asarray(leaf), permutation=pairs, axis_name=name), x)


def _permuted(x: Array, names: tuple[Hashable, ...], pairs: tuple[tuple[int, int], ...]) -> Array:
    """What each lane of several axes receives."""
    senders = np.full(axis_size(names), -1, np.int32)
    for sender, receiver in pairs:
        senders[receiver] = sender
    sender = rnp.take(senders, axis_index(names))
    return rnp.where(sender < 0, rnp.zeros_like(x), rnp.take(all_gather(x, names), rnp.maximum(sender, 0), axis=0))


def _check_permutation(pairs: tuple[tuple[int, int], ...], size: Size) -> None:
    if not isinstance(size, int):
        raise ArgumentError(f"ppermute: cannot permute {size} lanes (a fixed number is needed)")
    for lanes in zip(*pairs, strict=True):
        if len(set(lanes)) < len(lanes) or not all(0 <= lane < size for lane in lanes):
            raise ArgumentError(
                f"ppermute: cannot permute {size} lanes by {list(pairs)} "
                f"(each sends and receives once at most, and is below {size})"
            )


def pshuffle(x: T, axis_name: Name, perm: Sequence[int]) -> T:
    """Lane i receives the value of lane perm[i].

    Shapes: any, unchanged. Types: that of `x`.
    Errors: UnboundAxisError if no enclosing axis has the name; ArgumentError if perm is not a
            permutation of the lanes.

    >>> import rune, rune.numpy as rnp
    >>> f = lambda x: rune.lax.pshuffle(x, "i", [2, 0, 1])
    >>> rune.vmap(f, axis_name="i")(rnp.arange(3.0))
    Array([2., 0., 1.], f32[3], cpu:0)
    """
    _lanes("pshuffle", axis_name)  # so that an error names this function
    return ppermute(x, axis_name, [(sender, lane) for lane, sender in enumerate(perm)])


def pswapaxes(x: T, axis_name: Name, axis: int, *, axis_index_groups: LaneGroups | None = None) -> T:
    """Exchanges the axis of the lanes with an array axis of the same size.

    axis_index_groups:  as for all_to_all.
    Shapes: any, unchanged. Types: that of `x`.
    Errors: UnboundAxisError if no enclosing axis has the name; ShapeError for an axis whose size is
            not the number of lanes.

    >>> import rune, rune.numpy as rnp
    >>> x = rnp.array([[1, 2], [3, 4]])
    >>> rune.vmap(lambda row: rune.lax.pswapaxes(row, "i", 0), axis_name="i")(x)
    Array([[1, 3],
           [2, 4]], i32[2,2], cpu:0)
    """
    _lanes("pswapaxes", axis_name)  # so that an error names this function
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pvary(x: T, axis_name: Name) -> T:
    """Marks a value that all devices along a mesh axis share as varying along that axis.

    This changes no numbers. Where types track the axes along which values vary (`rune.shard_map`),
    each device then has its own gradient. Elsewhere the result is `x` itself.
    Shapes: any, unchanged. Types: that of `x`, varying along the axis.
    Errors: UnboundAxisError if no enclosing axis has the name.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import P, make_mesh
    >>> mesh = make_mesh((1,), ("i",))
    >>> f = lambda x: rune.lax.pvary(x, "i")
    >>> rune.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P("i"))(rnp.ones(2))
    Array([1., 1.], f32[2], cpu:0 P('i'))
    """
    for name in names_of(axis_name):
        size_of(name, "pvary")
    return tree.map(lambda leaf: functools.reduce(_as_varying, names_of(axis_name), rnp.asarray(leaf)), x)


def pcast(x: T, axis_name: Name, *, to: str) -> T:
    """`pvary`, under the newer name in JAX; `to` must be "varying".

    Shapes: any, unchanged. Types: that of `x`, varying along the axis.
    Errors: ArgumentError for an unknown `to` (deferred sums, "reduced", are not supported), and for
            a value that already varies along the axis; UnboundAxisError if no enclosing axis has
            the name.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: rune.lax.pcast(x, "i", to="varying"), axis_name="i")(rnp.arange(2.0))
    Array([0., 1.], f32[2], cpu:0)
    """
    if to != "varying":
        raise ArgumentError(f"pcast: cannot make a value {to!r} ('varying' expected)")
    for leaf in tree.leaves(x):
        present = type_of(leaf).varying.intersection(names_of(axis_name))
        if present:
            raise ArgumentError(
                f"pcast: cannot make {type_of(leaf)} vary along {', '.join(map(repr, present))} (it does already)"
            )
    return pvary(x, axis_name)


def pbroadcast(x: T, axis_name: Name, source: int) -> T:
    """The value of one lane, in every lane.

    Shapes: any, unchanged. Types: that of `x`.
    Errors: UnboundAxisError if no enclosing axis has the name; ArgumentError for a lane that the
            axis does not have.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x: rune.lax.pbroadcast(x, "i", 2), axis_name="i")(rnp.arange(3.0))
    Array([2., 2., 2.], f32[3], cpu:0)
    """
    lane, lanes = operator.index(source), _lanes("pbroadcast", axis_name)
    if not 0 <= lane < lanes:
        raise ArgumentError(f"pbroadcast: cannot send from lane {lane} (the axis {axis_name!r} has {lanes} lanes)")
    return tree.map(lambda leaf: all_gather(leaf, axis_name)[lane], x)
