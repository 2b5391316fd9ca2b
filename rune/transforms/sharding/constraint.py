"""sharding_constraint: an unchanged value, laid out on the devices of a mesh by a sharding.

%1: f32[8] = sharding_constraint %0 {sharding=NamedSharding(Mesh('data': 4), P('data'))}

argument_layout is the sharding that `in_shardings` has for an argument: the same, but an array that
is committed to another layout is refused, and not laid out (refusal.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.array import CPU, Array, committed_to, put
from rune.core.axes import own_axis
from rune.core.interpreter import type_of
from rune.core.primitive import Direct
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size
from rune.sharding import NamedSharding, PartitionSpec
from rune.sharding.memory import Spread, spread
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.moves import put_at
from rune.transforms.sharding.reshard import constrained_layout, layout_of, uncut


def fitted(sharding: NamedSharding, shape: Shape) -> NamedSharding:
    """The sharding, with each axis split by as many of its leading mesh axes as divide it."""
    if len(sharding.spec) > len(shape):
        return sharding
    region = Region(sharding.mesh, sharding.mesh.axis_names)
    names = [region.dividing(sharding.spec.names(n), size) for n, size in enumerate(shape[: len(sharding.spec)])]
    if all(len(n) == len(sharding.spec.names(axis)) for axis, n in enumerate(names)):
        return sharding
    return sharding.update(spec=PartitionSpec(*names))


def _type_rule(x: ArrayType, *, sharding: NamedSharding) -> ArrayType:
    sharding.shard_shape(x.shape)  # refuses an axis that the mesh does not divide
    return x


def _run(x: Value, *, sharding: NamedSharding) -> Array:
    type = type_of(x)
    array = x if isinstance(x, Array) else put(np.asarray(x, type.dtype), type, CPU)
    if not any(map(sharding.spec.is_open, range(type.ndim))):
        return put_at(array, committed_to(spread(sharding)))
    source, layout = array.place.device, uncut(type.ndim)
    if isinstance(source, Spread) and source.sharding.mesh == sharding.mesh:
        layout = layout_of(source.sharding.spec, type.ndim)
    names = constrained_layout(sharding.spec, layout)
    spec = PartitionSpec(*names[: len(sharding.spec)])
    return put_at(array, committed_to(spread(sharding.update(spec=spec))))


def _batch(batched: Sequence[bool], size: Size, x: Value, *, sharding: NamedSharding) -> tuple[Array, bool]:
    axis = own_axis()
    # Lanes lead, and stay as they are split already unless vmap says how.
    lanes = axis.split if axis is not None and axis.split else PartitionSpec.UNCONSTRAINED
    spec = PartitionSpec(lanes, *sharding.spec)
    return sharding_constraint(x, sharding=NamedSharding(sharding.mesh, spec)), batched[0]


def _constraint(name: str) -> Direct:
    return Direct(
        name,
        "movement",
        _type_rule,
        reference=lambda x, sharding: x,
        jvp=(lambda dx, x, y, sharding: sharding_constraint(dx, sharding=sharding),),
        transpose=lambda ct, linear, x, sharding: [sharding_constraint(ct, sharding=sharding)],
        batch=_batch,
        run=_run,
    )


sharding_constraint, argument_layout = _constraint("sharding_constraint"), _constraint("argument_layout")
CONSTRAINTS = sharding_constraint, argument_layout
