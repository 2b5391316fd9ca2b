"""Store the blocks of every layout as jax 0.10.2 cuts them, on eight virtual devices.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m tests.sharding.make_jax_blocks

Runs in an environment with JAX, from the root of the repository. A layout that JAX refuses is null.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # pyright: ignore[reportMissingImports]

from tests.sharding.layouts import LAYOUTS, MESHES

TARGET = Path(__file__).parent / "jax_blocks_0_10_2.json"


def blocks(mesh: str, spec: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """[shape of a block, start and stop of each axis by device, is it replicated], or None."""
    sizes, names = MESHES[mesh]
    grid = np.array(jax.devices()[: math.prod(sizes)]).reshape(sizes)
    try:
        sharding = NamedSharding(Mesh(grid, names), PartitionSpec(*spec))
        sharding.check_compatible_aval(shape)  # what device_put asks first
        indices = sharding.devices_indices_map(shape)
        shard = sharding.shard_shape(shape)
    except ValueError:
        return None
    by_device = [[[i.start, i.stop] for i in indices[d]] for d in grid.flat]
    return [list(shard), by_device, sharding.is_fully_replicated]


if __name__ == "__main__":
    assert jax.__version__ == "0.10.2", jax.__version__
    TARGET.write_text(json.dumps([blocks(*layout) for layout in LAYOUTS]) + "\n")
