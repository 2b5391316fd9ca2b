"""Refusals: errors of shardings, restated for the operation that was called and its array.

NamedSharding: cannot cut axis 0 of [6, 5] into 4 equal parts (...)
jit: cannot cut axis 0 of f32[6,5] at argument[0] into 4 equal parts (...)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from rune import tree
from rune.array import Place
from rune.backends import Device, device_named
from rune.core.types import ArrayType
from rune.errors import ArgumentError, DeviceError, RuneError
from rune.sharding import Mesh, NamedSharding
from rune.sharding.memory import Spread

_OF_SHARDING = re.compile(r"NamedSharding: cannot cut (axis \d+ of )?(?:\[[^\]]*\] )?(.*)", re.DOTALL)


def restate(error: RuneError, name: str, call_text: str) -> None:
    """Report an error of a sharding for an operation and an array; other errors are unchanged."""
    # The sharding knows only a shape; here the type and the path of the array are known.
    match = _OF_SHARDING.match(error.message)
    if match is not None:
        error.restate(f"{name}: cannot cut {match[1] or ''}{call_text} {match[2]}")


def at(type: object, place: str) -> str:
    """An array as messages show it: `f32[6,5] at ['w']`."""
    return f"{type} at {place}" if place else str(type)


def spread_prefix(name: str, role: str, prefix: object, values: object, leaves: Sequence[type]) -> list:
    """For each leaf of `values` the leaf of a prefix. `role` is the name of the prefix argument.

    leaves: the classes of leaves; None is a leaf too
    Errors: ArgumentError if the prefix does not fit.
    """
    try:
        return tree.broadcast_prefix(prefix, values, is_leaf=lambda x: x is None or isinstance(x, tuple(leaves)))
    except ArgumentError as error:
        _, _, why = error.message.partition("with its prefix ")
        error.restate(f"{name}: cannot match {role} with the values {why}")
        raise


def devices_of(place: Place) -> tuple[Device, ...]:
    """The devices that hold an array at this place, in the order of its mesh."""
    device = _device(place)
    return device.sharding.mesh.in_order if isinstance(device, Spread) else (device,)


def _device(place: Place) -> Device:
    # None stands for the CPU in a place.
    return place.device or device_named("cpu:0")


def require_there(name: str, type: ArrayType, place: Place, mesh: Mesh) -> None:
    """Errors: DeviceError for an array that is committed to devices in another order, or others."""
    if not place.committed:
        return
    if devices_of(place) != mesh.in_order:
        raise DeviceError(
            f"{name}: cannot use {type} on {_device(place).name} with {mesh} (it is committed there)",
            hint="rune.device_put with a NamedSharding of the mesh lays it out there",
        )


def require_layout(name: str, type: ArrayType, place: Place, sharding: NamedSharding) -> None:
    """Errors: ArgumentError for an array on as many devices, committed in another layout."""
    device = place.device
    if not isinstance(device, Spread) or _are_alike(device.sharding, sharding, type.ndim):
        return
    raise ArgumentError(
        f"{name}: cannot take {type} in {device.sharding.spec} (in_shardings says {sharding.spec}; it is committed)",
        hint="rune.device_put(x, sharding) lays it out before the call; without in_shardings it stays as it is",
    )


@functools.lru_cache(maxsize=4096)
def _are_alike(a: NamedSharding, b: NamedSharding, ndim: int) -> bool:
    """Whether the devices of both, in order, have the same blocks, or are not as many."""
    if a.num_devices != b.num_devices or any(map(b.spec.is_open, range(ndim))):
        return True
    blocks = ([block for _, block in s._layout(ndim)] for s in (a, b))
    return next(blocks) == next(blocks)
