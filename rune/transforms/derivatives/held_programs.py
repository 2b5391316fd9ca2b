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
from typing import Any

from rune.array import Array
from rune.core.evaluate import eval_program
from rune.core.interpreter import current
from rune.core.program import Program
from rune.core.staging import Staged, finish, new_input, stage
from rune.core.values import Value
from rune.ops.family import zeros_like, zeros_of
from rune.records import dataclass
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.linearize import Partial, linear_map
from rune.transforms.derivatives.transpose import backward
from rune.transforms.programs.memo import per_program


@per_program
def jvp_program(
    program: Program, nonzero: tuple[bool, ...], forced_outputs: tuple[bool, ...] = ()
) -> tuple[Program, tuple[bool, ...]]:
    """primals, nonzero tangents -> outputs, nonzero output tangents; and which outputs have one.

    forced_outputs: which tangents are written out even if they are zero; none by default.
    """
    out_nonzero: list[bool] = []
    count = len(program.inputs)

    def both(*args: Value) -> list[Array]:
        nonzero_tangents = iter(args[count:])
        tangents = [next(nonzero_tangents) if n else None for n in nonzero]
        outs, out_tangents = jvp_flat(lambda *xs: eval_program(program, xs), args[:count], tangents)
        # A loop forces a carry's tangent to exist, so that every step takes and returns it.
        for i, is_forced in enumerate(forced_outputs):
            if is_forced and out_tangents[i] is None:
                out_tangents[i] = zeros_like(outs[i])
        out_nonzero.extend(t is not None for t in out_tangents)
        return [*outs, *(t for t in out_tangents if t is not None)]

    tangent_types = [v.type for v, n in zip(program.inputs, nonzero, strict=True) if n]
    joint_program = stage(both, [*program.input_types, *tangent_types], f"jvp_{program.name}")
    return joint_program.closed(), tuple(out_nonzero)


@dataclass(frozen=True, slots=True)
class SplitProgram:
    """A program split by which inputs are known.

    known:    known inputs -> known outputs, residuals that are not inputs
    unknown:  residuals, unknown inputs -> unknown outputs
    """

    known: Program
    unknown: Program
    residual_inputs: tuple[int | None, ...]  # per residual: a known input's number, or None
    known_outputs: tuple[bool, ...]


@per_program
def split_program(program: Program, unknown: tuple[bool, ...], forced_outputs: tuple[bool, ...] = ()) -> SplitProgram:
    """Partial evaluation of a program. Derivatives of elementwise functions are in the known part.

    forced_outputs: which are unknown even if they could be computed; none by default.
    """
    known_types = [v.type for v, u in zip(program.inputs, unknown, strict=True) if not u]
    # Filled by `run`, which can return only the values of the known program.
    parts: list[Any] = []

    def run(*known: Value) -> list[Array]:
        partial = Partial(current())
        known_values = iter(known)
        args = [
            new_input(partial, t) if u else next(known_values)
            for t, u in zip(program.input_types, unknown, strict=True)
        ]

        def evaluate() -> tuple[Staged, tuple[bool, ...], list[Any]]:
            outs = eval_program(program, args)
            is_forced = forced_outputs or (False,) * len(outs)
            is_known = tuple(not partial.owns(o) and not f for o, f in zip(outs, is_forced, strict=True))
            unknown_outs = [o for o, k in zip(outs, is_known, strict=True) if not k]
            known_outs = [o for o, k in zip(outs, is_known, strict=True) if k]
            return finish(partial, unknown_outs, f"{program.name}_unknown"), is_known, known_outs

        unknown_part, is_known, known_outs = partial.trace(evaluate)
        linear = linear_map(unknown_part, ())
        # An input that is a residual is not also returned: the caller of both parts has it.
        sources = tuple(_position(known, r) for r in linear.residuals)
        parts.extend((linear.program, sources, is_known))
        computed_residuals = [r for r, s in zip(linear.residuals, sources, strict=True) if s is None]
        return [*known_outs, *computed_residuals]

    known_program = stage(run, known_types, f"{program.name}_known")
    return SplitProgram(known_program.closed(), parts[0], parts[1], parts[2])


# By identity: equal values may be different inputs, and `==` is elementwise.
def _position(values: Sequence[Value], value: Value) -> int | None:
    return next((i for i, v in enumerate(values) if v is value), None)


@per_program
def transpose_program(
    program: Program, linear: tuple[bool, ...], nonzero: tuple[bool, ...], forced_inputs: tuple[bool, ...] = ()
) -> tuple[Program, tuple[bool, ...]]:
    """known inputs, nonzero output cotangents -> nonzero input cotangents; and which have one.

    forced_inputs: which cotangents of linear inputs are written out even if they are zero.
    """
    in_nonzero: list[bool] = []
    known_types = [v.type for v, lin in zip(program.inputs, linear, strict=True) if not lin]
    linear_types = [v.type for v, lin in zip(program.inputs, linear, strict=True) if lin]
    ct_types = [a.type for a, n in zip(program.outputs, nonzero, strict=True) if n]

    def run(*args: Value) -> list[Array]:
        known = dict(zip((v for v, lin in zip(program.inputs, linear, strict=True) if not lin), args, strict=False))
        out_cts = iter(args[len(known) :])
        cts = backward(program, known, [next(out_cts) if n else None for n in nonzero])
        # As in `jvp_program`: a loop's carry has a cotangent in every step or in none.
        for i, (is_forced, type) in enumerate(zip(forced_inputs, linear_types)):
            if is_forced and cts[i] is None:
                cts[i] = zeros_of(type)
        in_nonzero.extend(ct is not None for ct in cts)
        return [ct for ct in cts if ct is not None]

    transposed_program = stage(run, [*known_types, *ct_types], f"transpose_{program.name}")
    return transposed_program.closed(), tuple(in_nonzero)
