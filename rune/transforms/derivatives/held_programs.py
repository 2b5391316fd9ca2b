"""Derivatives of the programs that equations hold: the jvp, the known part and the transpose.

Eager derivatives run a function under an interpreter (jvp.py, linearize.py, transpose.py). A jitted
function or a loop is one equation that holds a program, and its rules need derivatives of that
program. Each function here traces the eager transformation of a program, so that one equation stays
one.

Cost: a program is rewritten once for each pattern of zeros; the result lives as long as the
      program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rune.array import Array
from rune.core.dead_code import without_dead_code
from rune.core.evaluate import eval_program
from rune.core.interpreter import current
from rune.core.lists import Flags, merge, nonzero_flags, nonzeros, omit, pick, scatter
from rune.core.memo import per_program
from rune.core.program import Program
from rune.core.staging import Staged, finish, new_input, stage
from rune.core.values import Value
from rune.ops.family import zeros_like, zeros_of
from rune.records import dataclass
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.linearize import Partial, linear_map
from rune.transforms.derivatives.transpose import backward

T = TypeVar("T")


@per_program
def jvp_program(program: Program, nonzero: Flags, forced_outputs: Flags = ()) -> tuple[Program, Flags]:
    """primals, nonzero tangents -> outputs, nonzero output tangents; and which outputs have one.

    forced_outputs: which tangents are written out even if they are zero; none by default.
    """
    out_nonzero: list[bool] = []
    count = len(program.inputs)

    def both(*args: Value) -> list[Array]:
        tangents = scatter(args[count:], nonzero)
        outs, out_tangents = jvp_flat(lambda *xs: eval_program(program, xs), args[:count], tangents)
        # A loop forces a carry's tangent to exist, so that every step takes and returns it.
        for i, is_forced in enumerate(forced_outputs):
            if is_forced and out_tangents[i] is None:
                out_tangents[i] = zeros_like(outs[i])
        out_nonzero.extend(nonzero_flags(out_tangents))
        return [*outs, *nonzeros(out_tangents)]

    types = [*program.input_types, *pick(program.input_types, nonzero)]
    joint_program = stage(both, types, f"jvp_{program.name}")
    # A function with a rule for cotangents only has no tangent: where no result reads it, it goes.
    return without_dead_code(joint_program.with_captured()), tuple(out_nonzero)


@dataclass(frozen=True, slots=True)
class SplitProgram:
    """A program split by which inputs are known.

    known:    known inputs -> known outputs, residuals that are not inputs
    unknown:  residuals, unknown inputs -> unknown outputs
    """

    known: Program
    unknown: Program
    residual_inputs: tuple[int | None, ...]  # per residual: a known input's number, or None
    known_outputs: Flags

    def residuals(self, known_inputs: Sequence[T], known_values: Sequence[T]) -> list[T]:
        """The residuals, of the inputs of the known part and the values that it returns."""
        computed_residuals = iter(known_values[sum(self.known_outputs) :])
        return [next(computed_residuals) if n is None else known_inputs[n] for n in self.residual_inputs]


@per_program
def split_program(program: Program, unknown: Flags, forced_outputs: Flags = ()) -> SplitProgram:
    """Partial evaluation of a program. Derivatives of elementwise functions are in the known part.

    forced_outputs: which are unknown even if they could be computed; none by default.
    """
    # Filled by `run`, which can return only the values of the known program.
    parts: list[Any] = []

    def run(*known: Value) -> list[Array]:
        partial = Partial(current())
        unknown_values = (new_input(partial, t) for t in pick(program.input_types, unknown))
        args = merge(unknown, unknown_values, known)

        def evaluate() -> tuple[Staged, Flags, list[Any]]:
            outs = eval_program(program, args)
            is_forced = forced_outputs or (False,) * len(outs)
            is_known = tuple(not partial.owns(o) and not f for o, f in zip(outs, is_forced, strict=True))
            unknown_part = finish(partial, omit(outs, is_known), f"{program.name}_unknown")
            return unknown_part, is_known, pick(outs, is_known)

        unknown_part, is_known, known_outs = partial.trace(evaluate)
        linear = linear_map(unknown_part, ())
        # An input that is a residual is not also returned: the caller of both parts has it.
        sources = tuple(_position(known, r) for r in linear.residuals)
        parts.extend((linear.program, sources, is_known))
        computed_residuals = [r for r, s in zip(linear.residuals, sources, strict=True) if s is None]
        return [*known_outs, *computed_residuals]

    known_program = stage(run, omit(program.input_types, unknown), f"{program.name}_known")
    return SplitProgram(known_program.with_captured(), parts[0], parts[1], parts[2])


# By identity: equal values may be different inputs, and `==` is elementwise.
def _position(values: Sequence[Value], value: Value) -> int | None:
    return next((i for i, v in enumerate(values) if v is value), None)


@per_program
def transpose_program(
    program: Program, linear: Flags, nonzero: Flags, forced_inputs: Flags = ()
) -> tuple[Program, Flags]:
    """known inputs, nonzero output cotangents -> nonzero input cotangents; and which have one.

    forced_inputs: which cotangents of linear inputs are written out even if they are zero.
    """
    in_nonzero: list[bool] = []
    linear_types = pick(program.input_types, linear)

    def run(*args: Value) -> list[Array]:
        known = dict(zip(omit(program.inputs, linear), args, strict=False))
        cts = backward(program, known, scatter(args[len(known) :], nonzero))
        # As in `jvp_program`: a loop's carry has a cotangent in every step or in none.
        for i, (is_forced, type) in enumerate(zip(forced_inputs, linear_types)):
            if is_forced and cts[i] is None:
                cts[i] = zeros_of(type)
        in_nonzero.extend(nonzero_flags(cts))
        return nonzeros(cts)

    types = [*omit(program.input_types, linear), *pick(program.output_types, nonzero)]
    transposed_program = stage(run, types, f"transpose_{program.name}")
    return transposed_program.with_captured(), tuple(in_nonzero)
