"""Elements onto devices: their numbers become arrays there, and what is no number stays.

A device with a queue of its own for copies gets them there while its programs run; those wait for
the copy of an element when it is taken, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rune import dtypes, profiling, tree
from rune.array import Array, as_array, committed_to
from rune.backends.shared.protocol import CopiesAside
from rune.core.types import ArrayType
from rune.data.stages import Where
from rune.sharding import NamedSharding
from rune.transforms.compile.placement import device_put, place_of
from rune.transforms.sharding.assemble import make_array_from_process_local_data


@dataclass(frozen=True, slots=True)
class Arrival:
    """An element on its way: its arrays may be used or dropped once all of `joins` were called."""

    element: object
    joins: tuple[Callable[[], None], ...]


def destination(where: Where) -> Where:
    """A device, its name or a sharding. Errors: those of `device_put` for what is neither."""
    if where is not None:
        device_put(np.zeros(0, np.float32) if not isinstance(where, NamedSharding) else (), where)
    return where


def sent(element: object, where: Where) -> Arrival:
    """The element with its numbers on their way to a device."""
    joins: list[Callable[[], None]] = []
    nbytes = sum(getattr(leaf, "nbytes", 0) for leaf in tree.leaves(element))
    with profiling.span("data.copy", profiling.Kind.COPY, nbytes=nbytes):
        return Arrival(tree.map(lambda leaf: _sent(leaf, where, joins), element), tuple(joins))


def taken_over(arrival: Arrival) -> object:
    """The element; programs of the device wait until it is there, the host does not."""
    for join in arrival.joins:
        join()
    return arrival.element


def _sent(leaf: object, where: Where, joins: list[Callable[[], None]]) -> object:
    if type(leaf) is Array:
        return device_put(leaf, where)
    host = np.asarray(leaf)
    if host.dtype not in dtypes.ANY:
        return leaf
    if isinstance(where, NamedSharding) and where.mesh.is_multi_process:
        return make_array_from_process_local_data(where, host)
    device = None if where is None or isinstance(where, NamedSharding) else place_of(where).device
    if device is None or not isinstance(device.backend, CopiesAside):
        return device_put(leaf, where)
    data = host if host.dtype == dtypes.canonical(host.dtype) else as_array(host).numpy()
    buffer, join = device.backend.copy_in_aside(data)
    joins.append(join)
    return Array(buffer, ArrayType(data.shape, data.dtype), committed_to(device))
