"""Traces a function as jit does and exports the program; derivatives are traced on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from rune import dtypes, tree
from rune.array import Array
from rune.core.dead_code import prune
from rune.core.interpreter import type_of
from rune.core.lists import merge, omit, pick
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.exporting.exported import Exported
from rune.exporting.storable import storable
from rune.transforms.arguments import as_value, require_callable
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.derivatives.vjp import vjp
from rune.tree.treedef import TreeDef


def exported_function(
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    dims: Mapping[str, tuple[int | str, int | str | None]] | None,
    in_dims: object,
    prepare: Callable[[Program], Program] = storable,
) -> Exported:
    """Export a function for arguments like these.

    prepare: turns the traced program into one that a file (or a source folder) can hold
    """
    require_callable("export", function)
    is_jitted = isinstance(function, Jitted)
    if is_jitted and (dims is not None or in_dims is not None):
        raise ArgumentError("export: cannot give sizes to a jitted function", hint="use jit(f, dims=..., in_dims=...)")
    jit_function = function if is_jitted else jit(function, dims=dims, in_dims=in_dims)
    traced_function = jit_function.trace(*args, **kwargs)
    trace = traced_function.trace
    if trace.needs or trace.serves_one_call:
        raise ArgumentError(
            f"export: cannot store {trace.program.name} (it reads a random key or a traced value from outside)",
            hint="pass keys and arrays that change between calls as arguments",
        )
    return exported(trace.program, trace.captured, traced_function.in_tree, trace.out_tree, prepare)


def exported(
    program: Program,
    captures: Sequence[Value],
    in_tree: TreeDef,
    out_tree: TreeDef,
    prepare: Callable[[Program], Program] = storable,
) -> Exported:
    """The program as an exported function; `captured` holds the values of its first inputs."""
    weights = tuple(map(as_value, captures))
    return Exported(prepare(program), weights, in_tree, out_tree, cache(lambda: _derivative(program, weights)))


def _derivative(program: Program, weights: tuple[Array, ...]) -> Exported:
    """The function from arguments and cotangents to cotangents.

    It is traced from the original program, which still has the custom derivative rules.
    """
    types = program.input_types[len(weights) :]
    results = [t.strong() for t in program.output_types if t.dtype in dtypes.INEXACT]
    active = [t.dtype in dtypes.INEXACT for t in types]

    def pulled(*flat: Value) -> list[Value]:
        values, cts = flat[: len(types)], flat[len(types) :]

        def of_active(*inexact_values: Value) -> list[Value]:
            full = merge(active, inexact_values, omit(values, active))
            outs = jit_primitive(*weights, *full, program=program)
            return [o for o in outs if type_of(o).dtype in dtypes.INEXACT]

        _, pull = vjp(of_active, *pick(values, active))
        return list(pull(list(cts)))

    trace = stage(pulled, [*types, *results], f"vjp_{program.name}")
    return _from_stage(trace.program, trace.captured, len(types) + len(results))


def _from_stage(program: Program, captures: Sequence[Value], count: int) -> Exported:
    """The staged program as an Exported of flat arguments and a list of results.

    It drops dead code and the captured values that only dead code reads.
    """
    inputs = program.inputs
    live_program, _ = prune(program, [True] * len(program.outputs))
    read = {*live_program.inputs}
    constants = [v for v, x in zip(inputs, captures) if v in read]
    values = [x for v, x in zip(inputs, captures) if v in read]
    body = Program(
        (*constants, *inputs[len(captures) :]), live_program.equations, live_program.outputs, (), program.name
    )
    in_tree, out_tree = tree.structure(((0,) * count, {})), tree.structure([0] * len(program.outputs))
    return exported(body, values, in_tree, out_tree)


__all__ = ["exported", "exported_function"]
