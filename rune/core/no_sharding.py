"""What a type says of the layout of its values over devices: nothing.

JAX's types name a mesh and how axes are cut along it. Here arrays have a sharding and types have
not, so that a type answers as JAX's does where there is no mesh.
"""

from __future__ import annotations

from typing import ClassVar

from rune.core.abstract_mesh import AbstractMesh
from rune.core.partition_spec import PartitionSpec
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class NoSharding:
    """The layout of a type: a mesh without axes, and a spec with None for each axis.

    Where a function takes `out_sharding`, it means what None means.

    >>> import rune, rune.numpy as rnp
    >>> layout = rune.typeof(rnp.ones((2, 3))).sharding
    >>> layout.spec, layout.mesh.empty, layout.is_fully_replicated
    (P(None, None), True, True)
    """

    spec: PartitionSpec
    mesh: ClassVar[AbstractMesh] = AbstractMesh((), ())
    is_fully_replicated: ClassVar[bool] = True
    memory_kind: ClassVar[None] = None

    @classmethod
    def of_rank(cls, ndim: int) -> NoSharding:
        """The layout of arrays with `ndim` axes."""
        return cls(PartitionSpec(*(None,) * ndim))

    def update(self, *, spec: PartitionSpec) -> NoSharding:
        """The same with another spec."""
        return NoSharding(spec)


def is_unsaid(sharding: object) -> bool:
    """Whether no layout is meant: by None, or by that of a type."""
    return sharding is None or isinstance(sharding, NoSharding)
