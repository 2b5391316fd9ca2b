"""`jax.interpreters.pxla`: the mesh in force (DrJAX); all else is of XLA, and raises an error."""

from __future__ import annotations

from typing import NamedTuple

from rune import absent
from rune.core.abstract_mesh import AbstractMesh
from rune.sharding.context import NO_AXES, get_mesh
from rune.sharding.meshes import Mesh


class ResourceEnv(NamedTuple):
    """What a block `with mesh:` sets; without one, a mesh of no axes, which is `empty`."""

    physical_mesh: Mesh | AbstractMesh


class ThreadResources:
    """JAX's older way to ask for the mesh of a block; here that of `jax.set_mesh` counts, too."""

    @property
    def env(self) -> ResourceEnv:
        """The environment in force where it is asked."""
        mesh = get_mesh()
        return ResourceEnv(NO_AXES if mesh is None else mesh)


thread_resources = ThreadResources()

__getattr__ = absent.of(__name__)
