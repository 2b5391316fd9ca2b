"""NoSharding: the sharding of a type that does not say how Explicit axes of a mesh split an array.

It is what JAX reports without a mesh.
"""

from __future__ import annotations

from typing import ClassVar

from rune.core.abstract_mesh import AbstractMesh, AxisType
from rune.core.partition_spec import PartitionSpec
from rune.errors import ArgumentError
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class NoSharding:
    """The layout of a type: a mesh without axes, and a spec with None for each axis.

    As an argument `out_sharding` it has the meaning of None.

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

    def update(self, *, spec: PartitionSpec | None = None, mesh: AbstractMesh | None = None) -> NoSharding:
        """The same with another spec. A mesh is not kept: the compiler lays out its axes.

        Errors: ArgumentError for a mesh with Explicit axes, along which an array would have to lie.
        """
        if mesh is not None and AxisType.Explicit in mesh.axis_types:
            raise ArgumentError(
                f"update: cannot put a type without a layout on the Explicit axes of {mesh}",
                hint="the type of an array that lies on them has one: device_put(x, NamedSharding(mesh, spec))",
            )
        return self if spec is None else NoSharding(spec)


def is_unsaid(sharding: object) -> bool:
    """Whether an argument asks for no layout: None, or the sharding of a type."""
    return sharding is None or isinstance(sharding, NoSharding)
