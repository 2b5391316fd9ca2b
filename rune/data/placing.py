"""Moves elements to devices: numbers become arrays there; all other leaves stay as they are.

A device with a separate queue for copies receives them while its programs run. Programs wait for
the copy of an element only once the element is taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune import dtypes, profiling, tree
from rune.array import Array, as_array, default_place
from rune.backends.shared.allocations import note
from rune.backends.shared.protocol import CopiesAside
from rune.core.types import ArrayType
from rune.data.stages import Where
from rune.numpy import from_dlpack
from rune.ops.promote import refuse_mask
from rune.records import dataclass
from rune.settings import configure
from rune.sharding import NamedSharding
from rune.transforms.compile.placement import device_put, place_of
from rune.transforms.sharding.assemble import make_array_from_process_local_data


@dataclass(frozen=True, slots=True)
class Arrival:
    """An element on its way to a device. Call all of `joins` before using or dropping its arrays.

    sharding: a sharding over several processes, which assemble their parts only when the element is
              taken: all processes must run collective steps in the order of the program
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
    """Start copying the numbers of an element to a device."""
    if isinstance(where, NamedSharding) and where.mesh.is_multi_process:
        return Arrival(element, sharding=where)
    joins: list[Callable[[], None]] = []
    nbytes = sum(getattr(leaf, "nbytes", 0) for leaf in tree.leaves(element))
    with profiling.span("data.copy", profiling.Kind.COPY, nbytes=nbytes):
        return Arrival(tree.map(lambda leaf: _sent(leaf, where, joins), element), tuple(joins))


def taken_over(arrival: Arrival) -> object:
    """The element; programs of the device wait until the copy ends, the host does not."""
    join(arrival)
    sharding = arrival.sharding
    if sharding is None:
        return arrival.element
    return tree.map(lambda leaf: _assembled(leaf, sharding), arrival.element)


def join(arrival: Arrival) -> None:
    """Make programs of the device wait until the copy of the element ends."""
    for wait in arrival.joins:
        wait()


def _assembled(leaf: object, sharding: NamedSharding) -> object:
    host = _numbers(leaf)
    return leaf if host is None else make_array_from_process_local_data(sharding, host)


def _sent(leaf: object, where: Where, joins: list[Callable[[], None]]) -> object:
    if type(leaf) is Array and not _is_on_host(leaf):
        return device_put(leaf, where)
    host = _numbers(leaf)
    if host is None:
        return leaf
    place = default_place() if where is None else place_of(where)
    device = place.device
    if device is None or not isinstance(device.backend, CopiesAside):
        return device_put(leaf if type(leaf) is Array else host, where)
    type_ = leaf.type if type(leaf) is Array else ArrayType(host.shape, host.dtype)
    buffer, join = device.backend.copy_in_aside(host)
    joins.append(join)
    if profiling.gathers:
        note(buffer, type_, device)
    return Array(buffer, type_, place)


def _is_on_host(array: Array) -> bool:
    """Whether the host can read the array's numbers in place."""
    return array.place.device is None and array.dtype in dtypes.ANY


def _numbers(leaf: object) -> np.ndarray | None:
    """The leaf as a NumPy array of the dtype that its rune array has; None if it is not numeric.

    Tensors of other libraries are read by DLPack, which supports all of their dtypes.
    Errors: those of `rune.numpy.asarray`.
    """
    if type(leaf) is Array:
        return leaf.numpy()
    if hasattr(leaf, "__dlpack__") and not isinstance(leaf, np.ndarray | np.generic):
        return from_dlpack(leaf).numpy()
    host = np.asarray(leaf)
    if dtypes.native(host).dtype not in dtypes.ANY:
        return None
    refuse_mask("prefetch", leaf)
    is_ready = isinstance(leaf, np.ndarray) and host.dtype in dtypes.ANY and host.dtype == dtypes.canonical(host.dtype)
    if is_ready:
        return host
    with configure(device="cpu"):  # the device that converts it
        return as_array(leaf).numpy()
