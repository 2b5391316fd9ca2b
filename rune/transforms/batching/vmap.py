"""vmap: run a function on every lane of a batch at once.

Inside, the batch axis of a value leads: the axes of `in_axes` are moved to the front on entry, and
the leading axis to `out_axes` on return (a move is free: it becomes index expressions). A value
without lanes stays unbatched, so values that do not depend on the lane are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from rune import dtypes, effects, tree
from rune.core import axes
from rune.core.interpreter import current, type_of
from rune.core.lists import Flags, merge, omit, pick
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, AxisError
from rune.ops.conventions import normalised_axis
from rune.ops.movement import move_axis, repeat_lane
from rune.records import dataclass
from rune.transforms import references
from rune.transforms.arguments import array_leaves, is_float0, is_object, named, refuse_other
from rune.transforms.batching import lane_classes
from rune.transforms.batching.batch import Batch, batch_flat, lane_numbers
from rune.transforms.effect_boundaries import lanes

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: object = 0,
    out_axes: object = 0,
    axis_name: axes.Name | None = None,
    axis_size: int | None = None,
    spmd_axis_name: axes.Name | tuple[axes.Name, ...] | None = None,
    sum_match: bool = False,
    *,
    randomness: Literal["different", "same"] = "different",
) -> Callable[P, R]:
    """`fun` on every lane of its batched arguments.

    in_axes:   an integer, None (the same value in every lane, which may then be any object), or a
               tree prefix of the arguments.
    axis_name: the name of the lanes in collectives (rune.lax.psum and the like).
    out_axes:  the position of the batch axis in the results; None for an unbatched result.
    spmd_axis_name: the axes of a mesh that split the lanes of what `fun` lays out, by a
               sharding constraint or by a shard_map whose body does not name them
    randomness:  whether draws without a key differ between lanes, or are the same for all.
    Errors:    AxisError for an axis that the argument does not have, for different sizes, and for
               a batched result where out_axes is None.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(lambda x, y: x @ y, in_axes=(0, None))(rnp.ones((3, 2)), rnp.ones(2))
    Array([2., 2., 2.], f32[3], cpu:0)
    """

    if randomness not in ("different", "same"):
        raise ArgumentError(f"vmap: cannot take randomness={randomness!r} ('different', 'same')")

    refuse_other("vmap", sum_match=(sum_match, False))
    split = () if spmd_axis_name is None else axes.names_of(spmd_axis_name)
    axis = None if axis_name is None and not split else axes.LaneAxis(axis_name, split=split)

    def batched_function(*args: object, **kwargs: object) -> R:
        are_different = randomness == "different"
        # Boxes cost a walk through the arguments, which calls without references do not pay.
        if references.are_there():
            return _beside_references(fun, in_axes, out_axes, args, kwargs, axis_size, axis, are_different)
        lanes = lanes_of(in_axes, args, kwargs, axis_size)
        return on_lanes(fun, lanes, out_axes, axis, are_different=are_different)

    return named(batched_function, fun, "vmap")


def _beside_references(
    function: Callable[..., R],
    in_axes: object,
    out_axes: object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    axis_size: int | None,
    axis: axes.LaneAxis | None,
    are_different: bool,
) -> R:
    """A call whose arguments may be references: each lane gets its part of a batched reference.

    Boxes take the places of references in the arguments: trees of one leaf, which is the value. The
    last values of all lanes are results, placed along the same axes as the references.
    """
    (boxes, named_boxes), refs = references.boxed("vmap", (args, dict(kwargs)))
    is_ref = (isinstance(x, references.Ref) for x in tree.leaves((args, dict(kwargs))))
    ref_axes = pick(_axes_of_leaves(in_axes, tuple(args), kwargs), is_ref)

    def pure(*inner: object, **named_inner: object) -> tuple[R, list[Value]]:
        (inner, named_inner), inside = references.unboxed((inner, named_inner))
        result = function(*inner, **named_inner)
        references.require_none("vmap", result)
        return result, [ref.value for ref in inside]

    lanes = lanes_of(in_axes, boxes, named_boxes, axis_size)
    result, values = on_lanes(pure, lanes, (out_axes, ref_axes), axis, are_different=are_different)
    references.write_all(refs, values)
    return result


@dataclass(frozen=True, slots=True)
class Lanes:
    """The arguments of a batched function: their arrays, and the axis of lanes of each.

    is_array: which leaves of the arguments are these arrays
    objects:  the other leaves, the same for all lanes; NumPy arrays without lanes are among them
    voids:    which of the arrays stand for float0, which has only a shape
    """

    leaves: Sequence[Value]
    treedef: tree.TreeDef
    axes: Sequence[int | None]
    size: Size
    is_array: Flags
    objects: Sequence[object]
    voids: Flags

    def arguments(self, values: Sequence[Value]) -> tuple[tuple[object, ...], dict[str, object]]:
        """The arguments with other arrays."""
        arrays: Iterable[object] = _with_voids(values, self.voids)
        return tree.unflatten(self.treedef, merge(self.is_array, arrays, self.objects))


def lanes_of(in_axes: object, args: Sequence[object], kwargs: Mapping[str, object], axis_size: Size | None) -> Lanes:
    """The lanes of these arguments. Errors: as for `vmap`."""
    leaves, treedef = tree.flatten((tuple(args), dict(kwargs)))
    leaf_axes = _axes_of_leaves(in_axes, tuple(args), kwargs)
    is_array = tuple(a is not None or not _is_passed_on(x) for x, a in zip(leaves, leaf_axes, strict=True))
    # An object without lanes reaches the function unchanged; meanwhile a number takes its place,
    # since array_leaves refuses objects.
    stand_ins = [x if is_one else 0.0 for x, is_one in zip(leaves, is_array, strict=True)]
    values = pick(array_leaves("vmap", _without_voids(stand_ins), treedef), is_array)
    lane_axes = list(map(_checked_axis, values, pick(leaf_axes, is_array)))
    size = _batch_size(values, lane_axes, axis_size)
    voids = tuple(map(is_float0, pick(leaves, is_array)))
    return Lanes(values, treedef, lane_axes, size, is_array, omit(leaves, is_array), voids)


def _is_passed_on(leaf: object) -> bool:
    """Whether the function sees a leaf without lanes unchanged: as in JAX, NumPy data too."""
    return is_object(leaf) or isinstance(leaf, np.ndarray | np.generic)


def _without_voids(leaves: Sequence[Value]) -> list[Value]:
    """The leaves, with bools in place of float0, which has no bytes."""
    return [np.zeros(x.shape, bool) if is_float0(x) else x for x in leaves]


def _with_voids(values: Sequence[Value], voids: Flags) -> list[Value]:
    """The values, with float0 again where it was."""
    return [np.zeros(type_of(x).shape, dtypes.float0) if v else x for x, v in zip(values, voids, strict=True)]


def on_lanes(
    function: Callable[..., R], lanes: Lanes, out_axes: object, axis: axes.LaneAxis | None, *, are_different: bool
) -> R:
    """The results of `function` on every lane.

    are_different: whether draws without a key differ between lanes
    """
    out_tree: list[tree.TreeDef] = []
    out_voids: list[Flags] = []

    def flat(*values: Value) -> list[Value]:
        args, kwargs = lanes.arguments(values)
        with _each_lane() if are_different else nullcontext():
            outs, result_tree = tree.flatten(function(*args, **kwargs))
        out_tree.append(result_tree)
        out_voids.append(tuple(map(is_float0, outs)))
        return array_leaves("vmap", _without_voids(outs), result_tree)

    leading = [x if a is None else move_axis(x, a, 0) for x, a in zip(lanes.leaves, lanes.axes, strict=True)]
    outs, is_batched = batch_flat(flat, lanes.size, leading, [a is not None for a in lanes.axes], axis)
    # The tree of results is known now that `flat` has run.
    result = tree.unflatten(out_tree[0], outs)
    result_axes = tree.broadcast_prefix(out_axes, result, is_leaf=lambda x: x is None)
    result_axes = lane_classes.result_axes(result, result_axes, lanes.size)
    results = [_with_lanes_at(o, b, a, lanes.size) for o, b, a in zip(outs, is_batched, result_axes, strict=True)]
    return tree.unflatten(out_tree[0], _with_voids(results, out_voids[0]))


def _each_lane() -> effects.Each:
    """The boundary for effects of the function that the current interpreter batches."""
    batch = current()
    assert isinstance(batch, Batch)
    assert batch.parent is not None
    return lanes(batch.parent, lambda: lane_numbers(batch), lambda value: batch.join(value, True))


def _axes_of_leaves(in_axes: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> list[int | None]:
    # Arguments are a tuple, and a prefix must have the same containers.
    prefix = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if isinstance(prefix, tuple) and len(prefix) != len(args):
        raise AxisError(
            f"vmap: cannot match in_axes to the arguments ({len(prefix)} entries for {len(args)} positional arguments)"
        )
    # None is a prefix for all leaves of an argument, not an empty tree.
    positional = tree.broadcast_prefix(prefix, args, is_leaf=lambda x: x is None)
    # As in JAX, keyword arguments are always mapped over their leading axis.
    leaf_axes = [*positional, *(0 for _ in tree.leaves(kwargs))]
    return lane_classes.argument_axes((args, dict(kwargs)), leaf_axes)


def _checked_axis(value: Value, axis: Any) -> int | None:
    if axis is None:
        return None
    return normalised_axis("vmap", axis, type_of(value))


def _batch_size(leaves: Sequence[Value], axes: Sequence[int | None], axis_size: Size | None) -> Size:
    sizes = [type_of(x).shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None]
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        raise ArgumentError("vmap: cannot find the batch size (all in_axes are None)", hint="pass axis_size=")
    # Symbolic sizes are equal only if they are the same expression.
    if any(s != sizes[0] for s in sizes):
        axis_texts = [f"axis {a} of {type_of(x)}" for x, a in zip(leaves, axes, strict=True) if a is not None]
        axis_texts += [] if axis_size is None else [f"axis_size={axis_size}"]
        raise AxisError(
            f"vmap: cannot map axes of different sizes ({', '.join(dict.fromkeys(axis_texts))})",
            hint="in_axes=None passes the whole argument to every lane",
        )
    return sizes[0]


def _with_lanes_at(value: Value, is_batched: bool, axis: int | None, size: Size) -> Any:
    """A result with its lanes along this axis of it; None for a result without lanes."""
    if axis is None:
        # Which lane to return is not defined.
        if is_batched:
            lane = type_of(value).with_shape(type_of(value).shape[1:])
            raise AxisError(
                f"vmap: cannot return a batched result where out_axes is None (each lane has its own {lane})",
                hint="pass out_axes=0, or reduce over the lanes",
            )
        return value
    # A result that does not depend on the lane is the same in all of them.
    batch = value if is_batched else repeat_lane(value, size)
    ndim = type_of(batch).ndim
    if not -ndim <= axis < ndim:
        raise AxisError(f"vmap: cannot put the batch axis at {axis} of {type_of(batch)}")
    return move_axis(batch, 0, axis % ndim)
