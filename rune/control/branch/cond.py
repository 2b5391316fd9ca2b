"""cond and switch: a value selects one of several functions, all with results of the same types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, TypeVarTuple, overload

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.control import in_python
from rune.control.annotations import Numeric
from rune.control.branch.primitive import cond as cond_primitive
from rune.control.carried_references import Refs, beside, branch
from rune.control.tracing import Traced, retyped, share_captured, tell_one_of, trace
from rune.core.interpreter import literal, type_of
from rune.core.types import same_layout
from rune.core.values import Value
from rune.errors import ArgumentError, TransformError
from rune.ops import cast, max, min, ne
from rune.ops.promote import opened
from rune.transforms import references
from rune.transforms.arguments import flatten_values, require_callable, value_leaves
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.programs.interned import interned
from rune.transforms.tree_difference import mismatch, paths
from rune.tree import TreeDef

R = TypeVar("R")
X = TypeVar("X")
Ts = TypeVarTuple("Ts")
_Number: TypeAlias = complex | np.generic  # which branches return as an array
_MISSING = object()


# Branches, lambdas too, take the types of the operands. Numbers arrive as arrays, so calls with a
# number among the first two operands, and calls with more operands, have signatures of their own.
# No other call may fit these: where two signatures fit, mypy infers Any for a lambda.
@overload
def cond(
    pred: object, true_fun: Callable[[*Ts], _Number], false_fun: Callable[[*Ts], _Number], *operands: *Ts
) -> Array: ...
@overload
def cond(pred: object, true_fun: Callable[[*Ts], R], false_fun: Callable[[*Ts], X], *operands: *Ts) -> R | X: ...
@overload
def cond(
    pred: object, true_fun: Callable[..., R], false_fun: Callable[..., X], first: Numeric, /, *operands: object
) -> R | X: ...
@overload
def cond(
    pred: object,
    true_fun: Callable[..., R],
    false_fun: Callable[..., X],
    first: object,
    second: Numeric,
    /,
    *operands: object,
) -> R | X: ...
@overload
def cond(
    pred: object,
    true_fun: Callable[..., R],
    false_fun: Callable[..., X],
    first: object,
    second: object,
    third: object,
    /,
    *operands: object,
) -> R | X: ...
@overload
def cond(pred: object, true_fun: Callable[..., R], false_fun: Callable[..., X], *, operand: object) -> R | X: ...
def cond(
    pred: object,
    true_fun: Callable[..., object],
    false_fun: Callable[..., object],
    *operands: object,
    operand: object = _MISSING,
) -> object:
    """`true_fun(*operands)` if `pred` is true, otherwise `false_fun(*operands)`; only one runs.

    pred:      a bool or a real number, which is true unless it is 0.
    operands:  trees of arrays, passed to either function; both may also close over arrays.
    operand:   a single operand, as a keyword.
    cond(pred, x, f, y, g) is JAX's older form: `f(x)` if `pred` is true, else `g(y)`.
    Both functions are traced, and must return equal trees, shapes and dtypes. Under vmap with a
    different `pred` in every lane both run, and each lane selects its result; derivatives then flow
    only through the selected result.

    Shapes: pred []; operands any -> those that both functions return.
    Types:  those that both functions return; a result is weak if that of `false_fun` is.
    Errors: TransformError if the results differ, naming the leaf; ArgumentError if `pred` is not a
            scalar, or a function cannot be called.

    >>> import rune
    >>> rune.cond(True, lambda x: x + 1.0, lambda x: x * 2.0, 5.0)
    Array(6., f32*[], cpu:0)
    """
    arguments = operands if operand is _MISSING else (operand,)
    # Only the older form has an operand in the place of true_fun and a function in the last place.
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2 and callable(operands[1]):
        true_fun, false_fun, arguments = _each_with_its_operand(true_fun, false_fun, *operands)
    for function in (true_fun, false_fun):
        require_callable("cond", function)
    # False is branch 0, so false_fun comes first.
    number = cast(_predicate(pred), dtypes.i32)
    return _choose("cond", ("false_fun", "true_fun"), number, (false_fun, true_fun), arguments)


def _each_with_its_operand(
    x: object, on_x: Callable[..., object], y: object, on_y: Callable[..., object]
) -> tuple[Callable[..., object], Callable[..., object], tuple[object, object]]:
    """Functions that take both operands, from functions that take one each."""
    return lambda x, y: on_x(x), lambda x, y: on_y(y), (x, y)


@overload
def switch(
    index: object, branches: Sequence[Callable[..., _Number]], *operands: object, operand: object = ...
) -> Array: ...
@overload
def switch(index: object, branches: Sequence[Callable[..., R]], *operands: object, operand: object = ...) -> R: ...
def switch(
    index: object, branches: Sequence[Callable[..., object]], *operands: object, operand: object = _MISSING
) -> object:
    """`branches[index](*operands)`; an index out of range selects the first or the last branch.

    operands:  as for `cond`.
    Shapes: index int[]; operands any -> those that every branch returns.
    Types:  those that every branch returns; a result is weak if that of the first branch is.
    Errors: ArgumentError if the index is not an integer, or there are no branches; TransformError
            if the branches return different trees or types.

    >>> import rune
    >>> rune.switch(7, [lambda x: x, lambda x: -x], 1.0)
    Array(-1., f32*[], cpu:0)
    """
    # A generator could be read only once, but the branches are counted and named first.
    if not isinstance(branches, Sequence):
        raise ArgumentError(f"switch: cannot choose from {type(branches).__name__} (a sequence required)")
    if not branches:
        raise ArgumentError("switch: cannot choose from no branches")
    for function in branches:
        require_callable("switch", function)
    arguments = operands if operand is _MISSING else (operand,)
    number = _index(index, len(branches))
    if len(branches) == 1:  # there is nothing to choose, so no equation is needed
        return tree.map(opened, branches[0](*arguments))
    names = [f"branches[{i}]" for i in range(len(branches))]
    return _choose("switch", names, number, branches, arguments)


def _scalar(name: str, role: str, value: object, allowed_dtypes: frozenset[np.dtype], kind: str) -> Value:
    """The value, if it is an array or number of rank 0 and of an allowed dtype."""
    leaves, treedef = tree.flatten(value)
    # None is a tree of one node too, but has no leaf.
    if treedef.num_nodes != 1 or not leaves:
        raise ArgumentError(f"{name}: cannot take {type(value).__name__} as {role}")
    (scalar,) = value_leaves(name, leaves, treedef)
    scalar_type = type_of(scalar)
    if scalar_type.shape or scalar_type.dtype not in allowed_dtypes:
        raise ArgumentError(f"{name}: cannot take {scalar_type} as {role} (rank 0, {kind} required)")
    return scalar


def _predicate(pred: object) -> Any:
    """The predicate as a bool of rank 0."""
    value = _scalar("cond", "pred", pred, dtypes.ANY - dtypes.COMPLEX, "bool or real number")
    dtype = type_of(value).dtype
    # NaN is not 0, so it is true, as in Python.
    return value if dtype == dtypes.bool_ else ne(value, literal(0, dtype))


def _index(index: object, count: int) -> Any:
    """The number of a branch as i32."""
    value = _scalar("switch", "the index", index, dtypes.INTEGER, "integer")
    dtype = type_of(value).dtype
    # A cast of an index beyond i32 might wrap around to the number of some branch.
    if dtype in (dtypes.u32, dtypes.i64, dtypes.u64):
        value = max(min(value, literal(count - 1, dtype)), literal(0, dtype))
    return cast(value, dtypes.i32)


def _choose(
    name: str,
    labels: Sequence[str],
    number: object,
    functions: Sequence[Callable[..., object]],
    operands: Sequence[object],
) -> Any:
    constant_branch = in_python.branch(number, functions) if in_python.is_asked_for() else None
    # No trace opens its results: objects that stand for arrays are opened here.
    if constant_branch is not None:
        return tree.map(opened, constant_branch(*operands))
    if not references.are_there():
        return _chosen(name, labels, number, functions, operands)
    functions, operands = beside(functions, operands)

    # An equation has no operand for a reference. The values of those that a branch writes go in as
    # the first operand, and their new values come out beside the result.
    def run(refs: Refs) -> Any:
        bodies = _once_each(functions, lambda f: branch(name, f, refs))
        result, values = _chosen(name, labels, number, bodies, (references.values_of(refs), *operands), _first)
        references.write_all(refs, values)
        return result

    return references.threaded(run)


def _chosen(
    name: str,
    labels: Sequence[str],
    number: object,
    functions: Sequence[Callable[..., object]],
    operands: Sequence[object],
    of_results: Callable[[TreeDef], TreeDef] = lambda outputs: outputs,
) -> Any:
    """The outputs of the selected function.

    of_results: extracts, from the structure of the outputs, the part that the user's functions
                return
    """
    leaves, treedef = flatten_values(tuple(operands))
    leaves = value_leaves(name, leaves, treedef)
    types = [type_of(x) for x in leaves]
    branch_traces = _once_each(functions, lambda f: trace(Flat(name, f, treedef), types))
    _check_results(name, labels, branch_traces, of_results)
    # All branches of an equation take the same operands and yield the same types.
    # As in JAX, a result is weak if that of the first branch is. A step that either returns a new
    # state or keeps the old one then leaves a Python number weak, so a jitted function around it
    # is traced once.
    branch_traces, types = share_captured(branch_traces), branch_traces[0].out_types
    branches = tuple(interned(retyped(t, types)) for t in branch_traces)
    tell_one_of(branch_traces)
    outs = cond_primitive(number, *branch_traces[0].captured, *leaves, branches=branches)
    return tree.unflatten(branch_traces[0].out_tree, outs)


def _once_each(functions: Sequence[Callable[..., object]], make: Callable[[Callable[..., object]], R]) -> list[R]:
    """make(f) for each function; called only once for a function that is passed several times."""
    distinct = {id(f): f for f in functions}
    results = {number: make(f) for number, f in distinct.items()}
    return [results[id(f)] for f in functions]


def _first(outputs: TreeDef) -> TreeDef:
    """The structure of the result in a pair (result, values of references)."""
    return outputs.children()[0]


def _check_results(
    name: str, labels: Sequence[str], branch_traces: Sequence[Traced], of_results: Callable[[TreeDef], TreeDef]
) -> None:
    first = branch_traces[0]
    # Messages must not mention values of references, which the user's functions do not return.
    results = of_results(first.out_tree)
    for label, other in zip(labels, branch_traces):
        if other.out_tree != first.out_tree:
            raise TransformError(
                f"{name}: cannot choose between results of different structures "
                f"({_difference(results, of_results(other.out_tree), labels[0], label)})",
                hint="return the same containers and keys from every branch",
            )
        for number, (a, b) in enumerate(zip(first.out_types, other.out_types)):
            if not same_layout(a, b):
                # Only now: a class may refuse the numbers that stand for its leaves in a path.
                raise TransformError(
                    f"{name}: cannot choose between results of different types "
                    f"(result{paths(results)[number]} is {a} from {labels[0]}, {b} from {label})",
                    hint="convert one of them, so that shapes and dtypes agree",
                )


def _difference(a: TreeDef, b: TreeDef, of_a: str, of_b: str) -> str:
    return mismatch(
        a,
        b,
        lambda path: f"result{path} comes from {of_a} but not from {of_b}",
        lambda path: f"result{path} comes from {of_b} but not from {of_a}",
        f"{{}} comes from {of_a}, {{}} from {of_b}",
    )
