"""`jax.experimental.shard_map`: the older form of `jax.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rune.sharding import Mesh
from rune.transforms.sharding.shard_map import shard_map as sharded

R = TypeVar("R")


def shard_map(
    f: Callable[..., R], mesh: Mesh, in_specs: object, out_specs: object, check_rep: bool = True
) -> Callable[..., R]:
    """`jax.shard_map` by older names: `check_rep` is its `check_vma`."""
    return sharded(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
