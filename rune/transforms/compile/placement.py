"""The devices of arrays and of operations on them, and explicit moves.

An operation runs on the one device that its committed operands are on, and commits its results to
it. Without committed operands it runs on the default device (`rune.configure(device=...)`,
otherwise the CPU), and its results stay free. Free operands follow; committed ones never move by
themselves. The same function decides for eager operations and for compiled programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from rune import dtypes, tree
from rune.array import Array, Place, as_array, committed_to, default_place, on, put
from rune.backends import Device, device_of
from rune.core.interpreter import Tracer, is_evaluating, type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.errors import ArgumentError, DeviceError, ShapeError
from rune.ops.promote import opened
from rune.records import dataclass
from rune.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from rune.sharding.context import on_devices
from rune.sharding.layouts import Format
from rune.sharding.memory import Spread, is_readable, spread
from rune.transforms.arguments import key_path
from rune.transforms.compile.trace_cache import Traced
from rune.transforms.compile.transfer import has_moves, to_device
from rune.transforms.references import Ref
from rune.transforms.sharding.constraint import sharding_constraint
from rune.transforms.sharding.localize import argument_shardings, input_shardings, meshes_within
from rune.transforms.sharding.moves import put_at
from rune.transforms.sharding.refusal import at, devices_of, require_layout, restate, spread_prefix
from rune.transforms.sharding.reshard import layout_of, spec_of
from rune.transforms.tracers import ValueTracer

X = TypeVar("X")


def placement(name: str, args: Sequence[Operand]) -> Place:
    """The place where `name` runs on these arguments, and where its results are.

    Errors: DeviceError names the devices if committed arguments are on several.
    """
    # Tracers and host data are committed to no device.
    committed_arrays = [a for a in args if type(a) is Array and a.committed]
    # Free operands have no say: they follow to the default device.
    if not committed_arrays:
        return default_place()
    first = committed_arrays[0].place
    if all(a.place.device is first.device for a in committed_arrays):
        return first
    if len({devices_of(a.place) for a in committed_arrays}) > 1:
        raise _several_devices(name, committed_arrays)
    # A mesh of one device and that device itself: the mesh says more of the results.
    return next((a.place for a in committed_arrays if isinstance(a.place.device, Spread)), first)


def constants_beside(args: Sequence[Value], trace: Traced) -> Sequence[Value]:
    """The values that a function closes over, where it runs: constants follow, as in JAX."""
    constants, copies = trace.captured, trace.constants
    committed_constants = [c for c in constants if type(c) is Array and c.committed]
    if not committed_constants:
        return constants
    values = [*map(_behind_tracers, args)]
    committed_places = [v.place for v in values if type(v) is Array and v.committed]
    meshes = [committed_to(spread(NamedSharding(mesh, PartitionSpec()))) for mesh in meshes_within(trace.program)]
    place = next(iter((*committed_places, *meshes)), None)
    if place is None:
        # In a program that is being written, its own arguments decide. What only several processes
        # have together cannot come to a single device.
        is_here = all(is_readable(c.place.device, c.buffer) for c in committed_constants)
        if any(isinstance(v, Tracer) for v in values) or not is_here:
            return constants
        place = default_place()
    if place not in copies:
        copies[place] = [_following(c, place) for c in constants]
    return copies[place]


def _behind_tracers(value: Value) -> Value:
    """The array of which a value is a primal or a lane; the tracer of a program as it is."""
    while isinstance(value, ValueTracer) and (underlying := value.underlying()) is not None:
        value = underlying
    return value


def _following(constant: Value, place: Place) -> Value:
    if type(constant) is not Array or not constant.committed:
        return constant
    if place.committed and devices_of(constant.place) == devices_of(place):
        return constant
    if not isinstance(place.device, Spread):
        copy = put_at(constant, place)
        # An array that is there already stays committed, unless it is made anew.
        return Array(copy.buffer, copy.type, place)
    mesh, source = place.device.sharding.mesh, constant.place.device
    # On a mesh of the same axes it is split in the same way; on any other all devices have it.
    is_alike = isinstance(source, Spread) and source.sharding.mesh.shape == mesh.shape
    spec = source.sharding.spec if is_alike else PartitionSpec()
    return put_at(constant, committed_to(spread(NamedSharding(mesh, spec))))


def arriving(program: Program, args: Sequence[Value]) -> Sequence[Value]:
    """The arguments of a program, moved to the mesh by which alone it lays them out.

    As in JAX an array may be committed to as many other devices, or in another order.
    Errors: ArgumentError for an array that is committed to another layout than `in_shardings` says.
    """
    if not meshes_within(program):
        return args
    for arg, sharding in zip(args, argument_shardings(program), strict=True):
        if sharding is not None and type(arg) is Array and arg.committed:
            require_layout("jit", arg.type, arg.place, sharding)
    return [*map(_arriving, args, input_shardings(program))]


def _arriving(arg: Value, sharding: NamedSharding | None) -> Value:
    if sharding is None or type(arg) is not Array or not arg.committed:
        return arg
    present, new = devices_of(arg.place), sharding.mesh.in_order
    return arg if present == new or len(present) != len(new) else put_at(arg, place_of(sharding))


def place_of_call(name: str, program: Program, args: Sequence[Value]) -> Place:
    """The place of a program's run on these arguments; if it moves values, the default device.

    Errors: DeviceError for arguments that are committed to different devices, which only a
    program that moves values may take.
    """
    return default_place() if has_moves(program) else placement(name, args)


def _several_devices(name: str, committed_arrays: Sequence[Array]) -> DeviceError:
    # One array for each device is enough to show the conflict.
    types: dict[str, ArrayType] = {}
    for array in committed_arrays:
        types.setdefault(array.device.name, array.type)
    type_texts = ", ".join(f"{type} on {device}" for device, type in types.items())
    return DeviceError(
        f"{name}: cannot combine arrays on different devices ({type_texts})",
        hint="each is committed to its device; move one with rune.device_put, or jit(device=...)",
    )


Where = str | Device | Sharding


def device_put(
    x: object, device: object = None, *, src: object = None, donate: object = False, may_alias: object = None
) -> Any:
    """A tree with every array moved to `device` and committed to it; arrays there are not copied.

    device: a device, its name, or a Sharding; or a tree prefix of these. Without one, arrays are
            unchanged, and host data becomes arrays on the default device, uncommitted.
    src:    where they come from; without effect, since arrays know where they are.
    donate: whether arrays that are copied to another device are deleted here; a tree prefix.
    may_alias: False asks for new memory even if an array is already there; a tree prefix.

    In a jitted function the value moves at this point of the program, which then runs in parts,
    each on its device; `rune.explain` shows them and the copies between them. A sharding lays the
    value out on the devices of its mesh.

    Errors: DeviceError for an unknown device, and for a move inside a loop or branch; ShapeError
            if a mesh does not divide an axis.

    >>> import rune, rune.numpy as rnp
    >>> rune.device_put(rnp.ones(2), "cpu").committed
    True
    """
    arrays = put_each("device_put", "", x, destinations("device_put", "device", device, x))
    # Array by array, since a tree prefix may ask for new memory only in parts of the tree.
    if may_alias is not None:
        arrays = tree.map(_unaliased, arrays, x, _flags("may_alias", may_alias, x))
    # Last, since it deletes the arguments.
    if donate is not False:
        tree.map(_give_up, arrays, x, _flags("donate", donate, x))
    return arrays


def _flags(role: str, prefix: object, values: object) -> Any:
    """A tree of True, False or None like the values."""
    flags = spread_prefix("device_put", role, prefix, values, (bool,))
    return tree.unflatten(tree.structure(values), [_Flag(f) for f in flags])


@dataclass(frozen=True, slots=True)
class _Flag:
    """A flag as a leaf: None would be an empty tree."""

    value: object


def _unaliased(result: Value, value: Value, may_alias: _Flag) -> Value:
    """The array; in new memory if may_alias is False."""
    if may_alias.value is not False or type(result) is not Array or _is_moved(result, value):
        return result
    # A moved array has new memory anyway; only an array that was there already is copied.
    return put(result.numpy().copy(), result.type, result.place)


def _give_up(result: Value, value: Value, donate: _Flag) -> None:
    """Delete an array that was copied away."""
    if donate.value and type(value) is Array and _is_moved(result, value):
        value.delete()


def _is_moved(result: Value, value: Value) -> bool:
    arrays = type(result) is Array and type(value) is Array
    return arrays and result.place.device is not value.place.device  # type: ignore[union-attr]


def destinations(name: str, role: str, prefix: object, values: object) -> list[Where | None]:
    """The place of each leaf of the values, according to a tree prefix.

    name, role: the operation, and the name of its argument that is the prefix
    Errors:     ArgumentError if the prefix does not fit the values, for a mesh alone, and for a
                spec alone or one of an AbstractMesh where no mesh is in force.
    """
    kinds = (str, Device, Sharding, PartitionSpec, Mesh, Format)
    leaves = spread_prefix(name, role, prefix, values, kinds)
    places = [where.sharding if isinstance(where, Format) else where for where in leaves]
    # A mesh was accepted as a leaf only to be refused here, by a message about meshes.
    for where in places:
        if isinstance(where, Mesh):
            raise ArgumentError(
                f"{name}: cannot lay out by {where!r} alone (a mesh and a spec required)",
                hint="rune.NamedSharding(mesh, spec) is both",
            )
    return [on_devices(name, where) if isinstance(where, PartitionSpec | NamedSharding) else where for where in places]


def constrained(value: Value, sharding: NamedSharding) -> Value:
    """A traced value laid out by a sharding, whose spec need not name axes that are whole."""
    return sharding_constraint(value, sharding=shortest(value, sharding))


def shortest(value: Value, sharding: NamedSharding) -> NamedSharding:
    """The sharding of a value, without names for trailing axes that are whole."""
    spec, ndim = sharding.spec, type_of(value).ndim
    if len(spec) > ndim:
        sharding.shard_shape(type_of(value).shape)  # refuses names of axes that the array lacks
    is_open = any(map(spec.is_open, range(ndim)))
    return NamedSharding(sharding.mesh, spec if is_open else spec_of(layout_of(spec, ndim)))


def put_each(
    name: str,
    role: str,
    values: X,
    places: Sequence[Where | None],
    constrain: Callable[[Value, NamedSharding], Value] = constrained,
) -> X:
    """A tree with each leaf at its place.

    role:      the name of the tree in messages, `argument[0]`
    constrain: lays out traced values
    Errors:    those of `device_put`, with this name.
    """
    # Objects that stand for arrays become these arrays first, so that leaves and places correspond.
    leaves, treedef = tree.flatten(tree.map(opened, values))
    results: list[Value] = []
    for number, (value, where) in enumerate(zip(leaves, places, strict=True)):
        try:
            results.append(_put(value, where, constrain))
        except ShapeError as error:
            restate(error, name, at(type_of(value), role + key_path(number, treedef)))
            raise
    return tree.unflatten(treedef, results)


def _put(value: Value, where: Where | None, constrain: Callable[[Value, NamedSharding], Value]) -> Value:
    if isinstance(value, Ref):  # of a function that takes a reference: its value moves
        if where is not None:
            value[...] = _put(value[...], where, constrain)
        return value
    if where is None:
        return value if isinstance(value, Tracer) else array_of(value)
    # What a spec leaves open stays as the value is split.
    if isinstance(where, NamedSharding) and where.spec.settled() is not where.spec:
        return constrain(value, where)
    # In a program the move is an equation, of a constant as well: that would follow the arguments.
    if not isinstance(value, Tracer) and is_evaluating():
        return put_at(array_of(value), place_of(where))
    if isinstance(where, NamedSharding):
        return constrain(value, where)
    return to_device(value, device=_device(where).name)


def _device(where: Where) -> Device:
    return where.device if isinstance(where, SingleDeviceSharding) else device_of(where)  # type: ignore[arg-type]


def place_of(where: Where) -> Place:
    """The place of arrays that the user moves there; they are committed to it."""
    if isinstance(where, NamedSharding):
        return committed_to(spread(NamedSharding(where.mesh, where.spec.settled())))
    return committed_to(on(_device(where)))


def array_of(value: Value) -> Array:
    """The value as a concrete array."""
    if type(value) is Array:
        return value
    scalar = dtypes.scalar_type(value)
    return as_array(value) if scalar is None else as_array(value, *scalar)


def device_get(x: object) -> Any:
    """A tree with every array as a NumPy array; all copies start before the first is awaited.

    Keys, which are not numbers for NumPy, stay rune arrays, in host memory. Traced values, numbers
    and anything else that is not an array are unchanged. Errors: none of its own.

    >>> import rune, rune.numpy as rnp
    >>> rune.device_get([rnp.arange(3)])
    [array([0, 1, 2], dtype=int32)]
    """
    copies = tree.map(_start_numpy, x)
    return tree.map(lambda finish: finish(), copies)


def _start_numpy(value: object) -> Callable[[], object]:
    if type(value) is not Array:
        has_numbers = hasattr(value, "__array__") and not isinstance(value, Tracer)
        return lambda: np.asarray(value) if has_numbers else value
    # The copy begins now, and is awaited when `device_get` calls the result.
    contents = value.start_numpy()
    return (lambda: Array(contents(), value.type)) if value.type.dtype in dtypes.KEYS else contents


def copy_to_host_async(values: X) -> X:
    """Begin to copy every array of the tree to the host, where its device can; returns the tree.

    Errors: DeletedArrayError for a deleted array.

    >>> import rune, rune.numpy as rnp
    >>> rune.copy_to_host_async(rnp.arange(2))
    Array([0, 1], i32[2], cpu:0)
    """
    for leaf in map(opened, tree.leaves(values)):
        if type(leaf) is Array:
            leaf.start_numpy()
    return values


def block_until_ready(x: X) -> X:
    """Wait until every array of the tree is computed; returns the tree.

    Errors: those of the pending work: DeviceError, OutOfMemory, NaNError.

    >>> import rune, rune.numpy as rnp
    >>> rune.block_until_ready({"x": rnp.ones(2) + 1})
    {'x': Array([2., 2.], f32[2], cpu:0)}
    """
    for leaf in map(opened, tree.leaves(x)):
        if type(leaf) is Array:
            leaf.block_until_ready()
    return x
