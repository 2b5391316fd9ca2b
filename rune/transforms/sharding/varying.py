"""Along which axes of a mesh the results of a body surely differ between devices.

An input varies along the axes that cut it, and what is computed from it does, until a collective
makes it the same along an axis. What comes out of a loop or a branch is not followed: nothing is
said of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rune.core.axes import Name
from rune.core.higher import HigherOrder, equation_program
from rune.core.primitive import Collective
from rune.core.program import Atom, Equation, Program, Var
from rune.errors import Frame
from rune.ops.collectives import pmax, pmin, psum

Axes = frozenset[Name]
NONE: Axes = frozenset()
UNITING = (psum, pmax, pmin)  # afterwards all devices of the axis have the same


class Variation(NamedTuple):
    """The axes along which a value varies, and the user's line that made it."""

    axes: Axes
    frame: Frame | None


def variations(program: Program, inputs: Sequence[Axes]) -> list[Variation]:
    """For each result the axes along which it surely varies."""
    known = {v: Variation(axes, None) for v, axes in zip(program.inputs, inputs, strict=True)}

    def of(atom: Atom) -> Variation:
        return known.get(atom, Variation(NONE, None)) if isinstance(atom, Var) else Variation(NONE, None)

    for equation in program.equations:
        axes = [of(a).axes for a in equation.operands]
        for var, result in zip(equation.results, _results(equation, axes), strict=True):
            known[var] = Variation(result, equation.frame)
    return [of(a) for a in program.outputs]


def _results(equation: Equation, operands: Sequence[Axes]) -> list[Axes]:
    """The axes along which the results vary."""
    primitive, union = equation.primitive, NONE.union(*operands)
    if isinstance(primitive, Collective):
        name = equation.params["axis_name"]
        return [union - {name} if primitive in UNITING else union | {name}]
    program = equation_program(equation)
    if program is not None:
        return [v.axes for v in variations(program, operands)]
    return [NONE if isinstance(primitive, HigherOrder) else union] * len(equation.results)
