"""Collectives over lanes that are spread evenly over the devices of a mesh.

The lanes of each device are combined first, then those of all devices. Sums and extrema are
combined locally; for any other collective each device gathers all lanes, applies the meaning of the
collective to them, and keeps the results of its own lanes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import literal_like
from rune.core.primitive import Collective
from rune.core.values import Value
from rune.dims import Size
from rune.ops.collectives import axis_index, pmax, pmin, psum
from rune.ops.family import size_value
from rune.ops.movement import repeat_lane
from rune.transforms.sharding.reshard import gathered, part

Params = Mapping[str, Hashable]


def over_lanes_of_devices(
    primitive: Collective, devices: int, batched_args: Sequence[bool], size: Size, args: Sequence[Value], params: Params
) -> tuple[Value, bool]:
    """The result and whether it has lanes, for operands with `size` lanes on each device."""
    if primitive is axis_index:
        return numbers(size, params["axis_name"]), True
    # The lanes of a group may be on several devices, and those of a device in several groups: the
    # lanes of one device cannot be combined on their own first.
    if "groups" in params:
        return _by_gathering(primitive, devices, batched_args, size, args, params)
    # A value without lanes is the same on every lane of every device.
    if primitive is psum and not batched_args[0]:
        return ops.mul(args[0], literal_like(size * devices, args[0])), False
    if primitive in (psum, pmax, pmin):
        out, _ = primitive.over_lanes(batched_args, size, *args, **params)
        return primitive(out, **params), False
    return _by_gathering(primitive, devices, batched_args, size, args, params)


def numbers(size: Size, axis_name: Hashable) -> Array:
    """The numbers of the lanes that this device has: i32[size]."""
    # Devices have equally many lanes, in the order of their index.
    first = ops.mul(axis_index(axis_name=axis_name), size_value(size, dtypes.i32))
    return ops.add(ops.iota(shape=(size,), axis=0, dtype=dtypes.i32), first)


def _by_gathering(
    primitive: Collective, devices: int, batched_args: Sequence[bool], size: Size, args: Sequence[Value], params: Params
) -> tuple[Value, bool]:
    """The collective applied to all lanes, and the part of its results for this device."""
    name = params["axis_name"]
    lanes = [x if b else repeat_lane(x, size) for x, b in zip(args, batched_args, strict=True)]
    all_lanes = [gathered(x, 0, name, devices) for x in lanes]
    out, has_lanes = primitive.over_lanes((True,) * len(args), size * devices, *all_lanes, **params)
    # Every device has gathered all lanes, so a result without lanes is the same on each.
    return (part(out, 0, name, devices), True) if has_lanes else (out, False)
