"""linearize: forward mode, partly evaluated. The primal is computed; the tangent is written down.

`Partial` computes every operation on known values in its parent and stages the rest. Under a
`Jvp` whose tangents are unknown, what it stages is the linear map from tangents to tangents; the
known values that the map reads are its residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rune.core.dead_code import prune
from rune.core.evaluate import eval_program
from rune.core.interpreter import Interpreter, current, type_of, use
from rune.core.primitive import Primitive
from rune.core.program import Program, Var
from rune.core.staging import Stage, Staged, stage
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.programs.memo import per_program

# A value made by at most so many steps of these families from numbers alone is made again in the
# linear program, at less cost than it takes to keep it.
DEPTH = 8
CHEAP = frozenset({"creation", "movement", "comparison", "selection", "conversion", "bits"})


@dataclass(slots=True)
class Spread:
    """A known value made from numbers alone: zeros, positions, a constant mask."""

    value: Any
    primitive: Primitive
    args: Sequence[Any]
    params: Mapping[str, Any]
    depth: int
    written: Var | None = None  # where the linear program has made it again


class Partial(Stage):
    """Known values are computed in the parent; operations on unknown ones are written down.

    A known value that is made from numbers alone is no residual: where an unknown one meets it, it
    is written down again.
    """

    __slots__ = ("spread",)

    def __init__(self, parent: Interpreter | None):
        super().__init__(parent)
        self.spread: dict[int, Spread] = {}  # by id of the value, which each entry keeps

    def process(self, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Compute, write, or split an equation that holds a program."""
        parent = self.parent
        assert parent is not None
        unknown = [self.owns(a) for a in args]
        if not any(unknown):
            out = parent.process(primitive, args, params)
            depth = self._depth(primitive, args)
            if depth is not None and id(out) not in self.spread:  # a step may give its argument
                self.spread[id(out)] = Spread(out, primitive, args, params, depth)
            return out
        if primitive.partial_equation is not None and not all(unknown):
            with use(parent):
                return primitive.partial_equation(self, args, unknown, params)
        return self.write(primitive, args, params)

    def _depth(self, primitive: Primitive, args: Sequence[Any]) -> int | None:
        """How many cheap steps lie behind a value made from numbers; None for any other."""
        if primitive.family not in CHEAP or primitive.multiple_results:
            return None
        below = [0 if _is_number(a) else self.spread[id(a)].depth if id(a) in self.spread else DEPTH
                 for a in args]  # fmt: skip
        depth = 1 + max(below, default=0)
        return depth if depth <= DEPTH else None

    def _capture(self, value: Any) -> Var:
        spread = self.spread.get(id(value))
        if spread is None:
            return super()._capture(value)
        var = spread.written or self.write(spread.primitive, spread.args, spread.params).variable
        spread.written = var
        return var


def _is_number(value: Any) -> bool:
    known = isinstance(value, np.ndarray | np.generic | bool | int | float | complex)
    return known and not np.ndim(value)


@dataclass(frozen=True, slots=True)
class LinearMap:
    """A linear program with its residuals: tangents (one per input) -> tangents."""

    program: Program
    residuals: tuple[Any, ...]
    nonzero: tuple[bool, ...]  # which outputs depend on the inputs at all

    def __call__(self, tangents: Sequence[Any]) -> list[Any]:
        """Output tangents, None for those that are zero."""
        out_tangents = iter(eval_program(self.program, [*self.residuals, *tangents]))
        return [next(out_tangents) if n else None for n in self.nonzero]


def linearize_flat(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], active: Sequence[bool]
) -> tuple[list[Any], LinearMap]:
    """Outputs, and the linear map from the tangents of the active arguments."""
    partial = Partial(current())
    tangents = [
        partial.new_input(type_of(p)) if a else None for p, a in zip(primals, active, strict=True)
    ]

    def run() -> tuple[list[Any], Staged, tuple[bool, ...]]:
        outs, out_tangents = jvp_flat(function, primals, tangents)
        staged = partial.program([t for t in out_tangents if t is not None], "linear")
        return outs, staged, tuple(t is not None for t in out_tangents)

    outs, staged, nonzero = partial.trace(run)
    return outs, _pruned(staged.program, staged.captured, nonzero)


def _pruned(program: Program, residuals: Sequence[Any], nonzero: tuple[bool, ...]) -> LinearMap:
    smaller, live_inputs = prune(program, [True] * len(program.outputs))
    count = len(residuals)
    read = [r for r, k in zip(residuals, live_inputs[:count], strict=True) if k]
    # The tangent inputs stay, used or not: the caller passes them all.
    inputs = [v for v, k in zip(program.inputs[:count], live_inputs[:count], strict=True) if k]
    linear_program = Program(
        (*inputs, *program.inputs[count:]), smaller.equations, smaller.outputs, name=program.name
    )
    return LinearMap(linear_program, tuple(read), nonzero)


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
def split_program(
    program: Program, unknown: tuple[bool, ...], forced: tuple[bool, ...] = ()
) -> SplitProgram:
    """Partial evaluation of a program. Elementwise derivatives land on the known side.

    forced: which outputs are unknown even where they could be computed; none by default.
    """
    known_types = [v.type for v, u in zip(program.inputs, unknown, strict=True) if not u]
    parts: list[Any] = []

    def run(*known: Any) -> list[Any]:
        partial = Partial(current())
        known_values = iter(known)
        args = [
            partial.new_input(v.type) if u else next(known_values)
            for v, u in zip(program.inputs, unknown, strict=True)
        ]

        def evaluate() -> tuple[Staged, tuple[bool, ...], list[Any]]:
            outs = eval_program(program, args)
            free = forced or (False,) * len(outs)
            is_known = tuple(not partial.owns(o) and not f for o, f in zip(outs, free, strict=True))
            unknown_outs = [o for o, k in zip(outs, is_known, strict=True) if not k]
            known_outs = [o for o, k in zip(outs, is_known, strict=True) if k]
            return partial.program(unknown_outs, f"{program.name}_unknown"), is_known, known_outs

        staged, is_known, known_outs = partial.trace(evaluate)
        linear = _pruned(staged.program, staged.captured, ())
        sources = tuple(_position(known, r) for r in linear.residuals)
        parts.extend((linear.program, sources, is_known))
        computed = [r for r, s in zip(linear.residuals, sources, strict=True) if s is None]
        return [*known_outs, *computed]

    staged = stage(run, known_types, f"{program.name}_known")
    return SplitProgram(staged.closed(), parts[0], parts[1], parts[2])


def _position(values: Sequence[Any], value: Any) -> int | None:
    return next((i for i, v in enumerate(values) if v is value), None)
