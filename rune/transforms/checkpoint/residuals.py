"""The values that reverse mode saves of a function: the type of each residual, and its source.

The function and its linear map are traced; the residuals are the values that the map captures.
Values that can be recomputed from numbers alone (zeros, positions) are not residuals.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from rune import tree
from rune.core.higher import subprograms
from rune.core.program import Equation, Literal, Program, Var
from rune.core.types import ArrayType
from rune.transforms.arguments import require_callable
from rune.transforms.checkpoint.policies import name_primitive
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.derivatives.vjp import vjp
from rune.transforms.programs.make_program import make_program

Residual = tuple[ArrayType, str]


def saved_residuals(function: Callable[..., object], *args: object, **kwargs: object) -> list[Residual]:
    """The types of the values that `vjp(function, ...)` saves, and the source of each.

    args, kwargs:  arrays, or ShapeDtypeStructs; nothing is computed
    Errors: those of `vjp`.

    >>> import rune, rune.numpy as rnp
    >>> def f(x, w):
    ...     return rnp.sin(x) * w
    >>> [text.split(" from ")[0] for type, text in rune.debug.saved_residuals(f, 1.0, rnp.ones(3))]
    ['from the argument w', 'output of sin', 'output of cos']
    """
    require_callable("saved_residuals", function)
    leaves, treedef = tree.flatten((args, kwargs))

    def residuals(*values: object) -> list[object]:
        def of_leaves(*values: object) -> object:
            positional, keywords = tree.unflatten(treedef, values)
            return function(*positional, **keywords)

        # The pullback is a tree whose leaves are the residuals.
        return tree.leaves(vjp(of_leaves, *values)[1])

    return _described(make_program(residuals)(*leaves), _names(function, args, kwargs))


def print_saved_residuals(function: Callable[..., object], *args: object, **kwargs: object) -> None:
    """Print the values that `vjp(function, ...)` saves, one per line.

    Arguments and errors: as for `saved_residuals`.

    >>> import rune, rune.numpy as rnp
    >>> def f(w, x):
    ...     return w * x
    >>> rune.debug.print_saved_residuals(f, rnp.ones(3), rnp.ones(3))
    f32[3] from the argument w
    f32[3] from the argument x
    """
    for type, text in saved_residuals(function, *args, **kwargs):
        print(f"{type} {text}")


def _described(program: Program, names: Sequence[str]) -> list[Residual]:
    """The outputs of the program: literals, constants, arguments, results, in this order."""
    outputs = {v for v in program.outputs if isinstance(v, Var)}
    literals = [(v.type, "from a literal") for v in program.outputs if isinstance(v, Literal)]
    constants = [(v.type, "from a constant") for v, _ in program.constants if v in outputs]
    inputs = zip(program.inputs, names, strict=True)
    arguments = [(v.type, f"from the argument {name}") for v, name in inputs if v in outputs]
    results = [(v.type, _source(e)) for e in program.equations for v in e.results if v in outputs]
    # The order and the words of jax.ad_checkpoint.print_saved_residuals.
    return [*literals, *constants, *arguments, *results]


def _source(equation: Equation) -> str:
    place = f" from {equation.frame.short} ({equation.frame.function})" if equation.frame else ""
    if equation.primitive is name_primitive:
        return f"named {equation.params['name']!r}{place}"
    if equation.primitive is jit_primitive:
        # Derivatives add words to the name of the user's function.
        name = subprograms(equation)[0].name.removeprefix("jvp_").removesuffix("_known")
        return f"output of jitted function {name!r}{place}"
    return f"output of {equation.primitive.name}{place}"


def _names(function: Callable[..., object], args: Sequence[object], kwargs: dict[str, object]) -> list[str]:
    """Each leaf by the name of its parameter, and its path in it: `params['w']`."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # a builtin without a signature
        paths = (path for path, _ in tree.leaves_with_path((args, kwargs)))
        return [f"at {tree.keystr(path[1:])}" for path in paths]
    # Keyword arguments are bound in the order of the call, but listed in that of the parameters.
    parameters = list(inspect.signature(function).parameters)
    by_name: dict[str, list[str]] = {}
    for name, value in bound.arguments.items():
        by_name[name] = [f"{name}{tree.keystr(path)}" for path, _ in tree.leaves_with_path(value)]
    return [text for name in parameters if name in by_name for text in by_name[name]]
