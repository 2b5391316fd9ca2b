"""Programs to look at or to evaluate, made of a function or of a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rune import ops, tree
from rune.core.interpreter import Tracer, type_of
from rune.core.parse import parse
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.transforms.arguments import function_name, require_callable, value_leaves
from rune.transforms.jit_primitive import jit_primitive
from rune.transforms.tracers import stage_function

PRIMITIVES: dict[str, Primitive] = {**ops.BY_NAME, jit_primitive.name: jit_primitive}


def make_program(function: Callable[..., Any]) -> Callable[..., Program]:
    """A function from arguments (arrays or ArrayTypes) to the program of `function`.

    Closed-over arrays are its explicit constants. JAX calls this make_jaxpr.

    >>> import rune, rune.numpy as rnp
    >>> print(rune.make_program(lambda x: rnp.sin(x) * 2.0)(rnp.ones(3)))
    program lambda(%0: f32[3]) {
      %1: f32[3] = sin %0
      %2: f32[3] = mul %1, 2.0: f32[]
      return %2
    }
    """
    require_callable("make_program", function)

    def make(*args: Any, **kwargs: Any) -> Program:
        leaves, treedef = tree.flatten((args, kwargs), is_leaf=_is_type)
        given = [x if _is_type(x) else value_leaves("make_program", [x], None)[0] for x in leaves]
        types = [x if isinstance(x, ArrayType) else type_of(x) for x in given]

        def flat(*values: Any) -> list[Any]:
            a, k = tree.unflatten(treedef, values)
            outs, out_tree = tree.flatten(function(*a, **k))
            return value_leaves("make_program", outs, out_tree)

        staged = stage_function(flat, types, function_name(function))
        if any(isinstance(v, Tracer) for v in staged.captured):
            raise TransformError("make_program: cannot close over a value of another trace")
        count = len(staged.captured)
        constants = tuple(zip(staged.program.inputs[:count], staged.captured, strict=True))
        return replace(staged.program, inputs=staged.own_inputs, constants=constants)

    return make


def _is_type(value: Any) -> bool:
    return isinstance(value, ArrayType)


def parse_program(text: str) -> Program:
    """The program that `text` prints; every primitive of rune may stand in it.

    Errors: CheckError "parse: cannot read <what> (<why>)" with the line and its number.

    >>> print(parse_program("program f(%0: f32[n]) where n in 1..9 { return %0 }"))
    program f(%0: f32[n]) where n in 1..9 {
      return %0
    }
    """
    return parse(text, PRIMITIVES, {"IndexDims": ops.IndexDims})
