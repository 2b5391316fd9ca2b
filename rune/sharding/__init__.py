"""Layouts of arrays over devices: a grid of devices, and the axes along which arrays are split.

    mesh = make_mesh((2, 4), ("data", "model"))      eight devices, two by four
    P("data", None)                                  axis 0 in two parts, axis 1 whole
    NamedSharding(mesh, P("data", None))             every device holds half of the rows

Names and meanings are those of jax.sharding.
"""

from rune.core.abstract_mesh import AbstractMesh as AbstractMesh
from rune.core.abstract_mesh import AxisType as AxisType
from rune.core.partition_spec import PartitionSpec as PartitionSpec
from rune.listing import names as _names
from rune.sharding.context import get_abstract_mesh as get_abstract_mesh
from rune.sharding.context import get_mesh as get_mesh
from rune.sharding.context import set_mesh as set_mesh
from rune.sharding.context import use_abstract_mesh as use_abstract_mesh
from rune.sharding.meshes import Mesh as Mesh
from rune.sharding.meshes import make_mesh as make_mesh
from rune.sharding.shardings import NamedSharding as NamedSharding
from rune.sharding.shardings import Sharding as Sharding
from rune.sharding.shardings import SingleDeviceSharding as SingleDeviceSharding
from rune.sharding.shards import Shard as Shard

P = PartitionSpec

__all__ = ["AbstractMesh", "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Shard", "Sharding"]
__all__ += ["SingleDeviceSharding", "get_abstract_mesh", "get_mesh", "make_mesh", "set_mesh", "use_abstract_mesh"]

__dir__ = _names(globals())
