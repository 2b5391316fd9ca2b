"""`jax._src.sharding_impls`: public names, and the sharding of a spec (jaxns)."""

from __future__ import annotations

from jax.sharding import *
from jax.sharding import NamedSharding, PartitionSpec, get_abstract_mesh, get_mesh

from rune import absent

__getattr__ = absent.of(__name__)


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """A sharding as it is, or a spec on the current mesh; None for None.

    Errors: TypeError if it is neither a sharding nor a spec; ValueError for a spec without a mesh.
    """
    if sharding is None or isinstance(sharding, NamedSharding):
        return sharding
    if not isinstance(sharding, PartitionSpec):
        raise TypeError(
            f"{api_name}: cannot use {type(sharding).__name__} (a NamedSharding or a PartitionSpec required)"
        )
    mesh = get_mesh()
    if mesh is None:
        raise ValueError(f"{api_name}: cannot read {sharding} (no mesh is set: use jax.set_mesh or a NamedSharding)")
    return NamedSharding(mesh, sharding)
