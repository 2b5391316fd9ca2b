"""StoredSharding: a sharding as it is pickled with its array, by the names of the devices."""

from __future__ import annotations

from rune.core.abstract_mesh import AxisType
from rune.core.axes import Name
from rune.core.partition_spec import PartitionSpec
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.options import variable_of
from rune.records import dataclass
from rune.sharding.memory import Spread, spread
from rune.sharding.meshes import Mesh
from rune.sharding.shardings import NamedSharding, Sharding


@dataclass(frozen=True, slots=True)
class StoredSharding:
    """The names of the devices, in the grid of the mesh, and the spec.

    >>> from rune.sharding import NamedSharding, P, make_mesh
    >>> stored(NamedSharding(make_mesh((1,), ("data",)), P("data"))).names
    ['cpu:0']
    """

    names: list
    axis_names: tuple[Name, ...]
    spec: PartitionSpec
    axis_types: tuple[AxisType, ...] | None = None

    def spread(self, type: ArrayType) -> Spread:
        """The devices, for an array of this type. Errors: DeviceError if they are not all there."""
        try:
            mesh = Mesh(self.names, self.axis_names, self.axis_types)
        except DeviceError as error:
            _, _, why = error.message.partition(": ")
            error.restate(
                f"unpickle: cannot lay out {type} by {self.spec!r} as it was ({why})",
                f"{variable_of('cpu_devices')} makes devices of the CPU; or pickle np.asarray(x)",
            )
            raise
        return spread(NamedSharding(mesh, self.spec))


def stored(sharding: Sharding) -> StoredSharding | None:
    """The sharding by the names of its devices; None for a single device, which is not stored."""
    if not isinstance(sharding, NamedSharding):
        return None
    _, (names, axis_names, axis_types) = sharding.mesh.__reduce__()
    return StoredSharding(names, axis_names, sharding.spec, axis_types)
