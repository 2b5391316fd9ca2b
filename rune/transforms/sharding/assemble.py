"""Sharded arrays made from their blocks, under JAX's names.

On a mesh of several processes each process passes the blocks of its own devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rune import tree
from rune.array import Array, as_array, committed_to, on
from rune.backends import Device
from rune.core.types import ArrayType
from rune.errors import ArgumentError, DeviceError, ShapeError
from rune.records import dataclass
from rune.sharding import NamedSharding, Sharding
from rune.sharding.memory import Blocks, on_all_devices, spread
from rune.transforms.compile.placement import device_put
from rune.transforms.sharding.refusal import restate, spread_prefix
from rune.typing import ArrayLike, DTypeLike


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[tuple[slice, ...]], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array:
    """An array with blocks from a function, which is called once for each block of this process.

    data_callback: the slices of a block -> the block
    dtype:         the dtype of the array; None for that of the blocks
    Shapes:        -> `shape`.
    Errors:        ShapeError for a block of another shape.

    >>> import numpy as np, rune
    >>> from rune.sharding import SingleDeviceSharding
    >>> x = np.arange(4.0, dtype="f")
    >>> rune.make_array_from_callback((4,), SingleDeviceSharding("cpu"), lambda block: x[block])
    Array([0., 1., 2., 3.], f32[4], cpu:0)
    """
    _require_sharding(sharding)
    blocks: dict[str, Array] = {}
    arrays: list[Array] = []
    _require_fit(sharding, shape)
    for device, index in sharding.addressable_devices_indices_map(tuple(shape)).items():
        # Replicas have equal indices; slices are not hashable, but their text is.
        if repr(index) not in blocks:
            blocks[repr(index)] = _array(data_callback(index), dtype)
        arrays.append(device_put(blocks[repr(index)], device))
    return make_array_from_single_device_arrays(shape, sharding, arrays)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array:
    """The array whose blocks are already on the devices; nothing is copied.

    arrays: a block on each device of the sharding that belongs to this process, in any order
    dtype:  the expected dtype of the blocks, which is checked
    Shapes: each [*block] -> `shape`.
    Errors: ShapeError for a block of another shape, DeviceError for a device without one.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import SingleDeviceSharding
    >>> block = rune.device_put(rnp.ones(2), "cpu")
    >>> rune.make_array_from_single_device_arrays((2,), SingleDeviceSharding("cpu"), [block])
    Array([1., 1.], f32[2], cpu:0)
    """
    _require_sharding(sharding)
    # On a single device the block is the array.
    if not isinstance(sharding, NamedSharding):
        return device_put(_block_on(next(iter(sharding.device_set)), {a.device: a for a in arrays}), sharding)
    _require_fit(sharding, shape)
    # The caller may pass blocks in any order; the array has them in the order of the mesh.
    by_device = {array.device: array for array in arrays}
    blocks = [_block_on(device, by_device) for device in _local_devices(sharding)]
    block_type = ArrayType(
        sharding.shard_shape(tuple(shape)), blocks[0].type.dtype if dtype is None else np.dtype(dtype)
    )
    for array in blocks:
        if array.type.strong() != block_type:
            raise ShapeError(
                f"make_array: cannot use {array.type} on {array.device.name} as a block of "
                f"{list(shape)} by {sharding.spec!r} ({block_type} expected)"
            )
    buffers = on_all_devices([array.buffer_on(on(array.device)) for array in blocks], sharding.mesh)
    array_type = blocks[0].type.with_shape(tuple(shape))
    return Array(Blocks(buffers, tuple(shape)), array_type, committed_to(spread(sharding)))


def _local_devices(sharding: NamedSharding) -> tuple[Device, ...]:
    """The devices of this process. Errors: DistributedError if there are none."""
    # Called for its error.
    spread(sharding)
    return sharding.mesh.local_devices


def _require_sharding(sharding: object) -> None:
    if not isinstance(sharding, Sharding):
        raise ArgumentError(f"make_array: cannot lay out by {type(sharding).__name__} (a Sharding expected)")


def _require_fit(sharding: Sharding, shape: Sequence[int]) -> None:
    """Errors: ShapeError for an array that the sharding cannot split."""
    try:
        sharding.shard_shape(tuple(shape))
    except ShapeError as error:
        restate(error, "make_array", str(list(shape)))
        raise


def _array(data: ArrayLike, dtype: DTypeLike | None) -> Array:
    """The data as an array. A rune array keeps its dtype, even one of 64 bits."""
    if dtype is not None:
        return as_array(data, np.dtype(dtype))
    return data if type(data) is Array else as_array(data)


def _block_on(device: Device, by_device: Mapping[Device, Array]) -> Array:
    if device not in by_device:
        raise DeviceError(f"make_array: cannot find the block on {device.name} ({len(by_device)} blocks)")
    return by_device[device]


def make_array_from_process_local_data(sharding: object, local_data: object, global_shape: object = None) -> Any:
    """Arrays from the parts that this process has for its own devices: a tree like `local_data`.

    sharding:     that of every array, or a tree prefix
    local_data:   a tree of the blocks of this process, side by side; or of all of an axis that is
                  split
    global_shape: the shape of each array, or a tree prefix; None, for all of it or for an axis, to
                  derive it from the blocks
    Shapes:       local_data [rows, *S] in each of n processes, split along the first axis, -> [n
                  rows, *S]; axes that all processes have whole keep their size.
    Errors:       ShapeError if an axis of the data is neither whole nor the blocks of this process.

    >>> import numpy as np, rune
    >>> from rune.sharding import SingleDeviceSharding
    >>> rune.make_array_from_process_local_data(SingleDeviceSharding("cpu"), {"x": np.ones(2)})
    {'x': Array([1., 1.], f32[2], cpu:0)}
    """
    name = "make_array_from_process_local_data"
    leaves, treedef = tree.flatten(local_data)
    shardings = spread_prefix(name, "sharding", sharding, local_data, (Sharding,))
    shapes = spread_prefix(name, "global_shape", _as_leaf(global_shape), local_data, (tuple,))
    return tree.unflatten(treedef, map(_from_local_data, shardings, leaves, shapes))


def _as_leaf(global_shape: object) -> object:
    """The shape as a tuple, if it is the list of one shape; a tree prefix as it is."""
    is_shape = isinstance(global_shape, list) and any(isinstance(size, int) for size in global_shape)
    return tuple(global_shape) if is_shape else global_shape  # type: ignore[arg-type]


def _from_local_data(sharding: Sharding, part: ArrayLike, global_shape: Sequence[int | None] | None) -> Array:
    _require_sharding(sharding)
    if any(isinstance(size, tuple | list) for size in global_shape or ()):
        raise ArgumentError(
            f"make_array: cannot use {global_shape!r} as the shape of one array (sizes expected)",
            hint="a prefix of several shapes is a list or a dictionary: tuples are shapes",
        )
    data = _array(part, None).numpy()
    parts = _LocalParts.of(sharding, data.ndim)
    shape = parts.global_shape(data.shape, global_shape)
    return make_array_from_callback(
        shape, sharding, lambda block: data[parts.within(block, shape, data.shape)], data.dtype
    )


@dataclass(frozen=True, slots=True)
class _LocalParts:
    """The parts of an array that the devices of a process have.

    counts:  the number of parts of each axis
    numbers: the numbers of the parts of this process, along each axis, in order
    """

    counts: tuple[int, ...]
    numbers: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, sharding: Sharding, ndim: int) -> _LocalParts:
        """The parts of an array of this rank."""
        # An array whose sizes are the counts has blocks of one element: its index is the number.
        counts = tuple(sharding.parts(a) for a in range(ndim)) if isinstance(sharding, NamedSharding) else (1,) * ndim
        blocks = sharding.addressable_devices_indices_map(counts).values()
        return cls(counts, tuple(tuple(sorted({b[axis].start or 0 for b in blocks})) for axis in range(ndim)))

    def global_shape(self, local: Sequence[int], declared_shape: Sequence[int | None] | None) -> tuple[int, ...]:
        """The shape of the whole array. Errors: ShapeError."""
        sizes = (None,) * len(local) if declared_shape is None else tuple(declared_shape)
        if len(sizes) != len(local):
            raise ShapeError(
                f"make_array: cannot make {list(sizes)} of local data {list(local)} (as many axes required)"
            )
        return tuple(self._size(axis, *pair) for axis, pair in enumerate(zip(local, sizes, strict=True)))

    def _size(self, axis: int, local: int, declared_size: int | None) -> int:
        """The size of an axis, from the part of it that this process has."""
        count, local_blocks = self.counts[axis], len(self.numbers[axis])
        # The data may be the blocks of this process, or all of an axis, in which every process has
        # all.
        blocks = None if local % local_blocks else local // local_blocks * count
        size = blocks if declared_size is None else declared_size
        if size is not None and size in (local, blocks):
            return size
        rows = f"{local_blocks} equal blocks"
        if declared_size is not None:
            rows = f"{declared_size * local_blocks // count} or {declared_size} rows"
        raise ShapeError(
            f"make_array: cannot use {local} rows along axis {axis} in this process ({rows} expected, "
            f"since it has {local_blocks} of the {count} blocks)"
        )

    def within(self, block: Sequence[slice], shape: Sequence[int], local: Sequence[int]) -> tuple[slice, ...]:
        """The slices of a block in the data of this process."""
        return tuple(
            self._span(axis, *b.indices(shape[axis])[:2], shape[axis], n)
            for axis, (b, n) in enumerate(zip(block, local, strict=True))
        )

    def _span(self, axis: int, start: int, stop: int, size: int, local: int) -> slice:
        if local == size:
            return slice(start, stop)
        # The data has the blocks of this process side by side, without those of others between
        # them.
        place = self.numbers[axis].index(start // (stop - start)) * (stop - start)
        return slice(place, place + stop - start)
