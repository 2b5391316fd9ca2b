"""Decompose: inline nested programs, expand primitives, turn control flow into loops and branches.

Before   %1 = integer_pow %0 {exponent=2}          After   %1 = mul %0, %0
Invariant: only primitives with a `lower` remain, and loops and branches (loops.py) over programs
of those, so everything later sees these alone.
Cost:      linear in the number of equations after expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rune.core.evaluate import eval_program
from rune.core.interpreter import running
from rune.core.lower import Control, Host
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.errors import MissingRule
from rune.lowering.host_calls import host_call, write_host_call
from rune.lowering.loops import branch, loop, write_control

KEPT = (loop, branch, host_call)  # several results, and no record of a lowering


class _Decompose(Stage):
    """Writes only primitives that lower directly."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Write, expand, or inline."""
        if isinstance(primitive.lower, Control):
            return write_control(primitive.lower, _restage, args, params)
        if isinstance(primitive.lower, Host):
            return write_host_call(args, **params)
        if primitive.lower is not None or primitive in KEPT:
            return self.write(primitive, args, params)
        if primitive.expand is not None:
            return primitive.expand(*args, **params)
        if primitive.multiple_results and isinstance(params.get("program"), Program):
            return eval_program(params["program"], args)
        raise MissingRule(f"lower: cannot compile {primitive} (it has no lowering)")


def decompose(program: Program) -> Program:
    """The program in primitives that lower directly."""
    return _restage(lambda *xs: eval_program(program, xs), program.input_types, program.name)


def _restage(
    function: Callable[..., Sequence[Any]], types: Sequence[ArrayType], name: str
) -> Program:
    stage = _Decompose(None)
    inputs = [stage.new_input(t) for t in types]
    with running(stage):
        staged = stage.program(function(*inputs), name)
    assert not staged.captured
    return staged.program
