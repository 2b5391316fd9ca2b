"""pmap: one compiled program over the lanes of its arguments, distributed over the devices.

one device        jit(vmap(f))
several devices   jit(shard_map(vmap(f))), where each has the same number of lanes

The lanes are a named axis, and collectives are operations along it. The meaning of a program
does not depend on the number of devices: a collective combines the lanes of each device, then
the devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from rune import tree
from rune.backends import Device, device_of
from rune.backends import devices as devices_of
from rune.core.axes import LaneAxis, Name
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError
from rune.records import dataclass
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from rune.sharding.meshes import default_devices
from rune.transforms.arguments import named
from rune.transforms.batching.vmap import Lanes, lanes_of, on_lanes
from rune.transforms.compile.jit import jit
from rune.transforms.compile.placement import constrained
from rune.transforms.compile.static_arguments import Names, as_set
from rune.transforms.sharding.shard_map import shard_map

R = TypeVar("R")


@dataclass(frozen=True, slots=True, repr=False)
class _Unnamed:
    """The name of an axis that no collective can mention; all such names are equal."""

    def __repr__(self) -> str:
        return "an unnamed axis"


def pmap(
    fun: Callable[..., R],
    axis_name: Name | None = None,
    *,
    in_axes: object = 0,
    out_axes: object = 0,
    axis_size: int | None = None,
    static_broadcasted_argnums: Names = None,
    donate_argnums: Names = None,
    devices: Sequence[str | Device] | None = None,
    backend: str | None = None,
) -> Callable[..., R]:
    """`fun` on every lane of its arguments, compiled as one program for all devices.

    axis_name:  the name of the lanes in collectives.
    in_axes, out_axes, axis_size:  as in `vmap`; None for a static argument.
    static_broadcasted_argnums, donate_argnums:  as static_argnums and donate_argnums of `jit`.
    devices:    where the lanes are: the same number on each; None for one lane on each of the first
                devices or, if there are more lanes than devices, equally many on all devices.
    backend:    the backend of the devices, as "cpu"; None for that of the default device.
    Errors:     those of `vmap` and `jit`; ArgumentError if the lanes cannot be distributed evenly,
                or a device is not one of the backend; DeviceError for a backend without devices.

    >>> import rune, rune.numpy as rnp
    >>> def step(w, x, y):
    ...     gradient = rune.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    ...     return w - 0.1 * rune.lax.pmean(gradient, "devices")
    >>> parallel = rune.pmap(step, "devices", in_axes=(None, 0, 0), out_axes=None)
    >>> parallel(rnp.zeros(2), rnp.ones((4, 8, 2)), rnp.ones((4, 8)))
    Array([0.2, 0.2], f32[2], cpu:0)
    """
    static = as_set(static_broadcasted_argnums, None)
    backend_devices = None if backend is None else devices_of(backend)
    for device in map(device_of, devices or ()):
        if backend_devices is not None and device not in backend_devices:
            raise ArgumentError(f"pmap: cannot use {device.name} (not a device of backend={backend!r})")
    name = _Unnamed() if axis_name is None else axis_name

    def all_lanes(*args: object, **kwargs: object) -> R:
        # Static arguments do not pass through vmap, which would take them for arrays.
        dynamic = [i for i in range(len(args)) if i not in static]
        axes = tuple(in_axes[i] for i in dynamic) if isinstance(in_axes, tuple | list) else in_axes
        lanes = lanes_of(axes, [args[i] for i in dynamic], kwargs, axis_size)
        return _distributed(_of_dynamic(fun, args, dynamic), lanes, out_axes, name, devices, backend_devices)

    named(all_lanes, fun, "pmap")
    return jit(all_lanes, static_argnums=static_broadcasted_argnums, donate_argnums=donate_argnums)


def _of_dynamic(function: Callable[..., R], args: Sequence[object], dynamic: Sequence[int]) -> Callable[..., R]:
    """The function of the arguments at these positions; the others are those of `args`."""

    def call(*values: object, **keywords: object) -> R:
        full_args = list(args)
        for i, value in zip(dynamic, values, strict=True):
            full_args[i] = value
        return function(*full_args, **keywords)

    return call


def _distributed(
    function: Callable[..., R],
    lanes: Lanes,
    out_axes: object,
    name: Name,
    devices: Sequence[str | Device] | None,
    backend_devices: Sequence[Device] | None,
) -> R:
    """The results of all lanes; each device computes equally many."""
    lane_devices = _devices_for(lanes.size, devices, backend_devices)
    axis, share = LaneAxis(name, len(lane_devices)), lanes.size // len(lane_devices)

    def on_one_device(*leaves: Value) -> R:
        return on_lanes(function, replace(lanes, leaves=leaves, size=share), out_axes, axis, are_different=True)

    # Without a choice of devices, a single one needs no mesh, and arguments keep their place.
    if len(lane_devices) == 1 and devices is None and backend_devices is None:
        return on_one_device(*lanes.leaves)
    in_specs = tuple(_cut_at(axis, name) for axis in lanes.axes)
    out_specs = tree.map(lambda axis: _cut_at(axis, name), out_axes, is_leaf=lambda x: x is None)
    # Without check_vma each device has gradients of its own, as each lane has under vmap, and psum
    # is its own transpose (decision 0024); with it a gradient would be a sum over the devices.
    mesh = Mesh(lane_devices, name)
    over_mesh = shard_map(on_one_device, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    # Arguments move here from as many other devices, which shard_map alone would refuse.
    leaves = (constrained(x, NamedSharding(mesh, spec)) for x, spec in zip(lanes.leaves, in_specs, strict=True))
    return over_mesh(*leaves)


def _cut_at(axis: int | None, name: Name) -> PartitionSpec:
    """The spec of an array whose lanes are at an axis; None for one that all lanes share."""
    return PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, name)


def _devices_for(
    lanes: Size, devices: Sequence[str | Device] | None, backend_devices: Sequence[Device] | None
) -> tuple[Device, ...]:
    """The devices that share the lanes: those given, or the first available ones.

    Errors: ArgumentError if some would have more lanes than others.
    """
    candidates = map(device_of, devices) if devices is not None else backend_devices or default_devices()
    lane_devices = tuple(candidates)
    # The user's list is a demand; of the available devices, no more than lanes are used.
    if devices is None and isinstance(lanes, int) and lanes:
        lane_devices = lane_devices[:lanes]
    if lanes % len(lane_devices) != 0:
        raise ArgumentError(
            f"pmap: cannot deal {lanes} lanes out to {len(lane_devices)} devices (as many for each required)",
            hint=f"pass devices=, or lanes up to a multiple of {len(lane_devices)}",
        )
    return lane_devices
