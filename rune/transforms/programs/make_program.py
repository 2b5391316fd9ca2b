"""Programs to inspect or evaluate, from a function or from text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, overload
from typing import Literal as L

from rune import ops, tree
from rune.core.interpreter import Axis, Interpreter, current
from rune.core.parse import parse
from rune.core.primitive import Primitive
from rune.core.program import OpenProgram, Program
from rune.core.staging import Stage, trace_program
from rune.core.values import Value
from rune.transforms import references
from rune.transforms.arguments import function_name, require_callable, value_leaves
from rune.transforms.compile.static_arguments import Marked, as_set, with_statics
from rune.transforms.eval_shape import abstract, leaf_types
from rune.transforms.programs.text import PRIMITIVES as OWN
from rune.transforms.programs.text import RECORDS as OWN_RECORDS

Numbers = int | Iterable[int]
AxisSizes = Iterable[tuple[Hashable, int]] | None

# Primitives that programs print; rune.control adds those of control flow.
PRIMITIVES: Mapping[str, Primitive] = {**ops.BY_NAME, **{p.name: p for p in (*ops.COLLECTIVES, *OWN)}}
RECORDS: Mapping[str, type] = {r.__name__: r for r in (ops.IndexDims, *OWN_RECORDS)}


@overload
def make_program(
    function: Callable[..., object],
    static_argnums: Numbers = ...,
    axis_env: AxisSizes = ...,
    return_shape: L[False] = ...,
) -> Callable[..., Program]: ...
@overload
def make_program(
    function: Callable[..., object], static_argnums: Numbers = ..., axis_env: AxisSizes = ..., *, return_shape: L[True]
) -> Callable[..., tuple[Program, Any]]: ...
def make_program(
    function: Callable[..., object],
    static_argnums: Numbers = (),
    axis_env: AxisSizes = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function from arguments to the program of `function`. JAX calls this make_jaxpr.

    Arguments are arrays, numbers, ShapeDtypeStructs or ArrayTypes. Closed-over values are the
    program's explicit constants; traced ones among them belong to the enclosing transformation. The
    value of a reference is an input, and if the function writes it, its last value is an output.

    static_argnums: positional arguments that are Python values, by number from either end.
    axis_env:       names and sizes of axes that collectives in `function` may mention.
    return_shape:   return (program, tree of the results as ShapeDtypeStructs).
    Errors: ArgumentError if an argument is not an array; TransformError if `function` cannot be
            called.

    >>> import rune, rune.numpy as rnp
    >>> print(rune.make_program(lambda x: rnp.sin(x) * 2.0)(rnp.ones(3)))
    program lambda(%0: f32[3]) {
      %1: f32[3] = sin %0
      %2: f32[3] = mul %1, 2.0: f32[]
      return %2
    }
    >>> row = rune.make_jaxpr(lambda x, n: x * rnp.ones(n), static_argnums=1, return_shape=True)
    >>> row(2.0, 3)[1]
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    return program_maker(Stage, function, static_argnums, axis_env, return_shape)


def program_maker(
    kind: type[Stage],
    function: Callable[..., object],
    static_argnums: Numbers = (),
    axis_env: AxisSizes = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """As `make_program`, by stages of this kind."""
    require_callable("make_program", function)
    static = as_set(static_argnums, None)
    axes = {name: Axis(size) for name, size in axis_env or ()}

    def make(*args: object, **kwargs: object) -> Any:
        dynamic, statics = Marked(function, static, frozenset()).split(args, kwargs)
        leaves, treedef = tree.flatten(references.boxed("make_program", dynamic)[0])
        types = leaf_types("make_program", leaves, treedef)
        out_trees: list[tree.TreeDef] = []

        def flat(*values: Value) -> list[Value]:
            arguments, refs = references.unboxed(tree.unflatten(treedef, values))
            first_values = [ref.value for ref in refs]
            a, k = with_statics(arguments, statics)
            outs, out_tree = tree.flatten(function(*a, **k))
            # Only references that the function has written are outputs, after the results.
            out_trees.append(out_tree)
            last_values = (ref.value for ref, value in zip(refs, first_values, strict=True) if ref.value is not value)
            return [*value_leaves("make_program", outs, out_tree), *last_values]

        # The axes of `axis_env` have a size and a name, but no lanes: operations belong to the
        # parent.
        around = NamedAxes(current(), axes) if axes else current()
        closure = trace_program(kind(around), flat, types, function_name(function))
        # Captured values become constants here, even traced ones, which `closed` would refuse.
        program = OpenProgram(closure.program, len(closure.captured)).with_constants(closure.captured)
        if not return_shape:
            return program
        out_types = program.output_types[: out_trees[-1].num_leaves]
        return program, tree.unflatten(out_trees[-1], map(abstract, out_types))

    make.__name__ = f"make_jaxpr({getattr(function, '__name__', function_name(function))})"
    return make


class NamedAxes(Interpreter):
    """Names axes, and leaves all operations to the enclosing interpreter."""

    __slots__ = ("axes_by_name",)

    def __init__(self, parent: Interpreter, axes_by_name: Mapping[Hashable, Axis]):
        super().__init__(parent)
        self.axes_by_name = axes_by_name

    def named_axis(self, name: Hashable) -> Axis | None:
        """The axis of that name, if it is one of these."""
        return self.axes_by_name.get(name)


def parse_program(
    text: str,
    primitives: Mapping[str, Primitive] = PRIMITIVES,
    records: Mapping[str, type] = RECORDS,
    functions: Mapping[str, Callable[..., object]] | None = None,
) -> Program:
    """The program with this text, made of these primitives.

    functions:  the Python functions that the text only names: "<rule of f>". A missing one can be
                printed but not called: the program runs as long as nothing calls it.
    `rune.control.parse_program` also knows the primitives of control flow.
    Errors: CheckError "parse: cannot read <what> (<why>)" with the line and its number.

    >>> print(parse_program("program f(%0: f32[n]) where n in 1..9 { return %0 }"))
    program f(%0: f32[n]) where n in 1..9 {
      return %0
    }
    """
    return parse(text, primitives, records, functions)
