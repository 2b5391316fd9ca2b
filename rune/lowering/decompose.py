"""Decompose: inline nested programs and replace every primitive that has an expansion.

Before   %1 = integer_pow %0 {exponent=2}          After   %1 = mul %0, %0
Invariant: only primitives with a `lower` remain, so everything later sees those alone.
Cost:      linear in the number of equations after expansion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rune.core.evaluate import eval_program
from rune.core.interpreter import running
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.staging import Stage
from rune.errors import MissingRule


class _Decompose(Stage):
    """Writes only primitives that lower directly."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Write, expand, or inline."""
        if primitive.lower is not None:
            return self.write(primitive, args, params)
        if primitive.expand is not None:
            return primitive.expand(*args, **params)
        if primitive.multiple_results and isinstance(params.get("program"), Program):
            return eval_program(params["program"], args)
        raise MissingRule(f"lower: cannot compile {primitive} (it has no lowering)")


def decompose(program: Program) -> Program:
    """The program in primitives that lower directly."""
    stage = _Decompose(None)
    inputs = [stage.new_input(t) for t in program.input_types]
    with running(stage):
        outputs = eval_program(program, inputs)
        staged = stage.program(outputs, program.name)
    assert not staged.captured
    return staged.program
