"""Programs taken apart and put together: what the rules of all control primitives share."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rune.core.dead_code import prune
from rune.core.evaluate import eval_program
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var, subprograms
from rune.core.sizes import Sizes, carriers, match_sizes, untold_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.errors import CheckError
from rune.ops.family import types_text, zeros_of
from rune.transforms.compile.run import place_of_call, run_program
from rune.transforms.derivatives.flat_functions import is_layout
from rune.transforms.programs.call_rules import closed_call
from rune.transforms.programs.memo import per_program

Flags = tuple[bool, ...]


# --- lists ------------------------------------------------------------------------------------


def parts(values: Sequence[Any], *counts: int) -> list[list[Any]]:
    """The values cut into pieces of these lengths, and the rest."""
    ends = [0, *itertools.accumulate(counts), len(values)]
    return [list(values[a:b]) for a, b in itertools.pairwise(ends)]


def where(values: Iterable[Any], flags: Iterable[bool]) -> list[Any]:
    """The values that are flagged."""
    return [v for v, f in zip(values, flags, strict=True) if f]


def where_not(values: Iterable[Any], flags: Iterable[bool]) -> list[Any]:
    """The values that are not flagged."""
    return [v for v, f in zip(values, flags, strict=True) if not f]


def spread(values: Iterable[Any], flags: Iterable[bool]) -> list[Any]:
    """One value for every flag that is set, None for the others."""
    given = iter(values)
    return [next(given) if f else None for f in flags]


def merged(flags: Iterable[bool], yes: Iterable[Any], no: Iterable[Any]) -> list[Any]:
    """The next of `yes` for every flag that is set, of `no` for the others."""
    first, second = iter(yes), iter(no)
    return [next(first) if f else next(second) for f in flags]


def either(*flags: Sequence[bool]) -> Flags:
    """Position by position, whether any is set."""
    return tuple(any(column) for column in zip(*flags, strict=True))


def given(values: Iterable[Any]) -> Flags:
    """Which values are not None, the symbolic zero."""
    return tuple(v is not None for v in values)


# --- programs ---------------------------------------------------------------------------------


@per_program
def arranged(program: Program, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Program:
    """The program with inputs and outputs in another order, by their numbers."""
    return replace(
        program,
        inputs=tuple(program.inputs[i] for i in inputs),
        outputs=tuple(program.outputs[i] for i in outputs),
    )


@per_program
def with_inputs(
    program: Program, positions: tuple[int, ...], types: tuple[ArrayType, ...]
) -> Program:
    """The program among inputs of these types: its own stand at `positions`, others are unread."""
    own = dict(zip(positions, program.inputs, strict=True))
    made = tuple(own[i] if i in own else Var(t) for i, t in enumerate(types))
    return replace(program, inputs=made)


def slots_for(
    groups: Sequence[Sequence[ArrayType]],
) -> tuple[list[ArrayType], list[list[int]]]:
    """Slots that programs share by type: their types, and those that each program fills."""
    slots: list[ArrayType] = []
    return slots, [_taken(slots, types) for types in groups]


def _taken(slots: list[ArrayType], types: Sequence[ArrayType]) -> list[int]:
    """A slot of its type for each, no slot twice; slots that are missing are added."""
    taken: list[int] = []
    for t in types:
        fits = (i for i, s in enumerate(slots) if i not in taken and is_layout(s, t))
        found = next(fits, len(slots))
        if found == len(slots):
            slots.append(t)
        taken.append(found)
    return taken


def with_slots(
    program: Program, count: int, own: Sequence[int], slots: Sequence[ArrayType]
) -> Program:
    """The program whose outputs behind the first `count` fill its own slots, zeros the others."""

    def run(*args: Any) -> list[Any]:
        outs, filling = parts(eval_program(program, args), count)
        found = dict(zip(own, filling, strict=True))
        filled = (found[i] if i in found else zeros_of(t) for i, t in enumerate(slots))
        return [*outs, *filled]

    return stage(run, program.input_types, program.name).closed()


def holds(program: Program, found: Callable[[Equation], bool]) -> bool:
    """Whether the program, or one that it holds, has such an equation."""
    pending, seen = [program], {program}
    while pending:
        for equation in pending.pop().equations:
            if found(equation):
                return True
            inner = set(subprograms(equation)) - seen
            seen |= inner
            pending += inner
    return False


# --- types ------------------------------------------------------------------------------------


def matched(name: str, program: Program, types: Sequence[ArrayType]) -> Sizes:
    """What the program's symbolic sizes are for arguments of these types.

    Errors: CheckError where the types do not fit.
    """
    declared = program.input_types
    if len(declared) != len(types) or any(
        d.dtype != t.dtype or d.ndim != t.ndim for d, t in zip(declared, types)
    ):
        refuse(name, program, types)
    sizes = match_sizes(declared, types, f"{name}: cannot run {program.name}")
    if any(not d.is_symbolic and d.shape != t.shape for d, t in zip(declared, types)):
        refuse(name, program, types)
    return sizes


def types_of(values: Iterable[Any]) -> list[ArrayType]:
    """The types of values; a type stands for a value of it."""
    return [v if isinstance(v, ArrayType) else type_of(v) for v in values]


def refuse(name: str, program: Program, types: Sequence[ArrayType]) -> None:
    """Errors: CheckError, always."""
    taken = types_text(program.input_types)
    raise CheckError(
        f"check: cannot accept {name} ({program.name} takes ({taken}), not ({types_text(types)}))"
    )


# --- evaluating -------------------------------------------------------------------------------


def run_equation(primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """The results of one equation, compiled, for concrete arguments."""
    types = tuple(type_of(a) for a in args)
    program = one_equation(primitive, types, tuple(sorted(params.items())))
    return run_program(program, args, place_of_call(primitive.name, program, args))


@functools.lru_cache(maxsize=1024)
def one_equation(primitive: Primitive, types: tuple, params: tuple) -> Program:
    return stage(lambda *xs: primitive(*xs, **dict(params)), types, primitive.name).program


# --- sizes and unused results -----------------------------------------------------------------


def closed(program: Program, sizes: Sizes) -> tuple[Program, list[Any]]:
    """A program that has all it needs among its inputs, and the values for the new leading ones.

    What it needs are sizes that no input tells, and the arrays that it closes over.
    """
    return closed_call(program, sizes, [])


def closed_together(
    programs: Sequence[Program], sizes: Sequence[Sizes]
) -> tuple[tuple[Program, ...], list[Any]]:
    """`closed` for programs of the same inputs: each also takes what the others need."""
    made = [closed(p, s) for p, s in zip(programs, sizes, strict=True)]
    leading = [value for _, values in made for value in values]
    if not leading:
        return tuple(programs), []
    types = (*(type_of(v) for v in leading), *programs[0].input_types)
    found, start = [], 0
    for whole, values in made:
        own = range(start, start := start + len(values))
        found.append(with_inputs(whole, (*own, *range(len(leading), len(types))), types))
    return tuple(found), leading


def needed_inputs(program: Program, wanted: Flags) -> tuple[Program, Flags]:
    """The program with the wanted outputs and all inputs, and which inputs it must keep.

    An input that nothing reads stays if it tells a size.
    """
    pruned, read = prune(program, wanted)
    whole = replace(pruned, inputs=program.inputs)
    telling = carriers(program.input_types, untold_sizes(pruned))
    return whole, tuple(r or i in telling for i, r in enumerate(read))
