"""Rules of primitives that call one program on their operands, such as jit and checkpoint.

Each rule rewrites the program and binds the primitive again, with its other parameters unchanged.
So a call stays one equation under any order of transformations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune.array import default_place, put
from rune.core.dead_code import narrowed, needed_inputs, with_inputs_picked
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, Runs
from rune.core.interpreter import bind, type_of
from rune.core.lists import nonzero_flags, nonzeros, omit, parts, scatter
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Equation, Literal, Program
from rune.core.sizes import Sizes, match_sizes, type_with_sizes, untold_sizes
from rune.core.types import ArrayType, Axes
from rune.core.values import Params, Value
from rune.core.varying import Variation
from rune.dims import Size
from rune.transforms.batching.batch import batch_program
from rune.transforms.derivatives.held_programs import jvp_program, transpose_program
from rune.transforms.programs.captured_arrays import opened
from rune.transforms.programs.size_witnesses import own_size, with_witnesses
from rune.transforms.programs.variation import axes_of, typed

Itself = Callable[[], Primitive]  # the primitive of a rule, by a function: it is made after its rules


def type_rule(*types: ArrayType, program: Program, **_: object) -> tuple[ArrayType, ...]:
    """The program's output types, with the values of its symbolic sizes from the arguments."""
    sizes = sizes_of(program, types)
    return tuple(type_with_sizes(t, sizes) for t in program.output_types) if sizes else program.output_types


def calls(*args: object, program: Program, **_: object) -> tuple[Calls, ...]:
    """The program runs once, on the operands."""
    return (Calls(program, args, Runs.ONCE),)


def run(*args: Value, program: Program, **_: object) -> list[Value]:
    """The meaning, evaluated: the program's results as users may have them."""
    return evaluated(program, args)


def interpret(evaluate: Callable[..., list], *args: Value, program: Program, **_: object) -> list[Value]:
    """The meaning: the program on the operands."""
    return evaluate(program, args)


def series(interpreter: object, args: Sequence[Value], params: Params) -> list[Value]:
    """On series: the program's own equations."""
    return eval_program(params["program"], args)


def vary(axes: Sequence[Axes], params: Params) -> Variation:
    """The program for operands that vary along these axes."""
    program = typed(params["program"], tuple(axes))
    return {**params, "program": program}, axes_of(program.outputs)


def sizes_of(program: Program, types: Sequence[ArrayType]) -> Sizes:
    """The values of the program's symbolic sizes for arguments of these types."""
    return match_sizes(program.input_types, types, f"{program.name}: cannot run") if is_sized(program) else {}


@per_program
def is_sized(program: Program) -> bool:
    """Whether the arguments give sizes to the program."""
    return any(t.is_symbolic for t in program.input_types)


@per_program
def is_closed(program: Program) -> bool:
    """Whether the program's inputs determine all of its sizes, as most do."""
    return not program.constants and not untold_sizes(program)


def closed_call(program: Program, sizes: Sizes, args: Sequence[Value]) -> tuple[Program, list[Value]]:
    """A program whose operands determine all of its sizes, and those operands."""
    if is_closed(program):
        return program, [*args]
    closed_program, witnesses = with_witnesses(program, sizes)
    # Arrays that a custom rule closes over lead, then witnesses: both are operands of the equation.
    closed_program, values = opened(closed_program)
    return closed_program, [*values, *witnesses, *args]


def evaluated(program: Program, args: Sequence[Value]) -> list[Value]:
    """The results of a program, ready for users: a constant number in it becomes an array.

    As a NumPy array it would take a canonical dtype where it is used next.
    """
    outs = eval_program(program, args)
    place = default_place()
    return [
        put(a.value, a.type, place) if isinstance(a, Literal) else o for a, o in zip(program.outputs, outs, strict=True)
    ]


def bind_call(
    primitive: Primitive, params: Params, program: Program, sizes: Sizes, args: Sequence[Value]
) -> list[Value]:
    """The results of calling `program` on `args` by an equation of the primitive."""
    closed_program, operands = closed_call(program, sizes, args)
    return bind(primitive, *operands, **{**params, "program": closed_program})


def jvp_rule(itself: Itself) -> Callable[..., Any]:
    """jvp_equation: call the program of primals and tangents."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Params) -> Any:
        program: Program = params["program"]
        both, nonzero = jvp_program(program, nonzero_flags(tangents))
        # No sizes: the primals, which are all there, determine them.
        outs = bind_call(itself(), params, both, {}, [*primals, *nonzeros(tangents)])
        values, out_tangents = parts(outs, len(program.outputs))
        return values, scatter(out_tangents, nonzero)

    return jvp


def transpose_rule(itself: Itself) -> Callable[..., Any]:
    """transpose: call the transposed program on known inputs and cotangents."""

    def transpose(
        cts: Sequence[Value | None], linear: Sequence[bool], *inputs: Any, program: Program, **params: object
    ) -> list[Value | None]:
        transposed_program, nonzero = transpose_program(program, tuple(linear), nonzero_flags(cts))
        # A type stands for each linear input.
        types = [x if lin else type_of(x) for x, lin in zip(inputs, linear, strict=True)]
        # A zero cotangent is not passed: the rewritten program has no input for it.
        args = [*omit(inputs, linear), *nonzeros(cts)]
        outs = bind_call(itself(), params, transposed_program, sizes_of(program, types), args)
        return scatter(scatter(outs, nonzero), linear)

    return transpose


def batch_rule(itself: Itself) -> Callable[..., Any]:
    """batch: call the program of all lanes."""

    def batch(batched: Sequence[bool], size: Size, *args: Value, program: Program, **params: object) -> Any:
        # A new symbolic size, so that one rewritten program serves every number of lanes.
        lane_program, out_batched = batch_program(program, tuple(batched), own_size(size, program))
        return bind_call(itself(), params, lane_program, {}, args), out_batched

    return batch


def dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    """The equation with a program of only the used results, and the operands that it takes."""
    smaller, used_inputs = of_results(equation.params["program"], tuple(used_results))
    return narrowed(equation, used_inputs, used_results, program=smaller)


@per_program
def of_results(program: Program, used_outputs: tuple[bool, ...]) -> tuple[Program, tuple[bool, ...]]:
    """The program of only the used results, and which inputs it needs."""
    smaller, used_inputs = needed_inputs(program, used_outputs)
    return with_inputs_picked(smaller, used_inputs), used_inputs
