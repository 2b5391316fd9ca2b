"""Reshard: from the block of a device to its block in another layout of the same array.

A layout is, for each axis of an array, the mesh axes that split it, the first outermost. The
exchanges are those of routes.py.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

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
from rune.transforms.sharding.routes import Gather, Layout, Part, Step, Swap, Turn, common, route


def layout_of(spec: PartitionSpec, ndim: int) -> Layout:
    """The layout of an array of this rank."""
    return tuple(spec.names(axis) for axis in range(ndim))


def constrained_layout(spec: PartitionSpec, layout: Layout) -> Layout:
    """The layout by a spec; axes that it does not constrain stay as they are in another layout."""
    names = set(spec.all_names())
    return tuple(
        at if spec.is_open(axis) and names.isdisjoint(at) else spec.names(axis) for axis, at in enumerate(layout)
    )


def finer(layout: Layout, inner: Layout) -> Layout:
    """The layout of an array, whose blocks have an inner layout by other mesh axes."""
    return tuple((*outermost, *names) for outermost, names in zip(layout, inner, strict=True))


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
    return tuple(a[: common(a, b)] for a, b in zip(layout, other, strict=True))


def resharded(block: Value, mesh: Mesh, source: Layout, target: Layout) -> Value:
    """This device's block in the target layout. Bound inside the mesh's axes."""
    if source == target:
        return block
    sizes = zip(type_of(block).shape, source, strict=True)
    shape = tuple(size * math.prod(mesh.shape[name] for name in names) for size, names in sizes)
    for step in route(source, target, shape, mesh.shape).steps:
        block = _after(step, block, mesh)
    return block


def _after(step: Step, block: Value, mesh: Mesh) -> Value:
    """This device's block after a step of a route."""
    match step:
        case Gather(axis, name):
            return gathered(block, axis, name, mesh.shape[name])
        case Part(axis, name):
            return mesh_part(block, axis=axis, axis_name=name, lanes=mesh.shape[name])
        case Turn(axis, target, names):
            return _turned(block, axis, target, names, math.prod(mesh.shape[name] for name in names))
        case Swap(source, target):
            names = tuple(name for name in mesh.axis_names if any(name in n for n in (*source, *target)))
            return ops.ppermute(block, permutation=_permutation(mesh, names, source, target), axis_name=_axis(names))


def _turned(block: Value, axis: int, target: int, names: Sequence[Name], devices: int) -> Array:
    """The block split along another axis, by the devices that split the first one before."""
    shape = type_of(block).shape
    parts = ops.reshape(block, shape=(*shape[:target], devices, shape[target] // devices, *shape[target + 1 :]))
    blocks = ops.all_to_all(parts, split_axis=target, concat_axis=axis, lanes=devices, axis_name=_axis(names))
    sizes = [size // devices if n == target else size for n, size in enumerate(shape)]
    sizes[axis] *= devices
    return ops.reshape(blocks, shape=tuple(sizes))


def _axis(names: Sequence[Name]) -> Name:
    """The axis of a collective over these mesh axes."""
    return names[0] if len(names) == 1 else tuple(names)


def _permutation(mesh: Mesh, names: Sequence[Name], source: Layout, target: Layout) -> tuple[tuple[int, int], ...]:
    """The senders and receivers of whole blocks; a device that has its block already keeps it."""
    places = [dict(zip(names, at, strict=True)) for at in np.ndindex(*(mesh.shape[name] for name in names))]
    holders = _by_block(places, mesh, source)
    pairs: list[tuple[int, int]] = []
    for block, receivers in _by_block(places, mesh, target).items():
        settled = [n for n in receivers if n in holders[block]]
        senders = [n for n in holders[block] if n not in settled]
        pairs += [(n, n) for n in settled]
        pairs += zip(senders, (n for n in receivers if n not in settled), strict=True)
    return tuple(sorted(pairs))


def _by_block(places: Sequence[Mapping[Name, int]], mesh: Mesh, layout: Layout) -> dict[tuple[int, ...], list[int]]:
    """The numbers of the devices that have each block of a layout."""
    devices: dict[tuple[int, ...], list[int]] = {}
    for number, place in enumerate(places):
        block = [0] * len(layout)
        for axis, names in enumerate(layout):
            for name in names:
                block[axis] = block[axis] * mesh.shape[name] + place[name]
        devices.setdefault(tuple(block), []).append(number)
    return devices


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
