"""Closed and open programs applied to users' values: JAX's eval_jaxpr and jaxpr_as_fun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import tree
from rune.core.program import OpenProgram, Program
from rune.errors import ArgumentError
from rune.transforms.arguments import as_value, value_leaves
from rune.transforms.programs import call_rules


def eval_jaxpr(
    jaxpr: OpenProgram | Program, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """The outputs of an open program for these constants and arguments, in the current context.

    propagate_source_info: errors name the lines that the program came from, always.
    Errors: ArgumentError if it is not a program, for the wrong number of constants or arguments, or
            if an argument is not an array.

    >>> import rune, rune.numpy as rnp
    >>> program = rune.make_jaxpr(lambda x: x * rnp.arange(2.0))(3.0)
    >>> rune.eval_jaxpr(program.jaxpr, program.consts, 5.0)
    [Array([0., 5.], f32[2], cpu:0)]
    """
    if not isinstance(jaxpr, OpenProgram | Program):
        raise ArgumentError(f"eval_jaxpr: cannot evaluate {type(jaxpr).__name__} (a program required)")
    # A closed program is opened if constants are passed for it; otherwise it has those it holds.
    if isinstance(jaxpr, Program):
        jaxpr = jaxpr.jaxpr if consts or not jaxpr.constants else OpenProgram(jaxpr, 0)
    if len(consts) != jaxpr.count or len(args) != len(jaxpr.inputs):
        raise ArgumentError(
            f"eval_jaxpr: cannot evaluate {jaxpr.body.name} ({len(consts)} constants and {len(args)} arguments for "
            f"{jaxpr.count} and {len(jaxpr.inputs)})"
        )
    values = value_leaves("eval_jaxpr", args, tree.structure((args, {})))
    return call_rules.evaluated(jaxpr.body, [*consts, *map(as_value, values)])


def jaxpr_as_fun(program: Program) -> Callable[..., list[Any]]:
    """The program as a function from its inputs to the list of its outputs.

    Errors: as eval_jaxpr.

    >>> import rune
    >>> rune.jaxpr_as_fun(rune.make_jaxpr(lambda x: (x, x + 1.0))(1.0))(2.0)
    [Array(2., f32*[], cpu:0), Array(3., f32*[], cpu:0)]
    """

    def run(*args: object) -> list[Any]:
        return eval_jaxpr(program.jaxpr, program.consts, *args)

    return run
