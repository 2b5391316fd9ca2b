"""Programs within equations: helpers of the rules of all control primitives."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rune.core.evaluate import eval_program
from rune.core.interpreter import type_of
from rune.core.lists import parts
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Program, Var
from rune.core.sizes import Sizes, match_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType, same_layout
from rune.core.value_keys import Parameters
from rune.core.values import Value
from rune.errors import CheckError
from rune.ops.family import types_text, zeros_of
from rune.transforms.compile.direct_runs import run_call
from rune.transforms.programs.call_rules import closed_call

if TYPE_CHECKING:
    from rune.array import Array


# --- programs ---------------------------------------------------------------------------------


@per_program
def arranged(program: Program, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Program:
    """The program with the inputs and outputs of these numbers, in this order."""
    return replace(
        program, inputs=tuple(program.inputs[i] for i in inputs), outputs=tuple(program.outputs[i] for i in outputs)
    )


@per_program
def with_inputs(program: Program, positions: tuple[int, ...], types: tuple[ArrayType, ...]) -> Program:
    """The program with more inputs, of these types; it reads only those at `positions`."""
    inputs_at = dict(zip(positions, program.inputs, strict=True))
    inputs = tuple(inputs_at[i] if i in inputs_at else Var(t) for i, t in enumerate(types))
    return replace(program, inputs=inputs)


def slots_for(groups: Sequence[Sequence[ArrayType]]) -> tuple[list[ArrayType], list[list[int]]]:
    """Slots that programs share by type: their types, and the numbers that each program fills."""
    # Only one of the programs runs, so a slot may serve a value of each.
    slots: list[ArrayType] = []
    return slots, [_allot(slots, types) for types in groups]


def _allot(slots: list[ArrayType], types: Sequence[ArrayType]) -> list[int]:
    """A different slot of its type for each value; missing slots are appended to `slots`."""
    numbers: list[int] = []
    for t in types:
        fitting = (i for i, s in enumerate(slots) if i not in numbers and same_layout(s, t))
        number = next(fitting, len(slots))
        if number == len(slots):
            slots.append(t)
        numbers.append(number)
    return numbers


def with_slots(program: Program, count: int, numbers: Sequence[int], slots: Sequence[ArrayType]) -> Program:
    """The program whose outputs after the first `count` fill the slots with these numbers.

    The other slots are filled with zeros.
    """

    def run(*args: object) -> list[Value]:
        outs, slot_values = parts(eval_program(program, args), count)
        by_number = dict(zip(numbers, slot_values, strict=True))
        # Branches must yield the same types: an unused slot has a value too, which is never read.
        return [*outs, *(by_number[i] if i in by_number else zeros_of(t) for i, t in enumerate(slots))]

    return stage(run, program.input_types, program.name).closed()


# --- types ------------------------------------------------------------------------------------


def sizes_for(name: str, program: Program, types: Sequence[ArrayType]) -> Sizes:
    """The values of the program's symbolic sizes for arguments of these types.

    Errors: CheckError if the types do not fit.
    """
    input_types = program.input_types
    # Sizes are read from shapes, so dtypes and ranks must fit first.
    if len(input_types) != len(types) or any(
        d.dtype != t.dtype or d.ndim != t.ndim for d, t in zip(input_types, types)
    ):
        refuse(name, program, types)
    sizes = match_sizes(input_types, types, f"{name}: cannot run {program.name}")
    if any(not d.is_symbolic and d.shape != t.shape for d, t in zip(input_types, types)):
        refuse(name, program, types)
    return sizes


def types_of(values: Iterable[object]) -> list[ArrayType]:
    """The types of values; a type among them stands for an unknown value."""
    return [v if isinstance(v, ArrayType) else type_of(v) for v in values]


def refuse(name: str, program: Program, types: Sequence[ArrayType]) -> None:
    """Raise, since the program does not take these types. Errors: CheckError, always."""
    expected_types = types_text(program.input_types)
    actual_types = types_text(types)
    raise CheckError(f"check: cannot accept {name} ({program.name} takes ({expected_types}), not ({actual_types}))")


# --- evaluating -------------------------------------------------------------------------------


def run_equation(primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> list[Array]:
    """The results of one equation, compiled, for concrete arguments."""
    types = tuple(type_of(a) for a in args)
    # The same program object each time: compiled code is stored on it.
    program = one_equation(primitive, types, Parameters(sorted(params.items())))
    return run_call(primitive.name, program, args)


@functools.lru_cache(maxsize=1024)
def one_equation(primitive: Primitive, types: tuple, params: tuple) -> Program:
    """The program of one equation; params: sorted pairs, since the cache compares them."""
    return stage(lambda *xs: primitive(*xs, **dict(params)), types, primitive.name).program


# --- sizes and unused results -----------------------------------------------------------------


def closed(program: Program, sizes: Sizes) -> tuple[Program, list[Value]]:
    """The program with everything that it needs as inputs, and the values of the new leading ones.

    These are witnesses of sizes that no other input has, and arrays that the program closes over.
    """
    return closed_call(program, sizes, [])


def closed_together(programs: Sequence[Program], sizes: Sequence[Sizes]) -> tuple[tuple[Program, ...], list[Value]]:
    """`closed` for programs of the same inputs: each also takes what the others need."""
    # Every program gets all leading inputs, and reads only its own among them.
    pairs = [closed(p, s) for p, s in zip(programs, sizes, strict=True)]
    leading = [value for _, values in pairs for value in values]
    if not leading:
        return tuple(programs), []
    types = (*(type_of(v) for v in leading), *programs[0].input_types)
    closed_programs, start = [], 0
    for program, values in pairs:
        slots = range(start, start := start + len(values))
        closed_programs.append(with_inputs(program, (*slots, *range(len(leading), len(types))), types))
    return tuple(closed_programs), leading
