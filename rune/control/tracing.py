"""A user's function as a program of its own.

Values that the function closes over become leading inputs, and are stored beside the program; so
do values that answer its effects, such as a key. Programs with identical text are one program: a
loop that is called again, even with a new lambda, finds its compiled code.

    trace           the program of a function for these types of arguments
    share_captured  several programs that take the same captured values
    tell_one_of     tell handlers what effects use if one of several programs runs
    with_carry      a body whose carries enter and leave with the types of the loop's carries
    with_inputs_of  a function for strong arguments, which it converts to weak ones
    retyped         a program whose results are converted to other weakness
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rune import dtypes, tree
from rune.core.interpreter import current
from rune.core.lists import parts
from rune.core.program import Equation, Program, Var
from rune.core.staging import Stage, StageTracer, new_input, stage
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.effects import Need, Recorder
from rune.ops import add, convert
from rune.records import dataclass
from rune.transforms.arguments import function_name
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.effect_boundaries import recorder

NUMBER = ArrayType((), dtypes.u32)


@dataclass(frozen=True, slots=True)
class Traced:
    """A program, the values for its leading inputs, and the tree of its results.

    is_numbered:  whether an effect asked for the number of the step, as draws without a key do.
                  Then the number, a u32[], is a carry before all others, and the program increments
                  it
    needs:        effects that the program answers itself, from values among the captured ones
    """

    program: Program
    captured: tuple[Value, ...]
    out_tree: tree.TreeDef
    is_numbered: bool
    needs: tuple[Need, ...]

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """Types of the function's results."""
        return self.program.output_types[self.is_numbered :]

    @property
    def counter(self) -> list[Value]:
        """The number of the first step, if steps are numbered."""
        return [np.uint32(0)] if self.is_numbered else []

    def tell(self) -> None:
        """Tell outer handlers what the program uses of their answers."""
        for need in self.needs:
            need.tell()


def trace(function: Flat, types: Sequence[ArrayType], *, is_step: bool = False) -> Traced:
    """The program of `function` for arguments of these types.

    is_step: the function is the body of a loop, whose effects may ask for the number of the step.
    """
    # Filled while the function runs, and read after it.
    recorders: list[Recorder] = []
    numbers: list[StageTracer] = []

    def number(writer: Stage) -> StageTracer:
        if not numbers:  # added on demand: most loops need no counter
            numbers.append(new_input(writer, NUMBER))
        return numbers[0]

    def flat(*values: Value) -> list[Value]:
        writer = current()
        assert isinstance(writer, Stage)
        # Draws without a key must differ from step to step: the number of the step is folded in.
        index = functools.partial(number, writer) if is_step else None
        with recorder(writer, index) as recording:
            outs = function(*values)
        recorders.append(recording)
        return [*(add(n, np.uint32(1)) for n in numbers), *outs]

    closure = stage(flat, types, function_name(function.function))
    # Effects add inputs while the function runs, so theirs follow those of the arguments.
    argument_vars, added_vars = parts(closure.own_inputs, len(types))
    number_vars = [v for v in added_vars if numbers and v is numbers[0].variable]
    effect_vars = [v for v in added_vars if v not in number_vars]
    captured_vars = closure.program.inputs[: len(closure.captured)]
    # A loop counts its inputs from the front: consts first, then what it carries, then rows.
    inputs = (*captured_vars, *effect_vars, *number_vars, *argument_vars)
    return Traced(
        replace(closure.program, inputs=inputs),
        (*closure.captured, *recorders[-1].inputs.entered),
        function.out_tree,
        bool(numbers),
        recorders[-1].inputs.needs(),
    )


def share_captured(traces: Sequence[Traced]) -> list[Traced]:
    """The same functions, each also taking the values that the others captured."""
    # By identity: `==` on arrays is an operation, and equal values may be different arrays.
    captured_vars = [dict(zip(_places(t.captured), t.program.inputs)) for t in traces]
    # A value that one function captures twice has two inputs there, so it needs two places.
    values = {place: v for t in traces for place, v in _places(t.captured).items()}
    types = {place: var.type for variables in captured_vars for place, var in variables.items()}

    def widened(t: Traced, variables: Mapping[tuple[int, int], Var]) -> Traced:
        leading = (variables.get(place) or Var(types[place]) for place in values)
        inputs = (*leading, *t.program.inputs[len(t.captured) :])
        return replace(t, program=replace(t.program, inputs=inputs), captured=tuple(values.values()))

    return [widened(t, variables) for t, variables in zip(traces, captured_vars)]


def _places(values: Sequence[Value]) -> dict[tuple[int, int], Value]:
    """The values by identity and number of earlier occurrences."""
    counts: Counter[int] = Counter()
    places: dict[tuple[int, int], Value] = {}
    for v in values:
        places[id(v), counts[id(v)]] = v
        counts[id(v)] += 1
    return places


def tell_one_of(traces: Sequence[Traced]) -> None:
    """Tell outer handlers the most that any one of the programs uses: only one of them runs."""
    needs: dict[object, Need] = {}
    for need in (n for t in traces for n in t.needs):
        kind = need.about.kind
        needs[kind] = need.or_else(needs[kind]) if kind in needs else need
    for need in needs.values():
        need.tell()


def with_carry(traced_function: Traced, types: Sequence[ArrayType]) -> Program:
    """The program of a loop's body with carries of these types, which differ in weakness."""
    return retyped(with_inputs_of(traced_function, types), types)


def with_inputs_of(traced_function: Traced, types: Sequence[ArrayType]) -> Traced:
    """The same function for first arguments of these types, which it converts to the traced types.

    Before  f(%0: f32*[]) { ... }
    After   f(%1: f32[]) { %0: f32*[] = convert %1 {dtype=f32, weak=true}; ... }
    """
    inputs = list(traced_function.program.inputs)
    conversions: list[Equation] = []
    # Along the axes of the traced input: a conversion changes weakness, not variation.
    for i, target in enumerate(types, len(traced_function.captured) + len(traced_function.counter)):
        var = inputs[i]
        if var.type != target.along(var.type.varying):
            inputs[i] = Var(target.along(var.type.varying))
            conversions.append(
                Equation(convert, (inputs[i],), {"dtype": var.type.dtype, "weak": var.type.weak}, (var,))
            )
    program = replace(traced_function.program, inputs=tuple(inputs))
    return replace(traced_function, program=program.with_equations((*conversions, *program.equations), program.outputs))


def retyped(traced_function: Traced, types: Sequence[ArrayType]) -> Program:
    """The program with its first results converted to these types, which differ in weakness."""
    # The number of the step, if there is one, leads the outputs and needs no conversion.
    program, first = traced_function.program, len(traced_function.counter)
    outputs = list(program.outputs)
    conversions: list[Equation] = []
    for i, target in enumerate(types, first):
        if outputs[i].type != target.along(outputs[i].type.varying):
            var, params = Var(target.along(outputs[i].type.varying)), {"dtype": target.dtype, "weak": target.weak}
            conversions.append(Equation(convert, (outputs[i],), params, (var,)))
            outputs[i] = var
    return program.with_equations((*program.equations, *conversions), outputs)
