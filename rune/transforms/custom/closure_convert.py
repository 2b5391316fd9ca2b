"""closure_convert: the values that a function closes over, as explicit arguments.

A rule must not close over values that are being differentiated; it can take them as arguments
instead, and `closure_convert` finds them by tracing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rune import tree
from rune.array import as_array
from rune.core.evaluate import eval_program
from rune.core.interpreter import Tracer, is_differentiable
from rune.core.lists import merge, omit, pick
from rune.core.program import Atom, Literal
from rune.core.staging import stage
from rune.core.values import Value
from rune.errors import TransformError
from rune.transforms.arguments import function_name
from rune.transforms.derivatives.flat_functions import flatten
from rune.transforms.eval_shape import leaf_types
from rune.transforms.tree_difference import mismatch
from rune.tree import TreeDef

# A function of the arguments and the values, and the values.
Converted = tuple[Callable[..., Any], list[Any]]


def closure_convert(fun: Callable[..., object], *example_args: object) -> Converted:
    """(`converted`, values): `converted(*args, *values)` is `fun(*args)`.

    The values are those that `fun` closes over and that can be differentiated: traced values
    of a floating or complex dtype. The arguments must be like the examples in tree, shape and
    dtype.

    Errors: TransformError if the arguments have another tree than the examples.

    >>> import rune
    >>> def slope(scale):
    ...     converted, hidden = rune.closure_convert(lambda x: x * scale, 1.0)
    ...     return converted(2.0, *hidden)
    >>> rune.grad(slope)(3.0)
    Array(2., f32*[], cpu:0)
    """
    return _converted(fun, example_args, _is_hidden)


def capture_convert(fun: Callable[..., object], *example_args: object) -> Converted:
    """`closure_convert` whose values are all traced ones that `fun` closes over, integers too.

    It is for the functions of a rule: a program with that rule may be differentiated after its
    trace has ended, when no value of the trace can be read.
    """
    return _converted(fun, example_args, lambda value: isinstance(value, Tracer))


def _converted(
    fun: Callable[..., object], example_args: tuple[object, ...], is_hidden: Callable[[object], bool]
) -> Converted:
    leaves, flat = flatten("closure_convert", fun, example_args)
    types = leaf_types("closure_convert", leaves, flat.treedef)
    # Tracing on types alone finds what the function closes over: these values are captured.
    closure = stage(flat, types, function_name(fun))
    treedef, out_tree, program = flat.treedef, flat.out_tree, closure.program
    is_argument = [is_hidden(v) for v in closure.captured]
    # All other captures, concrete arrays among them, remain constants of the function.
    constants = omit(closure.captured, is_argument)

    def converted(*args: object) -> Any:
        count = len(args) - sum(is_argument)
        arg_leaves, arg_tree = tree.flatten(tuple(args[:count]))
        if arg_tree != treedef:
            raise TransformError(
                f"closure_convert: cannot match arguments to the examples ({_difference(treedef, arg_tree)})"
            )
        captured_values = merge(is_argument, args[count:], constants)
        results = eval_program(program, [*captured_values, *arg_leaves])
        return tree.unflatten(out_tree, map(_result, program.outputs, results))

    return converted, pick(closure.captured, is_argument)


def _result(atom: Atom, value: Value) -> Value:
    """A result; a constant keeps its dtype, where NumPy data would arrive with 32 bits."""
    return as_array(value, atom.type.dtype, atom.type.weak) if isinstance(atom, Literal) else value


def _difference(expected_tree: TreeDef, actual: TreeDef) -> str:
    return mismatch(
        expected_tree,
        actual,
        "argument{} is missing".format,
        "the examples have no argument{}".format,
        "{} required, not {}",
    )


def _is_hidden(value: object) -> bool:
    return isinstance(value, Tracer) and is_differentiable(value)
