"""`jax.experimental.mesh_utils`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune import absent
from rune.backends import Device
from rune.sharding import make_mesh

__getattr__ = absent.of(__name__)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices in a grid of this shape, in their order; connections between them don't count."""
    names = [f"axis{k}" for k in range(len(mesh_shape))]
    return make_mesh(tuple(mesh_shape), names, devices=devices).devices
