"""What a checkpoint keeps: a program split into one that runs and keeps, and one that runs again.

Before   x -> y:  a = sin x;  b = cos a;  y = exp b        and a is to be kept
Forward  x -> y, a:  a = sin x;  b = cos a;  y = exp b
Again    x, a -> y:  b = cos a;  y = exp b

An equation that holds programs says by its rule `keeping` how they are split in their turn: what
is kept in the body of a scan is stacked over the steps. One without the rule is kept or computed
again as a whole. What nothing reads is left to dead-code elimination, on either side.

Invariant: what must not happen twice, a side effect, is among what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rune.core.evaluate import eval_program, restaged
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var
from rune.core.staging import Stage
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.programs.memo import per_program

Keeps = Callable[[Equation], bool]


@dataclass(frozen=True, slots=True)
class Replay:
    """An equation split: `forward` also yields `kept`, from which `again` yields its results.

    Results that are kept themselves are not among those of `again`; it is None where all are.
    """

    forward: Equation
    again: Equation | None
    kept: tuple[Var, ...]


def split_kept(program: Program, keeps: Keeps) -> tuple[Program, Program, tuple[Var, ...]]:
    """inputs -> outputs, kept;   inputs, kept -> outputs;   and the kept variables."""
    whole = inlined(program)
    forward: list[Equation] = []
    again: list[Equation] = []
    kept: list[Var] = []
    for equation in whole.equations:
        rule = equation.primitive.keeping
        if rule is None and keeps(equation):
            forward.append(equation)
            kept += equation.results
        elif rule is not None and (made := rule(equation, keeps)) is not None:
            forward.append(made.forward)
            again += [made.again] if made.again else []
            kept += made.kept
        else:
            forward.append(equation)
            again.append(equation)
    first = whole.with_equations(forward, (*whole.outputs, *kept))
    second = replace(whole, inputs=(*whole.inputs, *kept), equations=tuple(again))
    return first, second, tuple(kept)


# --- jitted functions -------------------------------------------------------------------------


class _Inline(Stage):
    """Writes the equations of jitted functions in their place, so that a policy sees them."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: Any) -> Any:
        """Write, or inline."""
        if primitive is jit_primitive and "device" not in params:
            return eval_program(params["program"], args)
        return self.write(primitive, args, params)


@per_program
def _inlined(program: Program) -> Program:
    return restaged(program, _Inline(None))


def inlined(program: Program) -> Program:
    """The program with the equations of jitted functions in place of their calls."""
    held = any(e.primitive is jit_primitive for e in program.equations)
    return _inlined(program) if held else program
