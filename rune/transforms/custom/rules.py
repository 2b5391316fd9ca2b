"""The common part of custom_jvp, custom_vjp and custom_vmap: calls, and checks of rules.

A call reaches the rule at the interpreter that differentiates. If concrete values are
differentiated, the user's rule runs at once, on values, and the function itself is not traced;
inside jit and vmap the function is a program in an equation that also holds the rule.

A rule covers only the arguments. A value that the function closes over may be traced, but not
differentiated: that is refused, since its derivative would be lost silently.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar, cast

import numpy as np

from rune import dtypes, tree
from rune.array import Array, default_place, put
from rune.core.interpreter import Interpreter, Tracer, current, type_of, use
from rune.core.lists import omit, scatter
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.types import ArrayType, Shape, same_layout
from rune.core.values import Value
from rune.errors import ArgumentError, EscapedTracerError, TransformError, at_line
from rune.ops.promote import opened
from rune.records import dataclass
from rune.transforms import references
from rune.transforms.arguments import array_leaves, function_name, is_same_static, put_on
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.derivatives.jvp import Jvp
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.derivatives.tangents import float0_zeros, zeros
from rune.transforms.derivatives.transpose import backward
from rune.transforms.eval_shape import typeof


@dataclass(frozen=True, slots=True)
class SymbolicZero:
    """A tangent or cotangent that is known to be zero; passed to rules with `symbolic_zeros`.

    >>> import rune
    >>> kinds = []
    >>> @rune.custom_jvp
    ... def f(x, y):
    ...     return x * y
    >>> def rule(primals, tangents):
    ...     kinds.append([type(t).__name__ for t in tangents])
    ...     return f(*primals), tangents[0] * primals[1]
    >>> _ = f.defjvp(rule, symbolic_zeros=True)
    >>> float(rune.grad(f)(2.0, 3.0)), kinds[0][1]
    (3.0, 'SymbolicZero')
    """

    aval: ArrayType

    @property
    def shape(self) -> Shape:
        """Shape of the zeros."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the zeros."""
        return self.aval.dtype

    @property
    def type(self) -> ArrayType:
        """The type of the zeros."""
        return self.aval

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.aval.shape)

    @staticmethod
    def from_primal_value(value: object) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(type_of(value).to_tangent())

    def instantiate(self) -> Value:
        """An array of zeros."""
        return symbolic_or_zeros(False, self.type)


def zero_from_primal(val: object, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value or a tree: arrays, or SymbolicZero objects if `symbolic_zeros`.

    Errors: ArgumentError if a leaf is not an array.

    >>> import rune, rune.numpy as rnp
    >>> rune.zero_from_primal(rnp.ones(2))
    Array([0., 0.], f32[2], cpu:0)
    """
    return tree.map(lambda x: symbolic_or_zeros(symbolic_zeros, typeof(x).to_tangent()), val)


def symbolic_or_zeros(symbolic: bool, type: ArrayType) -> Any:
    """The argument of a rule for a zero of this type."""
    if type.dtype == dtypes.float0:
        return SymbolicZero(type) if symbolic else float0_zeros(type)
    return SymbolicZero(type) if symbolic else zeros(type)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call: those to differentiate, flattened; the others as passed."""

    leaves: list[Value]
    treedef: tree.TreeDef
    statics: tuple[tuple[int, object], ...]  # position and value, in order

    @property
    def static_values(self) -> tuple[object, ...]:
        """The arguments that are not differentiated."""
        return tuple(value for _, value in self.statics)

    def trees(self, leaves: Sequence[object]) -> tuple[Any, ...]:
        """The arguments to differentiate."""
        return tree.unflatten(self.treedef, leaves)

    def all(self, active: Sequence[object]) -> list[object]:
        """All arguments in their places; `active` are those to differentiate."""
        args = list(active)
        # In ascending order, so that each position is the one in the full list.
        for position, value in self.statics:
            args.insert(position, value)
        return args

    def form(self) -> Arguments:
        """The same without leaves, which a rule must not hold, since it outlives the call."""
        return replace(self, leaves=[])

    def is_like(self, other: Arguments) -> bool:
        """Whether two calls have the same form; values that cannot be compared are different."""
        return self.treedef == other.treedef and is_same_static(self.statics, other.statics)


P = ParamSpec("P")
R = TypeVar("R")


class CustomFunction(Generic[P, R]):
    """A function with its own rule: a `custom_jvp` or a `custom_vjp`."""

    kind = ""

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
    ):
        put_on(self, fun)
        self.function: Callable[..., object] = fun
        self.signature = _signature(fun)
        self.name = function_name(fun)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
        self.nondiff = frozenset((*numbers, *_positions(fun, names)))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function or, while a derivative is taken, its rule."""
        raise NotImplementedError(type(self).__name__)

    def __get__(self, instance: object, owner: object = None) -> Any:
        """A method: the instance is the first argument."""
        return self if instance is None else functools.partial(cast(Callable[..., object], self), instance)

    def __repr__(self) -> str:
        return f"{self.kind}({self.name})"

    def arguments(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Arguments:
        """The arguments of a call, with keywords and defaults in their places."""
        # A rule takes arguments by position, so a keyword must not hide which argument it is.
        full = _positional(self.name, self.signature, tuple(args), kwargs)
        # A negative number counts from the last argument; one out of range names no argument here.
        positions = {n % len(full) for n in self.nondiff if -len(full) <= n < len(full)}
        dynamic = references.as_nodes(tuple(x for i, x in enumerate(full) if i not in positions))
        leaves, treedef = tree.flatten(dynamic)
        statics = tuple((i, full[i]) for i in sorted(positions))
        return Arguments(array_leaves(self.kind, leaves, treedef), treedef, statics)

    def flat(self, arguments: Arguments) -> Flat:
        """The function of the flat arguments to differentiate."""
        return Flat(self.kind, lambda *xs: self.function(*arguments.all(xs)), arguments.treedef)


F = TypeVar("F", bound=CustomFunction[..., Any])


class Rule(Generic[F]):
    """A user's rule for calls of one form; equal for equal functions and forms."""

    def __init__(self, custom: F, arguments: Arguments):
        self.custom, self.arguments = custom, arguments.form()
        self.out_tree: tree.TreeDef | None = None  # of the function's result, once it is known

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        # Equal rules make equal programs, so a function in a loop finds its compiled code again.
        return self.custom is other.custom and self.arguments.is_like(other.arguments)

    def __hash__(self) -> int:
        # Static arguments need not be hashable; equality compares them.
        return hash((self.custom, self.arguments.treedef))

    def __repr__(self) -> str:
        return f"<rule of {self.custom.name}>"


def _positions(function: Callable[..., object], names: Sequence[str]) -> Iterator[int]:
    parameters = list(inspect.signature(function).parameters) if names else []
    for name in names:
        if name not in parameters:
            raise ArgumentError(f"custom rule: cannot find argument {name!r} of {function_name(function)}")
        yield parameters.index(name)


def _signature(function: Callable[..., object]) -> inspect.Signature | None:
    """The signature; None for a builtin without one."""
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def _positional(name: str, signature: inspect.Signature | None, args: tuple, kwargs: Mapping[str, object]) -> tuple:
    """All arguments by position, defaults included."""
    if not kwargs and (signature is None or len(args) == len(signature.parameters)):
        return args  # the common case
    if signature is None:
        raise ArgumentError(f"custom rule: cannot place keyword arguments of the builtin {name}")
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentError(
            f"custom rule: cannot place the keyword arguments {', '.join(bound.kwargs)} of {name}",
            hint="a function with a custom rule takes positional arguments",
        )
    return bound.args


# --- the level that answers a call ------------------------------------------------------------


def on_level(leaves: Sequence[Value], rule: Callable[..., Any], otherwise: Callable[..., Any]) -> Any:
    """The answer to a call: (flat results, their tree).

    rule(primals, tangents) -> (results, tangents, tree): used if the current derivative has
    tangents for the leaves. otherwise(leaves) -> (results, tree): used if no derivative is taken.
    """
    level = current()
    # Partial evaluation has no part in a call on known values: they are those of its parent.
    if isinstance(level, Partial) and level.parent and not any(map(level.owns, leaves)):
        with use(level.parent):
            return on_level(leaves, rule, otherwise)
    if not isinstance(level, Jvp):
        return otherwise(leaves)
    primals, tangents = zip(*map(level.split, leaves), strict=True) if leaves else ((), ())
    assert level.parent is not None
    # The rule runs outside this derivative, where an outer derivative may differentiate it in turn.
    with use(level.parent):
        if all(t is None for t in tangents):
            return on_level(primals, rule, otherwise)
        outs, out_tangents, out_tree = rule(primals, tangents)
    return [level.join(o, t) for o, t in zip(outs, out_tangents, strict=True)], out_tree


def check_closure(custom: CustomFunction[P, R], arguments: Arguments) -> None:
    """Refuse a function that reads a value of its closure which is being differentiated."""
    levels = list(_derivatives())
    # The search through closures is only worth its time while a derivative is taken.
    if levels and _has_value_of(levels, _tracers_in((custom.function, arguments.static_values))):
        # An object in a closure may have values that the function does not read; its program tells.
        program = stage(custom.flat(arguments), [type_of(x) for x in arguments.leaves], custom.name)
        for value in program.captured:
            if _has_value_of(levels, [value]):
                refuse_hidden(custom.kind, custom.name, type_of(value))


def _has_value_of(levels: Sequence[Interpreter], values: Iterable[Value]) -> bool:
    return any(isinstance(x, Tracer) and x.interpreter in levels for x in values)


def _derivatives() -> Iterator[Interpreter]:
    """The derivatives being taken around the current context, up to any other transformation."""
    level: Interpreter | None = current()
    # Beyond any other transformation, such as jit, a rule cannot lose a derivative: there the
    # equation of the call has the closed-over value as an operand, which is checked when it is
    # differentiated.
    while isinstance(level, Jvp | Partial):
        if isinstance(level, Jvp):
            yield level
        level = level.parent


def refuse_hidden(kind: str, name: str, type: ArrayType) -> NoReturn:
    """Errors: TransformError, always."""
    raise TransformError(
        f"{kind}: cannot differentiate {name} with respect to a value {type} that it closes over "
        "(its rule covers only the arguments)",
        hint="pass the value as an argument, or hide it with rune.closure_convert",
    )


def as_arrays(values: Sequence[Any]) -> list[Any]:
    """Values for a user's rule: a NumPy constant of a program becomes an array of its dtype.

    As NumPy data it would be converted to a canonical dtype in the rule, and lose digits.
    """
    return [
        put(v, ArrayType(v.shape, v.dtype), default_place())
        if isinstance(v, np.ndarray) and v.dtype in dtypes.ANY | dtypes.KEYS
        else v
        for v in values
    ]


def run_rule(kind: str, name: str, rule: Callable[..., object], *args: object) -> Any:
    """The results of a user's rule, whose operations report their own lines.

    Errors: EscapedTracerError if it uses a value of a transformation that has ended.
    """
    try:
        with at_line(None):
            return rule(*args)
    except EscapedTracerError as error:
        raise EscapedTracerError(
            f"{kind}: cannot run the rule of {name} (it uses a traced value that it closes over, "
            "outside the transformation of that value)",
            hint="pass the value as an argument, or hide it with rune.closure_convert",
        ) from error


def on_lanes(rule: object) -> str:
    """How a rule on all lanes prints: `<rule of f on lanes>`."""
    return f"<{repr(rule)[1:-1]} on lanes>"


LEVELS = 4  # of functions, objects and containers that are searched


def _tracers_in(holders: Sequence[object]) -> Iterator[Tracer]:
    """Traced values in closures, and in the attributes and containers inside them."""
    # The search has a limited depth: closures may reach all of a program's data.
    pending = [(x, 0) for x in holders]
    visited_ids: set[int] = set()
    while pending:
        item, depth = pending.pop()
        value = opened(item)
        if isinstance(value, Tracer):
            yield value
        elif depth < LEVELS and id(value) not in visited_ids:
            visited_ids.add(id(value))
            pending += [(x, depth + 1) for x in _references(value)]


def _references(value: object) -> Sequence[object]:
    # Closures, objects and containers; a class or module belongs to no single call.
    match value:
        case functools.partial():
            return [value.func, *value.args, *value.keywords.values()]
        case FunctionType():
            return [x for cell in value.__closure__ or () for x in _contents(cell)]
        case MethodType():
            return [value.__self__, value.__func__]
        case list() | tuple():
            return value
        case dict():
            return list(value.values())
        case type() | ModuleType():
            return ()
        case _:
            return list(getattr(value, "__dict__", {}).values())


def _contents(cell: CellType) -> Sequence[object]:
    try:
        return [cell.cell_contents]
    except ValueError:  # a variable that is not bound yet
        return ()


def require_types(kind: str, name: str, function_types: Sequence[ArrayType], results: Sequence[Value]) -> None:
    """Raise TransformError unless a rule returns results of the same types as the function."""
    types = [type_of(x) for x in results]
    if len(types) != len(function_types) or not all(map(same_layout, types, function_types)):
        actual_text, expected_text = (", ".join(map(str, ts)) for ts in (types, function_types))
        raise TransformError(
            f"{kind}: cannot use the rule of {name} (its results are {actual_text}, the function's {expected_text})"
        )


def transpose_of_program(
    cts: Sequence[Value | None], linear: Sequence[bool], *inputs: Any, program: Program, **_: object
) -> list[Array | None]:
    """The transpose rule of a primitive whose results are those of its program."""
    known = dict(zip(omit(program.inputs, linear), omit(inputs, linear), strict=True))
    return scatter(backward(program, known, cts), linear)
