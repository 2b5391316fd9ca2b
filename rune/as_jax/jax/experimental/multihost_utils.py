"""`jax.experimental.multihost_utils`: collective calls of several processes."""

from __future__ import annotations

from typing import Any, TypeVar

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

X = TypeVar("X")

__getattr__ = absent.of(__name__)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Errors: AssertionError unless all processes have equal trees."""
    source_leaves = tree.leaves(broadcast_one_to_all(in_tree))
    if not all(np.array_equal(x, y) for x, y in zip(source_leaves, tree.leaves(in_tree), strict=True)):
        raise AssertionError(f"{fail_message} Expected: {source_leaves}; got: {in_tree}.")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes must save at this step. No scheduler's notice reaches rune: False."""
    return False


def host_local_array_to_global_array(local_inputs: X, global_mesh: Mesh, pspecs: object) -> X:
    """A tree of the arrays of which each process has a part, that of its devices in the mesh.

    pspecs: a spec, or a tree prefix of the inputs with specs
    Errors: ArgumentError for None as a spec, ShapeError if the mesh does not divide an axis.
    """
    specs = iter(_specs("host_local_array_to_global_array", pspecs, local_inputs))
    return tree.map(lambda x: _global_array(x, NamedSharding(global_mesh, next(specs))), local_inputs)


def global_array_to_host_local_array(global_inputs: X, global_mesh: Mesh, pspecs: object) -> X:
    """A tree of arrays laid out on the mesh, all devices of which belong to this process.

    pspecs: a spec, or a tree prefix of the inputs with specs
    Errors: ArgumentError for None as a spec, and for a mesh with devices of other processes.
    """
    if global_mesh.is_multi_process:
        raise ArgumentError(
            f"global_array_to_host_local_array: cannot use {global_mesh} (some devices are in other processes)",
            hint="x.addressable_shards has the blocks of this process",
        )
    specs = iter(_specs("global_array_to_host_local_array", pspecs, global_inputs))
    return tree.map(lambda x: rune.device_put(x, NamedSharding(global_mesh, next(specs))), global_inputs)


def _specs(name: str, prefix: object, values: object) -> list[PartitionSpec]:
    specs = spread_prefix(name, "pspecs", prefix, values, (PartitionSpec,))
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(
                f"{name}: cannot lay out by {spec!r} (a PartitionSpec required)", hint="P() is a copy for each device"
            )
    return specs


def _global_array(x: object, sharding: NamedSharding) -> object:
    # What other processes have a part of is global already.
    if isinstance(x, Array) and not x.is_fully_addressable:
        return x
    return rune.make_array_from_process_local_data(sharding, x)
