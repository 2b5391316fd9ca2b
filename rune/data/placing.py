"""Elements onto devices: their numbers become arrays there, and everything else stays.

A device with a queue of its own for copies gets them there while its programs run; those wait for
the copy of an element when it is taken, and not before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune import dtypes, profiling, tree
from rune.array import Array, as_array, default_place
from rune.backends.shared.protocol import CopiesAside
from rune.core.types import ArrayType
from rune.data.stages import Where
from rune.numpy import from_dlpack
from rune.records import dataclass
from rune.sharding import NamedSharding
from rune.transforms.compile.placement import device_put, place_of
from rune.transforms.sharding.assemble import make_array_from_process_local_data


@dataclass(frozen=True, slots=True)
class Arrival:
    """An element on its way: its arrays may be used or dropped once all of `joins` were called.

    sharding: over several processes, who put their parts together when the element is taken: what
              they do together, all of them do in the order of the program
    """

    element: object
    joins: tuple[Callable[[], None], ...] = ()
    sharding: NamedSharding | None = None


def destination(where: Where) -> Where:
    """A device, its name or a sharding. Errors: those of `device_put` for anything else."""
    if where is not None:
        device_put(np.zeros(0, np.float32) if not isinstance(where, NamedSharding) else (), where)
    return where


def sent(element: object, where: Where) -> Arrival:
    """The element with its numbers on their way to a device."""
    if isinstance(where, NamedSharding) and where.mesh.is_multi_process:
        return Arrival(element, sharding=where)
    joins: list[Callable[[], None]] = []
    nbytes = sum(getattr(leaf, "nbytes", 0) for leaf in tree.leaves(element))
    with profiling.span("data.copy", profiling.Kind.COPY, nbytes=nbytes):
        return Arrival(tree.map(lambda leaf: _sent(leaf, where, joins), element), tuple(joins))


def taken_over(arrival: Arrival) -> object:
    """The element; programs of the device wait until it is there, the host does not."""
    join(arrival)
    sharding = arrival.sharding
    if sharding is None:
        return arrival.element
    return tree.map(lambda leaf: _assembled(leaf, sharding), arrival.element)


def join(arrival: Arrival) -> None:
    """Let programs of the device wait until the element is there."""
    for wait in arrival.joins:
        wait()


def _assembled(leaf: object, sharding: NamedSharding) -> object:
    host = _on_host(leaf)
    return make_array_from_process_local_data(sharding, host) if host.dtype in dtypes.ANY else leaf


def _sent(leaf: object, where: Where, joins: list[Callable[[], None]]) -> object:
    if type(leaf) is Array:
        return device_put(leaf, where)
    host = _on_host(leaf)
    if host.dtype not in dtypes.ANY:
        return leaf
    place = default_place() if where is None else place_of(where)
    if place.device is None or not isinstance(place.device.backend, CopiesAside):
        return device_put(host, where)
    data = host if host.dtype == dtypes.canonical(host.dtype) else as_array(host).numpy()
    buffer, wait = place.device.backend.copy_in_aside(data)
    joins.append(wait)
    return Array(buffer, ArrayType(data.shape, data.dtype), place)


def _on_host(leaf: object) -> np.ndarray:
    """The leaf as NumPy's; tensors of others by DLPack, by which all of their dtypes come."""
    if type(leaf) is Array:
        return leaf.numpy()
    if hasattr(leaf, "__dlpack__") and not isinstance(leaf, np.ndarray | np.generic):
        return from_dlpack(leaf).numpy()
    return np.asarray(leaf)
