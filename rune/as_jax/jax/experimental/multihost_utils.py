"""`jax.experimental.multihost_utils`: collective calls of several processes."""

from __future__ import annotations

from typing import Any

import numpy as np

import rune
from rune import absent, tree
from rune.array import Array
from rune.distributed import broadcast_one_to_all, process_allgather, sync_global_devices
from rune.errors import ArgumentError
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from rune.transforms.sharding.refusal import spread_prefix

__all__ = ["assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array"]
__all__ += ["host_local_array_to_global_array", "process_allgather", "reached_preemption_sync_point"]
__all__ += ["sync_global_devices"]

__getattr__ = absent.of(__name__)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Errors: AssertionError unless all processes have equal trees."""
    source_leaves = tree.leaves(broadcast_one_to_all(in_tree))
    if not all(np.array_equal(x, y) for x, y in zip(source_leaves, tree.leaves(in_tree), strict=True)):
        raise AssertionError(f"{fail_message} Expected: {source_leaves}; got: {in_tree}.")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes must save at this step. No scheduler's notice reaches rune: False."""
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """A tree of the arrays of which each process has a part, that of its devices in the mesh.

    pspecs: a spec, or a tree prefix of the inputs with specs
    Errors: ArgumentError for None as a spec, ShapeError if the mesh does not divide an axis.
    """
    specs = iter(_specs("host_local_array_to_global_array", pspecs, local_inputs))
    return tree.map(lambda x: _global_array(x, NamedSharding(global_mesh, next(specs))), local_inputs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """A tree of the parts that the devices of this process have, on the mesh of these devices.

    pspecs: a spec, or a tree prefix of the inputs with specs; arrays are laid out by these first
    Errors: ArgumentError for None as a spec, and if the devices of this process are no grid.
    """
    specs = iter(_specs("global_array_to_host_local_array", pspecs, global_inputs))
    local_mesh = _local_mesh(global_mesh)
    return tree.map(lambda x: _local_array(x, global_mesh, local_mesh, next(specs)), global_inputs)


def _specs(name: str, prefix: object, values: object) -> list[PartitionSpec]:
    specs = spread_prefix(name, "pspecs", prefix, values, (PartitionSpec,))
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(
                f"{name}: cannot lay out by {spec!r} (a PartitionSpec required)", hint="P() is a copy for each device"
            )
    return specs


def _global_array(x: Any, sharding: NamedSharding) -> Any:
    # What other processes have a part of is global already.
    if isinstance(x, Array) and not x.is_fully_addressable:
        return x
    return rune.make_array_from_process_local_data(sharding, x)


def _local_mesh(mesh: Mesh) -> Mesh:
    """The mesh of the devices of this process, a part of the grid."""
    grid = mesh.devices
    is_local = np.vectorize(lambda device: device.is_local, otypes=[bool])(grid)
    places = np.argwhere(is_local)
    part = grid[tuple(slice(low, high + 1) for low, high in zip(places.min(0), places.max(0), strict=True))]
    if part.size != len(places):
        raise ArgumentError(f"global_array_to_host_local_array: cannot use {mesh} (its devices here are no grid)")
    return Mesh(part, mesh.axis_names, mesh.axis_types)


def _local_array(x: Any, mesh: Mesh, local_mesh: Mesh, spec: PartitionSpec) -> Any:
    laid_out = rune.device_put(x, NamedSharding(mesh, spec))
    if not mesh.is_multi_process:
        return laid_out
    sharding, blocks = NamedSharding(local_mesh, spec), [s.data for s in laid_out.addressable_shards]
    shape = tuple(n * sharding.parts(axis) for axis, n in enumerate(blocks[0].shape))
    return rune.make_array_from_single_device_arrays(shape, sharding, blocks)
