"""linearize: forward mode, partially evaluated. Primals are computed; tangents are written down.

`Partial` computes every operation on known values in its parent and stages the rest. Under a
`Jvp` whose tangents are unknown, what it stages is the linear map from tangents to tangents; the
known values that the map reads are its residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rune.core.dead_code import live_equations
from rune.core.evaluate import eval_program
from rune.core.higher import HigherOrder
from rune.core.interpreter import Interpreter, current, type_of, use
from rune.core.lists import Flags, nonzero_flags, nonzeros, scatter
from rune.core.primitive import Primitive
from rune.core.program import Program, Var
from rune.core.staging import Stage, Staged, finish, new_input
from rune.core.values import Value
from rune.records import dataclass
from rune.transforms.derivatives.jvp import jvp_flat

# A value computed from numbers alone by at most this many steps of these families is recomputed in
# the linear program, which costs less than storing it.
DEPTH = 8
CHEAP = frozenset({"creation", "movement", "comparison", "selection", "conversion", "bits"})


@dataclass(slots=True)
class Constant:
    """A known value computed from numbers alone: zeros, positions, a constant mask."""

    value: Value
    primitive: Primitive
    args: Sequence[Value]
    params: Mapping[str, object]
    depth: int
    variable: Var | None = None  # its variable in the linear program, once that computes it


class Partial(Stage):
    """Known values are computed in the parent; operations on unknown values are written down.

    A known value computed from numbers alone is not a residual: if it is combined with an unknown
    value, its steps are written down too.
    """

    __slots__ = ("constants",)

    def __init__(self, parent: Interpreter | None):
        super().__init__(parent)
        self.constants: dict[int, Constant] = {}  # by id of the value, which each entry keeps alive

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """Compute, write, or split an equation that holds a program."""
        parent = self.parent
        assert parent is not None
        unknown = [self.owns(a) for a in args]
        if not any(unknown):
            out = parent.process(primitive, args, params)
            depth = self._depth(primitive, args)
            if depth is not None and id(out) not in self.constants:  # a step may return its argument
                self.constants[id(out)] = Constant(out, primitive, args, params, depth)
            return out
        split = primitive.partial_equation if isinstance(primitive, HigherOrder) else None
        if split is not None and not all(unknown):
            with use(parent):
                return split(self, args, unknown, params)
        return self.write(primitive, args, params)

    def _depth(self, primitive: Primitive, args: Sequence[Value]) -> int | None:
        """The number of cheap steps from numbers to a value; None for other values."""
        if primitive.family not in CHEAP or primitive.multiple_results:
            return None
        # Any other argument counts as DEPTH, which one more step exceeds.
        constants = self.constants
        below = [0 if _is_number(a) else constants[id(a)].depth if id(a) in constants else DEPTH for a in args]
        depth = 1 + max(below, default=0)
        return depth if depth <= DEPTH else None

    def _capture(self, value: Value) -> Var:
        constant = self.constants.get(id(value))
        if constant is None:
            return super()._capture(value)
        var = constant.variable or self.write(constant.primitive, constant.args, constant.params).variable
        constant.variable = var
        return var


def _is_number(value: Value) -> bool:
    known = isinstance(value, np.ndarray | np.generic | bool | int | float | complex)
    return known and not np.ndim(value)


@dataclass(frozen=True, slots=True)
class LinearMap:
    """A linear program with its residuals: tangents (one per input) -> tangents."""

    program: Program
    residuals: tuple[Any, ...]
    nonzero: Flags  # which outputs depend on the inputs at all

    def __call__(self, tangents: Sequence[Value]) -> list[Value | None]:
        """Output tangents, None for those that are zero."""
        return scatter(eval_program(self.program, [*self.residuals, *tangents]), self.nonzero)


def linearize_flat(
    function: Callable[..., Sequence[Value]], primals: Sequence[Value], active: Sequence[bool]
) -> tuple[list[Value], LinearMap]:
    """Outputs, and the linear map from the tangents of the active arguments."""
    # Jvp runs inside Partial: rules on known primals are computed, those on tangents written down.
    partial = Partial(current())
    tangents = [new_input(partial, type_of(p)) if a else None for p, a in zip(primals, active, strict=True)]

    def run() -> tuple[list[Value], Staged, Flags]:
        outs, out_tangents = jvp_flat(function, primals, tangents)
        return outs, finish(partial, nonzeros(out_tangents), "linear"), nonzero_flags(out_tangents)

    outs, linear_part, nonzero = partial.trace(run)
    return outs, linear_map(linear_part, nonzero)


def linear_map(linear_part: Staged, nonzero: Flags) -> LinearMap:
    """The staged equations that outputs depend on, and the captured values that these read."""
    program = linear_part.program
    equations, live = live_equations(program.equations, program.outputs)
    residuals = {v: x for v, x in zip(program.inputs, linear_part.captured, strict=False) if v in live}
    # The tangent inputs stay, used or not: the caller passes them all.
    inputs = (*residuals, *linear_part.own_inputs)
    linear_program = Program(inputs, equations, program.outputs, name=program.name)
    return LinearMap(linear_program, tuple(residuals.values()), nonzero)
