"""Sharded arrays made of their blocks, under the names of JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rune.array import Array, as_array, committed_to, on
from rune.backends import Device
from rune.core.types import ArrayType
from rune.errors import ArgumentError, DeviceError, ShapeError
from rune.sharding import NamedSharding, Sharding
from rune.sharding.memory import Blocks, spread
from rune.transforms.compile.placement import device_put
from rune.transforms.sharding.refusal import restate
from rune.typing import ArrayLike, DTypeLike


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[tuple[slice, ...]], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array:
    """An array whose blocks a function gives, each asked for once.

    data_callback: the slices of a block -> the block
    dtype:         of the array; None for that of the blocks
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
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        if repr(index) not in blocks:
            blocks[repr(index)] = _array(data_callback(index), dtype)
        arrays.append(device_put(blocks[repr(index)], device))
    return make_array_from_single_device_arrays(shape, sharding, arrays)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array:
    """The array of which each device has a block already; nothing is copied.

    arrays: a block on each device of the sharding, in any order
    dtype:  that of the blocks, where somebody wants to be sure of it
    Shapes: each [*block] -> `shape`.
    Errors: ShapeError for a block of another shape, DeviceError for a device without one.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import SingleDeviceSharding
    >>> block = rune.device_put(rnp.ones(2), "cpu")
    >>> rune.make_array_from_single_device_arrays((2,), SingleDeviceSharding("cpu"), [block])
    Array([1., 1.], f32[2], cpu:0)
    """
    _require_sharding(sharding)
    if not isinstance(sharding, NamedSharding):
        return device_put(_block_on(next(iter(sharding.device_set)), {a.device: a for a in arrays}), sharding)
    _require_fit(sharding, shape)
    by_device = {array.device: array for array in arrays}
    ordered = [_block_on(device, by_device) for device in sharding.mesh.in_order]
    block_type = ArrayType(
        sharding.shard_shape(tuple(shape)), ordered[0].type.dtype if dtype is None else np.dtype(dtype)
    )
    for array in ordered:
        if array.type.strong() != block_type:
            raise ShapeError(
                f"make_array: cannot use {array.type} on {array.device.name} as a block of "
                f"{list(shape)} by {sharding.spec!r} ({block_type} expected)"
            )
    buffers = tuple(array.buffer_on(on(array.device)) for array in ordered)
    array_type = ordered[0].type.with_shape(tuple(shape))
    return Array(Blocks(buffers, tuple(shape)), array_type, committed_to(spread(sharding)))


def _require_sharding(sharding: object) -> None:
    if not isinstance(sharding, Sharding):
        raise ArgumentError(f"make_array: cannot lay out by {type(sharding).__name__} (a Sharding expected)")


def _require_fit(sharding: Sharding, shape: Sequence[int]) -> None:
    """Errors: ShapeError for an array that the sharding cannot cut."""
    try:
        sharding.shard_shape(tuple(shape))
    except ShapeError as error:
        restate(error, "make_array", str(list(shape)))
        raise


def _array(data: ArrayLike, dtype: DTypeLike | None) -> Array:
    """The data as an array. One of rune keeps its dtype, of 64 bits too."""
    if dtype is not None:
        return as_array(data, np.dtype(dtype))
    return data if isinstance(data, Array) else as_array(data)


def _block_on(device: Device, by_device: Mapping[Device, Array]) -> Array:
    if device not in by_device:
        raise DeviceError(f"make_array: cannot find the block on {device.name} ({len(by_device)} blocks)")
    return by_device[device]


def make_array_from_process_local_data(
    sharding: Sharding, local_data: ArrayLike, global_shape: Sequence[int] | None = None
) -> Array:
    """An array of which this process has the data: all of it, where there is one process.

    Shapes: local_data [*S] -> [*S].
    Errors: ShapeError if `global_shape` is another.

    >>> import rune
    >>> from rune.sharding import SingleDeviceSharding
    >>> rune.make_array_from_process_local_data(SingleDeviceSharding("cpu"), [1.0, 2.0])
    Array([1., 2.], f32[2], cpu:0)
    """
    _require_sharding(sharding)
    array = _array(local_data, None)
    if global_shape is not None and tuple(global_shape) != array.shape:
        raise ShapeError(f"make_array: cannot make {list(global_shape)} of {array.type} (of one process)")
    return device_put(array, sharding)
