"""shard_map: a function that each device of a mesh runs on its own blocks of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Any, NotRequired, TypedDict, TypeVar, Unpack, overload

from rune import tree
from rune.core.axes import Name
from rune.core.interpreter import Interpreter, current, type_of
from rune.core.program import Program, Var
from rune.core.staging import trace_program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.effects import Need, Recorder
from rune.errors import ArgumentError, ShapeError
from rune.records import dataclass
from rune.sharding import Mesh, NamedSharding, PartitionSpec, get_mesh
from rune.transforms.arguments import function_name, key_path, named, require_callable
from rune.transforms.callers import callers
from rune.transforms.derivatives.flat_functions import Flat, flatten
from rune.transforms.effect_boundaries import recorder
from rune.transforms.programs.interned import interned
from rune.transforms.sharding.blocks import Region, Specs
from rune.transforms.sharding.explicit.known import UNKNOWN, Loose, known_on
from rune.transforms.sharding.primitive import COPIES, Inside, bind
from rune.transforms.sharding.refusal import at, restate, spread_prefix
from rune.transforms.sharding.reshard import spec_of, uncut

R = TypeVar("R")


class OfTypes(Enum):
    """The specs of arguments that their types say."""

    OF_TYPES = "of types"


OF_TYPES = OfTypes.OF_TYPES


class Options(TypedDict):
    """The keywords of `shard_map`, which documents them."""

    mesh: NotRequired[Mesh | None]
    in_specs: NotRequired[object]
    out_specs: object
    check_vma: NotRequired[bool]
    axis_names: NotRequired[Collection[Name]]


@overload
def shard_map(function: Callable[..., R], **options: Unpack[Options]) -> Callable[..., R]: ...
@overload
def shard_map(**options: Unpack[Options]) -> Callable[[Callable[..., R]], Callable[..., R]]: ...
def shard_map(
    function: Callable[..., object] | None = None,
    *,
    mesh: Mesh | None = None,
    in_specs: object = OF_TYPES,
    out_specs: object,
    check_vma: bool = True,
    axis_names: Collection[Name] = (),
) -> Any:
    """`function`, run by each device of a mesh on its own block of every argument.

    mesh:       the devices, in a grid whose axes collectives (rune.lax.psum and the like) name;
                None for that of the enclosing shard_map, or of `set_mesh`
    in_specs:   a tree prefix of the arguments: a PartitionSpec names the axes of the mesh along
                which each axis of an array is split; along the others all devices have the same
                block. Without it arrays are split as their types say, along Explicit axes
    out_specs:  the same for the results, assembled from the blocks of all devices
    check_vma:  whether types have the axes along which values differ between devices, as in
                `f32[4]{data}`. Then a result that differs along an axis which its spec does not
                name is an error, and in the body the gradient of a value that is the same on all
                devices is the sum over them. Without it, each device has its own gradient
    axis_names: the axes of the mesh that the function names, and along which its arguments are
                split; () for all except those of an enclosing shard_map. Along the others every
                device computes the same, or another shard_map in the body splits further.
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

    # The region is determined in each call: mesh and enclosing shard_map may be others there.
    def decorate(f: Callable[..., R]) -> Callable[..., R]:
        return _sharded(f, lambda: _region(mesh, axis_names, bool(check_vma)), in_specs, out_specs)

    return decorate if function is None else decorate(function)


def _region(mesh: Mesh | None, axis_names: Collection[Name], is_typed: bool) -> Region:
    """The region of a body, for a call in the current context.

    Errors: ArgumentError for axes that the mesh lacks, or that are already split, and without a
            mesh.
    """
    around = _region_around(current())
    if not isinstance(mesh, Mesh | None):
        raise ArgumentError(f"shard_map: cannot use {type(mesh).__name__} as a mesh (rune.make_mesh makes one)")
    mesh = mesh or (get_mesh() if around is None else around.mesh)
    if mesh is None:
        raise ArgumentError(
            "shard_map: cannot find a mesh (none is given, and no shard_map is around)",
            hint="rune.sharding.set_mesh says the mesh for a block",
        )
    # Inside another shard_map its axes cannot be split again: a device has one place along them.
    taken_axes = around.manual if around is not None and around.mesh == mesh else ()
    names = ((axis_names,) if isinstance(axis_names, str) else tuple(axis_names)) or tuple(
        name for name in mesh.axis_names if name not in taken_axes
    )
    for name in names:
        if name not in mesh.axis_names or name in taken_axes:
            why = "cut by the shard_map around" if name in taken_axes else f"{mesh} has no such axis"
            raise ArgumentError(f"shard_map: cannot cut along {name!r} ({why})")
    return Region(mesh, names, is_typed)


def _region_around(interpreter: Interpreter | None) -> Region | None:
    """The region whose body makes the call, with the axes of enclosing ones."""
    manual: list[Name] = []
    mesh: Mesh | None = None
    while interpreter is not None:
        # The innermost region has the mesh; axes of all enclosing regions are split already.
        if isinstance(interpreter, Inside):
            mesh = mesh or interpreter.region.mesh
            manual += interpreter.region.manual
        interpreter = interpreter.parent
    return None if mesh is None else Region(mesh, tuple(manual))


@dataclass(frozen=True, slots=True)
class Sharded:
    """A function that the devices of a region run on their blocks."""

    function: Callable[..., object]
    region_here: Callable[[], Region]
    in_specs: object
    out_specs: object

    def specs_of(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """The spec of every array in the arguments."""
        return tree.unflatten(tree.structure(args), self._spread(self.region_here(), args))

    def _spread(self, region: Region, args: tuple[object, ...]) -> Specs:
        if self.in_specs is not OF_TYPES:
            return _spread("in_specs", self.in_specs, args)
        return tuple(_spec_by_type(region, number, x) for number, x in enumerate(tree.leaves(args)))

    def __call__(self, *args: object) -> object:
        """The results, assembled from those of all devices."""
        region = self.region_here()
        values, flat = flatten("shard_map", self.function, args)
        # The specs of results can be spread only when the body has been traced: its tree was
        # unknown.
        body = _traced(flat, region, values, self._spread(region, args))
        out_tree = flat.out_tree
        out_specs = _spread("out_specs", self.out_specs, tree.unflatten(out_tree, body.program.output_types))
        _check_results(region, body.program, out_specs, out_tree)
        if region.is_typed:
            _check_copies(region, body.program, out_specs, out_tree)
        for need in body.needs:
            # The equation answers these effects from operands; outer handlers learn what it has
            # used.
            need.tell()
        return tree.unflatten(out_tree, bind(region, body.program, body.specs, out_specs, body.operands))


def _sharded(
    function: Callable[..., R], region_here: Callable[[], Region], in_specs: object, out_specs: object
) -> Callable[..., R]:
    require_callable("shard_map", function)
    # A list of specs is accepted, too; but arguments are a tuple, and a prefix has the same
    # containers.
    over_devices = Sharded(
        function, region_here, tuple(in_specs) if isinstance(in_specs, list) else in_specs, out_specs
    )

    def sharded(*args: object) -> object:
        call = callers().of_sharded
        return over_devices(*args) if call is None else call(over_devices, args)

    return named(sharded, function, "shard_map")


@dataclass(frozen=True, slots=True)
class _Body:
    """The device program, and the operands: captured values, the arguments, answers to effects.

    needs: effects that the program answers itself, from operands
    """

    program: Program
    operands: Sequence[Value]
    specs: Specs
    needs: tuple[Need, ...]


def _check_copies(region: Region, program: Program, out_specs: Specs, out_tree: tree.TreeDef) -> None:
    """Errors: ArgumentError if devices differ in a result that is to be the same on them."""
    # An error names the line that computed the result, not that of the call.
    frames = {v: e.frame for e in program.equations for v in e.results}
    for number, (atom, spec) in enumerate(zip(program.outputs, out_specs, strict=True)):
        differing_names = sorted(map(repr, atom.type.varying.intersection(region.manual) - set(spec.all_names())))
        if differing_names:
            raise ArgumentError(
                f"shard_map: cannot return result{key_path(number, out_tree)} by {spec!r} "
                f"(it differs between the devices of {', '.join(differing_names)})",
                hint="name the axis in out_specs, or take psum or pmean over it; check_vma=False does not check",
                frame=frames.get(atom) if isinstance(atom, Var) else None,
            )


def _traced(function: Flat, region: Region, args: Sequence[Value], specs: Specs) -> _Body:
    """The program of one device. Errors: ShapeError if the mesh does not divide an axis."""
    recorders: list[Recorder] = []
    # The function is traced on the block of one device, whatever the number of devices.
    types = [_block_type(function, region, n, type_of(x), specs[n]) for n, x in enumerate(args)]
    region_stage = Inside(region)

    def flat(*values: Value) -> list[Value]:
        with recorder(region_stage) as recording:
            outs = function(*values)
        recorders.append(recording)
        return outs

    closure = trace_program(region_stage, flat, types, function_name(function.function))
    # All devices have the same captured values, and the same answers to effects.
    operands = [*closure.captured, *args, *recorders[-1].inputs.entered]
    leading, following = len(closure.captured), len(recorders[-1].inputs.entered)
    all_specs = (*(COPIES,) * leading, *specs, *(COPIES,) * following)
    return _Body(interned(closure.program), operands, all_specs, recorders[-1].inputs.needs())


def _block_type(function: Flat, region: Region, number: int, type: ArrayType, spec: PartitionSpec) -> ArrayType:
    """Errors: ShapeError or ArgumentError, naming the argument that cannot be split in this way."""
    try:
        return region.block(type, spec)
    except (ShapeError, ArgumentError) as error:
        restate(error, "shard_map", at(type, f"argument{key_path(number, function.treedef)}"))
        raise


def _check_results(region: Region, program: Program, out_specs: Specs, out_tree: tree.TreeDef) -> None:
    """Errors: ArgumentError for axes that the mesh lacks, ShapeError for more than a result has."""
    for number, (type, spec) in enumerate(zip(program.output_types, out_specs, strict=True)):
        type_text = at(type, f"result{key_path(number, out_tree)}")
        try:
            NamedSharding(region.mesh, spec)
        except ArgumentError as error:
            restate(error, "shard_map", type_text)
            raise
        if len(spec) > type.ndim:
            raise ShapeError(
                f"shard_map: cannot put {type_text} together as {spec!r} says ({len(spec)} axes required)",
                hint="a result without axes is made one of a row for each device by [None]",
            )


def _spec_by_type(region: Region, number: int, value: Value) -> PartitionSpec:
    """The spec of an argument by its type. Errors: ArgumentError if that does not say it."""
    known = known_on(region.mesh, value)
    if known is UNKNOWN:
        raise ArgumentError(
            f"shard_map: cannot find out how argument {number}, {type_of(value)}, is split (its type does not say)",
            hint="in_specs=P(...) says how arguments are split",
        )
    layout = uncut(type_of(value).ndim) if isinstance(known, Loose) else known
    return spec_of(tuple(tuple(n for n in names if n in region.manual) for names in layout))


def _spread(name: str, prefix: object, values: object) -> Specs:
    """The spec of each leaf."""
    specs = spread_prefix("shard_map", name, prefix, values, (PartitionSpec,))
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(
                f"shard_map: cannot use {spec!r} in {name} (a PartitionSpec expected)",
                hint="P() is the spec of a value that every device has whole",
            )
    return tuple(specs)
