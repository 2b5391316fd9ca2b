"""Split a program for a checkpoint: one part runs and saves values, the other runs again.

Before   x -> y:  a = sin x;  b = cos a;  y = exp b        where a is to be saved
Forward  x -> y, a:  a = sin x;  b = cos a;  y = exp b
Again    x, a -> y:  b = cos a;  y = exp b

The rule `keeping` of an equation that holds programs says how those are split in turn: values saved
in the body of a scan are stacked over the steps. Without the rule an equation is saved or
recomputed as a whole. Unused results are left to dead-code elimination, on either side.

Invariant: results of side effects, which must not happen twice, are always saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rune.core.evaluate import eval_program, restaged
from rune.core.higher import HigherOrder, called_once
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var
from rune.core.staging import Stage
from rune.core.values import Value
from rune.records import dataclass
from rune.transforms.compile.jit_primitive import jit_primitive

Keeps = Callable[[Equation], bool]


@dataclass(frozen=True, slots=True)
class Replay:
    """A split equation: `forward` also yields the saved values, and `recomputation` reads them.

    `recomputation` does not compute results that are saved; it is None if all are.
    """

    forward: Equation
    recomputation: Equation | None
    saved_values: tuple[Var, ...]


def split_kept(program: Program, keeps: Keeps) -> tuple[Program, Program, tuple[Var, ...]]:
    """inputs -> outputs, saved;   inputs, saved -> outputs;   and the saved variables."""
    flat = inlined(program)
    forward: list[Equation] = []
    recomputation: list[Equation] = []
    saved_values: list[Var] = []
    for equation in flat.equations:
        primitive = equation.primitive
        rule = primitive.keeping if isinstance(primitive, HigherOrder) else None
        if rule is None and keeps(equation):
            forward.append(equation)
            saved_values += equation.results
        # The rule returns None if nothing inside is saved: then the whole equation is recomputed.
        elif rule is not None and (replay := rule(equation, keeps)) is not None:
            forward.append(replay.forward)
            recomputation += [replay.recomputation] if replay.recomputation else []
            saved_values += replay.saved_values
        else:
            forward.append(equation)
            recomputation.append(equation)
    # The second part contains all unsaved equations, needed or not: which are needed depends on the
    # residuals, and dead-code elimination finds out.
    first = flat.with_equations(forward, (*flat.outputs, *saved_values))
    second = replace(flat, inputs=(*flat.inputs, *saved_values), equations=tuple(recomputation))
    return first, second, tuple(saved_values)


# --- jitted functions -------------------------------------------------------------------------


class _Inline(Stage):
    """Inlines the equations of jitted functions, so that a policy sees them."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, Any]) -> Any:
        """Write, or inline."""
        inner_program = called_once(primitive, args, params)
        # A call with its own device is not inlined: its operations would run elsewhere.
        if inner_program is not None and primitive is jit_primitive and "device" not in params:
            return eval_program(inner_program, args)
        return self.write(primitive, args, params)


@per_program
def _inlined(program: Program) -> Program:
    return restaged(program, _Inline(None))


def inlined(program: Program) -> Program:
    """The program with calls of jitted functions inlined."""
    has_calls = any(e.primitive is jit_primitive for e in program.equations)
    return _inlined(program) if has_calls else program
