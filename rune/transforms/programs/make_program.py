"""Programs to inspect or to evaluate, from a function or from text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rune import ops, tree
from rune.core.interpreter import Tracer
from rune.core.parse import parse
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.values import Value
from rune.errors import TransformError
from rune.transforms.arguments import function_name, require_callable, value_leaves
from rune.transforms.eval_shape import leaf_types
from rune.transforms.programs.text import PRIMITIVES as OWN
from rune.transforms.programs.text import RECORDS as OWN_RECORDS

# Primitives that programs print; rune.control adds those of control flow.
PRIMITIVES: Mapping[str, Primitive] = {**ops.BY_NAME, **{p.name: p for p in (*ops.COLLECTIVES, *OWN)}}
RECORDS: Mapping[str, type] = {r.__name__: r for r in (ops.IndexDims, *OWN_RECORDS)}


def make_program(function: Callable[..., object]) -> Callable[..., Program]:
    """A function from arguments to the program of `function`. JAX calls this make_jaxpr.

    Arguments are arrays, numbers, ShapeDtypeStructs or ArrayTypes. Closed-over arrays are the
    program's explicit constants.
    Errors: ArgumentError if an argument is not an array; TransformError if `function` is not a
            function.

    >>> import rune, rune.numpy as rnp
    >>> print(rune.make_program(lambda x: rnp.sin(x) * 2.0)(rnp.ones(3)))
    program lambda(%0: f32[3]) {
      %1: f32[3] = sin %0
      %2: f32[3] = mul %1, 2.0: f32[]
      return %2
    }
    """
    require_callable("make_program", function)

    def make(*args: object, **kwargs: object) -> Program:
        leaves, treedef = tree.flatten((args, kwargs))
        types = leaf_types("make_program", leaves, treedef)

        def flat(*values: Value) -> list[Value]:
            a, k = tree.unflatten(treedef, values)
            outs, out_tree = tree.flatten(function(*a, **k))
            return value_leaves("make_program", outs, out_tree)

        staged = stage(flat, types, function_name(function))
        # It would be a constant, but has no value outside its trace.
        if any(isinstance(v, Tracer) for v in staged.captured):
            raise TransformError("make_program: cannot close over a value of another trace")
        return staged.closed()

    return make


def parse_program(
    text: str,
    primitives: Mapping[str, Primitive] = PRIMITIVES,
    records: Mapping[str, type] = RECORDS,
    functions: Mapping[str, Callable[..., object]] | None = None,
) -> Program:
    """The program whose text this is, made of these primitives.

    functions:  the Python functions that the text only names: "<rule of f>". One that is missing
                prints, but cannot be called: the program runs as long as nothing calls it.
    `rune.control.parse_program` also knows the primitives of control flow.
    Errors: CheckError "parse: cannot read <what> (<why>)" with the line and its number.

    >>> print(parse_program("program f(%0: f32[n]) where n in 1..9 { return %0 }"))
    program f(%0: f32[n]) where n in 1..9 {
      return %0
    }
    """
    return parse(text, primitives, records, functions)
