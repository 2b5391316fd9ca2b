"""The stage of a jitted function whose arguments lie on Explicit axes, and eager operations there.

Each result lies as its layout says: an eager one is moved if need be, and the results of a program
are constrained. Primals keep the layouts that they have, so that their cotangents get the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeVar

from rune.array import Array, committed_to
from rune.core.higher import HigherOrder
from rune.core.interpreter import Interpreter, current, type_of
from rune.core.primitive import Primitive
from rune.core.program import Atom
from rune.core.staging import FlatFunction, Stage, Staged, StageTracer, stage, trace_program
from rune.core.types import ArrayType
from rune.core.value_keys import Parameters
from rune.core.values import Params, Value
from rune.errors import ShardingTypeError
from rune.records import dataclass
from rune.sharding import Mesh, NamedSharding
from rune.sharding.context import is_checked
from rune.sharding.memory import Spread, spread
from rune.transforms.sharding.constraint import CONSTRAINTS, sharding_constraint
from rune.transforms.sharding.explicit.known import (
    UNKNOWN,
    Known,
    Loose,
    known_on,
    mesh_of,
    open_spec,
    spec_words,
    type_text,
)
from rune.transforms.sharding.explicit.programs import result_layouts
from rune.transforms.sharding.explicit.rules import RESHARD, Operation
from rune.transforms.sharding.moves import put_at
from rune.transforms.sharding.reshard import Layout, constrained_layout

X = TypeVar("X", bound=Value)


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts of the arguments of a call along the Explicit axes of a mesh."""

    mesh: Mesh
    arguments: tuple[Known, ...]


def layouts_of_call(values: Sequence[Value]) -> Layouts | None:
    """The layouts of arguments; None if none is on Explicit axes, or nothing is checked here."""
    mesh = mesh_of(values)
    if mesh is None or not is_checked():
        return None
    return Layouts(mesh, tuple(known_on(mesh, x) for x in values))


class LaidOut(Stage):
    """A stage that knows how its values are split along the Explicit axes of a mesh."""

    __slots__ = ("laid_out_on", "layouts")

    def __init__(self, parent: Interpreter | None, mesh: Mesh):
        super().__init__(parent)
        self.laid_out_on = mesh
        self.layouts: dict[Atom, Known] = {}

    def known(self, tracer: StageTracer) -> Known:
        """What is known of a tracer of this stage."""
        return self.layouts.get(tracer.variable, UNKNOWN)

    def process(self, primitive: Primitive, args: Sequence[Value], params: Params) -> StageTracer | list[StageTracer]:
        """Write an equation, after asking for the layouts of its results."""
        results = self.write(primitive, args, params)
        # A constraint says its layout, wherever it is written.
        if is_checked() or primitive in CONSTRAINTS:
            tracers = results if primitive.multiple_results else [results]
            known = _layouts(self.laid_out_on, primitive, args, params, [t.type for t in tracers])
            self.layouts.update((t.variable, x) for t, x in zip(tracers, known, strict=True))
        return results

    def laid_out(self, value: Value) -> Value:
        """A result, constrained to its layout if that is known."""
        if not self.owns(value) or value.variable in self.inputs or not value.type.shape:
            return value
        known = self.known(value)
        last = self.equations[-1]
        is_constrained = last.primitive in CONSTRAINTS and last.results == (value.variable,)
        return value if isinstance(known, Loose) or is_constrained else self.constrained(value, known)

    def constrained(self, value: Value, layout: Layout) -> Value:
        """A value with a constraint to a layout."""
        mesh = self.laid_out_on
        return sharding_constraint(value, sharding=NamedSharding(mesh, open_spec(mesh, layout)))


def _layouts(
    mesh: Mesh, primitive: Primitive, args: Sequence[Value], params: Params, results: Sequence[ArrayType]
) -> list[Known]:
    layouts = [known_on(mesh, x) for x in args]
    return result_layouts(Operation(primitive, [*map(type_of, args)], layouts, params, results, mesh))


def staged(function: FlatFunction, types: Sequence[ArrayType], name: str, layouts: Layouts | None) -> Staged:
    """The program of a function for arguments of these types and layouts."""
    if layouts is None:
        return stage(function, types, name)
    writer = LaidOut(current(), layouts.mesh)

    def laid_out(*values: Value) -> list[Value]:
        # The stage has made an input for each, in order.
        writer.layouts.update(zip(writer.inputs, layouts.arguments, strict=True))
        return [writer.laid_out(out) for out in function(*values)]

    return trace_program(writer, laid_out, types, name)


def eager_layouts(primitive: Primitive, args: Sequence[Value], params: Params) -> Layouts | None:
    """The layouts of the results of an eager operation; None if it is not on Explicit axes.

    Errors: ShardingTypeError for operands that do not fit.
    """
    mesh = mesh_of(args)
    if mesh is None or not is_checked():
        return None
    layouts, types = tuple([known_on(mesh, x) for x in args]), tuple(map(type_of, args))
    # Programs are not kept alive by a memo.
    if isinstance(primitive, HigherOrder):
        return _eager(primitive, types, Layouts(mesh, layouts), params)
    return _remembered(primitive, types, Layouts(mesh, layouts), Parameters(params.items()))


def _eager(primitive: Primitive, types: tuple[ArrayType, ...], operands: Layouts, params: Params) -> Layouts:
    out = primitive.type_rule(*types, **params)
    results = out if primitive.multiple_results else (out,)
    operation = Operation(primitive, types, operands.arguments, params, results, operands.mesh)
    return Layouts(operands.mesh, tuple(result_layouts(operation)))


@functools.lru_cache(maxsize=4096)
def _remembered(primitive: Primitive, types: tuple[ArrayType, ...], operands: Layouts, params: Parameters) -> Layouts:
    return _eager(primitive, types, operands, dict(params))


def put_as_known(results: Array | list[Array], layouts: Layouts) -> Array | list[Array]:
    """Eager results as their layouts say; unchanged where they lie so, or nothing is known."""
    if isinstance(results, list):
        return [_put_as_known(x, layouts.mesh, known) for x, known in zip(results, layouts.arguments, strict=True)]
    return _put_as_known(results, layouts.mesh, layouts.arguments[0])


def _put_as_known(array: Array, mesh: Mesh, known: Known) -> Array:
    device = array.place.device
    if isinstance(known, Loose) or not array.type.shape or not isinstance(device, Spread):
        return array
    # The spec of a result would have to name the other axes, too.
    if not mesh.are_all_axes_explicit or device.sharding.mesh != mesh:
        return array
    if known_on(mesh, array) == known:
        return array
    return put_at(array, committed_to(spread(NamedSharding(mesh, spec_words(known)))))


def of_primals(function: FlatFunction) -> FlatFunction:
    """A function of primals whose cotangents get their layouts; itself without Explicit axes."""
    return (lambda *primals: function(*map(as_primal, primals))) if Mesh.has_explicit else function


def as_primal(value: Value) -> Value:
    """A primal that gives its layout to its cotangent; itself if it is not on Explicit axes."""
    return like(value, value) if type_of(value).shape else value


def public_type(value: object, type: ArrayType) -> ArrayType:
    """The type of a value as users get it, with its layout if that is known."""
    mesh = mesh_of([value]) if isinstance(value, Array) else None
    known = known_on(mesh, value) if mesh is not None and isinstance(value, Array) else UNKNOWN
    if mesh is None or isinstance(known, Loose):
        return type
    return type.laid_out(NamedSharding(mesh.abstract_mesh, spec_words(known)))


def like(value: X, other: Value) -> X:
    """A new value laid out as another one of its shape along the Explicit axes of a mesh."""
    mesh = mesh_of([other])
    known = UNKNOWN if mesh is None or not is_checked() else known_on(mesh, other)
    if mesh is None or isinstance(known, Loose) or type_of(value).shape != type_of(other).shape:
        return value
    return sharding_constraint(value, sharding=NamedSharding(mesh, open_spec(mesh, known)))


def require_layout(value: Value, sharding: object) -> None:
    """Errors: ShardingTypeError if a value is known to be laid out otherwise, on Explicit axes."""
    mesh = mesh_of([value])
    if mesh is None or not isinstance(sharding, NamedSharding) or mesh != sharding.mesh:
        return
    if not mesh.are_all_axes_explicit or not is_checked():
        return
    known, type = known_on(mesh, value), type_of(value)
    if not isinstance(known, Loose) and constrained_layout(sharding.spec, known) != known:
        raise ShardingTypeError(
            f"with_sharding_constraint: cannot lay out {type_text(type, known)} by {sharding.spec!r} "
            "(on Explicit axes it only says how an array is split)",
            RESHARD,
        )
