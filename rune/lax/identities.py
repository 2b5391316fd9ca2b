"""Functions that compute nothing: stop_gradient, barriers, dtypes, shapes as values."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from rune import dtypes, ops, tree
from rune.array import Array
from rune.core.interpreter import Tracer, is_differentiable, type_of
from rune.core.types import Shape
from rune.dims import Size
from rune.numpy.arguments import shape_of, value
from rune.ops.conventions import distinct
from rune.ops.family import size_value
from rune.sharding import Mesh, NamedSharding
from rune.transforms.arguments import as_value, unshared
from rune.transforms.compile.placement import Where, destinations, put_each
from rune.transforms.sharding.constraint import fitted
from rune.transforms.sharding.explicit.stage import require_layout
from rune.transforms.sharding.refusal import require_there
from rune.typing import ArrayLike

T = TypeVar("T")  # an array, or a tree of arrays


def stop_gradient(x: T) -> T:
    """The values of a tree of arrays, as constants for every derivative.

    Shapes: any, unchanged. Types: any, unchanged.
    Errors: ArgumentError if a leaf is not an array.

    >>> import rune
    >>> float(rune.grad(lambda x: rune.lax.stop_gradient(x) * x)(3.0))
    3.0
    """
    return tree.map(_stopped, x)


def _stopped(leaf: object) -> object:
    leaf = unshared(value("stop_gradient", leaf))
    return ops.stop_gradient(leaf) if is_differentiable(leaf) else leaf


def with_sharding_constraint(x: T, shardings: object) -> T:
    """The tree unchanged, with each array laid out on the devices of a mesh.

    shardings: a tree prefix of NamedShardings; None leaves an array where it is. In a jitted
               function an axis that the mesh does not divide stays whole
    Shapes: any, unchanged. Types: any, unchanged.
    Errors: ShapeError if a mesh does not divide an axis of an array, DeviceError for one that is
            committed to other devices; ShardingTypeError for another layout than the array has, if
            all axes of the mesh are Explicit: `device_put` changes it.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> from rune.sharding import NamedSharding, P, make_mesh
    >>> rows = NamedSharding(make_mesh((1,), ("data",)), P("data"))
    >>> lax.with_sharding_constraint(rnp.ones(2), rows).sharding.spec
    P('data')
    """
    name = "with_sharding_constraint"
    places = destinations(name, "shardings", shardings, x)
    if Mesh.has_explicit:
        for leaf, where in zip(tree.leaves(x), places, strict=True):
            require_layout(leaf, where)
    return _laid_out(name, x, places)


def resharded(x: T, shardings: object) -> T:
    """The same, where arrays on Explicit axes get another layout than they have."""
    return _laid_out("reshard", x, destinations("reshard", "out_shardings", shardings, x))


def _laid_out(name: str, x: T, places: list[Where | None]) -> T:
    for number, (leaf, where) in enumerate(zip(tree.leaves(x), places, strict=True)):
        if not isinstance(where, NamedSharding):
            continue
        if type(leaf) is Array:
            require_there(name, leaf.type, leaf.place, where.mesh)
        if isinstance(leaf, Tracer):
            places[number] = fitted(where, type_of(leaf).shape)
    return put_each(name, "", x, places)


def optimization_barrier(operand: T) -> T:
    """The values unchanged; NumPy data are copied into arrays, and numbers become weak ones.

    No pass of rune changes what a program computes, so no barrier is needed; the name exists for
    programs that call it. `rune.checkpoint` keeps recomputations separate by itself.
    Shapes: any, unchanged. Types: unchanged; 64-bit NumPy data arrive as in every operation.
    Errors: ArgumentError if a leaf is not an array.

    >>> from rune import lax
    >>> lax.optimization_barrier((1.0, 2))
    (Array(1., f32*[], cpu:0), Array(2, i32*[], cpu:0))
    """
    return tree.map(_barred, operand)


def _barred(leaf: object) -> object:
    return distinct(as_value(unshared(value("optimization_barrier", leaf))), leaf)


def dtype(x: ArrayLike) -> np.dtype:
    """The dtype of an array or number; a dtype is returned unchanged.

    Shapes: any; the result is a NumPy dtype.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune import lax
    >>> lax.dtype(1.5)
    dtype('float32')
    """
    if isinstance(x, np.dtype | type):
        return dtypes.public(dtypes.as_dtype(x))
    return type_of(value("dtype", x)).dtype


def shape_as_value(shape: Shape) -> Array:
    """The sizes of a shape, symbolic ones too, as a vector.

    Shapes: N sizes -> [N]. Types: i32.
    Errors: ArgumentError for sizes that are not integers.

    >>> from rune import lax
    >>> lax.shape_as_value((2, 3))
    Array([2, 3], i32[2], cpu:0)
    """
    sizes = shape_of("shape_as_value", shape)
    if not sizes:
        return ops.fit(value("shape_as_value", np.int32(0)), (0,))
    rows = [ops.reshape(_number(s), shape=(1,)) for s in sizes]
    return ops.concatenate(*rows, axis=0)


def _number(size: Size) -> Any:
    return ops.fit(size_value(size, dtypes.i32), ())
