"""Reshard: from the block of a device to its block in another layout of the same array.

P('a', None) -> P(None, None)     the devices of 'a' gather their blocks
P(None, None) -> P(None, 'a')     each device takes its part

A layout is, for each axis of an array, the mesh axes that split it, the first outermost.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.axes import Name
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.values import Value
from rune.dims import Size
from rune.ops.arithmetic import cast
from rune.ops.family import size_value
from rune.sharding import Mesh, PartitionSpec

Layout = tuple[tuple[Name, ...], ...]


def layout_of(spec: PartitionSpec, ndim: int) -> Layout:
    """The layout of an array of this rank."""
    return tuple(spec.names(axis) for axis in range(ndim))


def constrained_layout(spec: PartitionSpec, layout: Layout) -> Layout:
    """The layout by a spec; axes that it does not constrain stay as they are in another layout."""
    names = set(spec.all_names())
    return tuple(
        at if spec.is_open(axis) and names.isdisjoint(at) else spec.names(axis) for axis, at in enumerate(layout)
    )


def uncut(ndim: int) -> Layout:
    """The layout of an array that every device has whole."""
    return ((),) * ndim


def spec_of(layout: Layout) -> PartitionSpec:
    """The spec of a layout."""
    # Without names for trailing axes that are not split, so that one layout has one spec.
    cut = [n for n, names in enumerate(layout) if names]
    return PartitionSpec(*layout[: cut[-1] + 1 if cut else 0])


def cut_more(layout: Layout, other: Layout, fixed_axes: Container[int] = ()) -> Layout:
    """The layout, with axes split further as in `other`, except fixed ones: needs no exchange."""
    cuts = list(layout)
    for axis, (names, further) in enumerate(zip(layout, other, strict=True)):
        # A mesh axis can split only one axis of an array.
        names_used = {name for n, axis_names in enumerate(cuts) if n != axis for name in axis_names}
        if axis not in fixed_axes and further[: len(names)] == names and not names_used.intersection(further):
            cuts[axis] = further
    return tuple(cuts)


def cuts_further(layout: Layout, other: Layout) -> bool:
    """Whether the first layout splits the second further or is equal: then each device has it."""
    return all(names[: len(start)] == start for names, start in zip(layout, other, strict=True))


def cut_less(layout: Layout, other: Layout) -> Layout:
    """The common part of both layouts."""
    return tuple(a[: _common(a, b)] for a, b in zip(layout, other, strict=True))


def resharded(block: Value, mesh: Mesh, source: Layout, target: Layout) -> Value:
    """This device's block in the target layout. Bound inside the mesh's axes."""
    # Innermost axes are gathered first, so that blocks are joined in the order of the array.
    common = [_common(a, b) for a, b in zip(source, target, strict=True)]
    for axis, names in enumerate(source):
        for name in reversed(names[common[axis] :]):
            block = gathered(block, axis, name, mesh.shape[name])
    # Outermost axes first: each device takes its part of the part.
    for axis, names in enumerate(target):
        for name in names[common[axis] :]:
            block = mesh_part(block, axis=axis, axis_name=name, lanes=mesh.shape[name])
    return block


def _common(a: Sequence[Name], b: Sequence[Name]) -> int:
    """The number of names in their common beginning, along which nothing has to move."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def device_number(names: Sequence[Name], mesh: Mesh, dtype: np.dtype) -> Value:
    """The number of this device along mesh axes, the first outermost."""
    number, *others = (cast(ops.axis_index(axis_name=name), dtype) for name in names)
    for name, place in zip(names[1:], others, strict=True):
        number = ops.add(ops.mul(number, size_value(mesh.shape[name], dtype)), place)
    return number


def gathered(block: Value, axis: int, name: Name, devices: Size) -> Array:
    """The blocks of all devices of a mesh axis, side by side."""
    blocks = ops.all_gather(block, axis=axis, lanes=devices, axis_name=name)
    shape = type_of(block).shape
    return ops.reshape(blocks, shape=(*shape[:axis], devices * shape[axis], *shape[axis + 1 :]))


def part(block: Value, axis: int, name: Name, devices: Size) -> Array:
    """The device's part of an axis, by its number along a mesh axis."""
    shape = type_of(block).shape
    size = shape[axis] // devices
    zero = np.zeros((), dtypes.i32)
    start = ops.mul(ops.axis_index(axis_name=name), size_value(size, dtypes.i32))
    starts = [start if n == axis else zero for n in range(len(shape))]
    return ops.dynamic_slice(block, *starts, sizes=(*shape[:axis], size, *shape[axis + 1 :]))


# The same as one equation, so that scattered_sums.py can recognise it.
mesh_part: Primitive = Primitive(
    "mesh_part",
    "movement",
    lambda block, *, axis, axis_name, lanes: block.with_shape(
        (*block.shape[:axis], block.shape[axis] // lanes, *block.shape[axis + 1 :])
    ),
    expand=lambda block, *, axis, axis_name, lanes: part(block, axis, axis_name, lanes),
)
