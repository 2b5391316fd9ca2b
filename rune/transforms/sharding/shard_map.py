"""shard_map: a function that each device of a mesh runs on its own blocks of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from rune import tree
from rune.core.axes import Name
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.errors import ArgumentError, ShapeError
from rune.sharding import Mesh, PartitionSpec
from rune.transforms.arguments import array_leaves, function_name, key_path, named, require_callable
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.primitive import COPIES, Specs, bind, inside

P = ParamSpec("P")
R = TypeVar("R")


def shard_map(
    function: Callable[..., R] | None = None,
    *,
    mesh: Mesh,
    in_specs: object,
    out_specs: object,
    check_vma: bool = True,
    axis_names: Sequence[Name] = (),
) -> Any:
    """`function`, run by each device of a mesh on its own block of every argument.

    mesh:       the devices, in a grid whose axes collectives speak of (rune.lax.psum and its kin)
    in_specs:   a tree prefix of the arguments: a PartitionSpec says along which axes of the mesh
                each axis of an array is cut; along the others every device has the same block
    out_specs:  the same for the results, put together from the blocks of all devices
    check_vma:  whether types say along which axes a value varies, so that a result that differs
                between devices is not taken for the same on all
    axis_names: the axes of the mesh that the function speaks of; () for all
    Shapes:     x [n, *S] under P("data") -> [n / size of "data", *S] on each device
    Errors:     ShapeError if the mesh does not divide an axis, ArgumentError for a spec that names
                no axis of the mesh, CollectiveError if the devices do not run the same collectives.
    Source:     https://docs.jax.dev/en/latest/notebooks/shard_map.html

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import P, make_mesh
    >>> mesh = make_mesh((1,), ("data",))
    >>> total = rune.shard_map(
    ...     lambda x: rune.lax.psum(x.sum(), "data"), mesh=mesh, in_specs=P("data"), out_specs=P()
    ... )
    >>> float(total(rnp.arange(4.0)))
    6.0
    """
    region = Region(mesh, tuple(axis_names) or mesh.axis_names)
    if function is None:
        return lambda f: _sharded(f, region, in_specs, out_specs)
    return _sharded(function, region, in_specs, out_specs)


def _sharded(function: Callable[..., object], region: Region, in_specs: object, out_specs: object) -> Callable[..., Any]:
    require_callable("shard_map", function)

    def sharded(*args: object) -> Any:
        leaves, treedef = tree.flatten((list(args), {}))
        leaves = array_leaves("shard_map", leaves, treedef)
        specs = _spread("in_specs", tuple(in_specs) if isinstance(in_specs, list) else in_specs, args)
        types = [_block(region, type_of(x), s) for x, s in zip(leaves, specs, strict=True)]
        flat = Flat("shard_map", lambda values, options: function(*values, **options), treedef)
        staged = inside(region).trace_program(flat, types, function_name(function))
        results = tree.unflatten(flat.out_tree, staged.program.outputs)
        result_specs = _spread("out_specs", out_specs, results)
        all_specs = (*(COPIES,) * len(staged.captured), *specs)
        outs = bind(region, staged.program, all_specs, result_specs, [*staged.captured, *leaves])
        return tree.unflatten(flat.out_tree, outs)

    return named(sharded, function, "shard_map")


def _block(region: Region, type: ArrayType, spec: PartitionSpec) -> ArrayType:
    return region.block(type, spec)


def _spread(name: str, prefix: object, values: object) -> Specs:
    """The spec of each leaf."""
    specs = tree.broadcast_prefix(prefix, values, is_leaf=lambda x: isinstance(x, PartitionSpec) or x is None)
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(
                f"shard_map: cannot use {spec!r} in {name} (a PartitionSpec expected)",
                hint="P() is the spec of a value that every device has whole",
            )
    return tuple(specs)
