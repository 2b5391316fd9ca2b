"""scan and map: a function applied to one row after another, in a loop of any length."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

import numpy as np

from rune import tree
from rune.array import Array
from rune.control import in_python
from rune.control.annotations import Mixed, Number, Numbers, Rows
from rune.control.carried_references import Refs, over_rows, step
from rune.control.carry_types import Carry, settle, weakened
from rune.control.scan.primitive import row_type
from rune.control.scan.primitive import scan as scan_primitive
from rune.control.tracing import Traced, trace, with_carry
from rune.core.interpreter import Tracer, type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Dim, Size
from rune.errors import ArgumentError, AxisError, TracerIntegerConversionError
from rune.ops import concatenate, reshape, slice_
from rune.transforms import references
from rune.transforms.arguments import (
    flatten_values,
    is_float0,
    key_path,
    name_of,
    refuse_other,
    require_callable,
    value_leaves,
)
from rune.transforms.batching.vmap import vmap
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.programs.interned import interned
from rune.transforms.tree_difference import kind_of
from rune.tree import TreeDef

C = TypeVar("C")
X = TypeVar("X")
R = TypeVar("R")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Array, X], tuple[R, Y]],
    init: Number,
    xs: X,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]: ...
@overload
def scan(
    f: Callable[[Array, None], tuple[R, Y]],
    init: Number,
    xs: None = None,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]: ...
@overload
def scan(
    f: Callable[[Any, Any], tuple[R, Y]],
    init: Numbers,
    xs: object = None,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[R, Y]],
    init: C,
    xs: X,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]: ...
@overload
def scan(
    f: Callable[[C, None], tuple[R, Y]],
    init: C,
    xs: None = None,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[R, Y]],
    init: Mixed,
    xs: object = None,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[R, Y]],
    init: C,
    xs: Rows,
    length: object = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]: ...
def scan(
    f: Callable[..., tuple[R, Y]],
    init: object,
    xs: object = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[R, Y]:
    """Apply `carry, y = f(carry, x)` to one row of `xs` after another; (last carry, stacked ys).

    init:     the first carry, a tree of arrays. A Python number takes the dtype that `f` returns.
    xs:       a tree of arrays with equal leading axes, one row for each step; or None.
    length:   the number of steps, required if xs has no arrays. It may be a symbolic size.
    reverse:  step from the last row to the first; ys remain in the order of xs.
    unroll:   how many steps to write out per iteration, as a request; True for all of them.
    `f` is traced once, and again if a Python number takes another dtype. Compile time does not
    depend on the number of steps, and reverse-mode derivatives save what each step needs.

    Shapes: carry any, unchanged; xs [N, *S] -> ys [N, *T], where `f` maps [*S] to [*T].
    Types:  those of the carry, unchanged; for ys those that `f` returns.
    Errors: TransformError if the carry changes its type, naming the leaf; AxisError if leading
            axes differ; ArgumentError if the number of steps is not known.

    >>> import rune, rune.numpy as rnp
    >>> rune.scan(lambda total, x: (total + x, total), 0.0, rnp.arange(4.0))
    (Array(6., f32[], cpu:0), Array([0., 0., 1., 3.], f32*[4], cpu:0))
    """
    refuse_other("scan", _split_transpose=(_split_transpose, False))
    _, treedef = flatten_values(init)
    return scan_named(Carry("scan", treedef), f, init, xs, length, reverse, unroll)


def scan_named(
    carry: Carry,
    f: Callable[[Any, Any], tuple[object, object]],
    init: object,
    xs: object,
    length: Any,
    reverse: bool,
    unroll: int | bool,
) -> tuple[Any, Any]:
    """`scan` under the name that messages use for it."""
    require_callable(carry.name, f)
    if not references.are_there():
        return _scanned(carry, f, init, xs, length, reverse, unroll)
    rows, row_refs = references.boxed(carry.name, xs)
    # References among xs: a step reads and writes one row of each, and the rows it leaves come out
    # as ys, which become the new value.
    if row_refs:
        last, (ys, values) = scan_named(carry, over_rows(f), init, rows, length, reverse, unroll)
        references.write_all(row_refs, values)
        return last, ys

    def run(refs: Refs) -> tuple[Any, Any]:
        state = (init, references.values_of(refs))
        # The user's carry is the first part of the pair; messages name leaves from there.
        pair = replace(carry, treedef=flatten_values(state)[1], prefix=f"[0]{carry.prefix}")
        (last, values), ys = _scanned(pair, step(carry.name, f, refs), state, xs, length, reverse, unroll)
        references.write_all(refs, values)
        return last, ys

    return references.threaded(run)


def _scanned(
    carry: Carry,
    f: Callable[[Any, Any], tuple[object, object]],
    init: object,
    xs: object,
    length: Any,
    reverse: bool,
    unroll: int | bool,
) -> tuple[Any, Any]:
    first, init_tree = flatten_values(init)
    xs, length = _without_voids(carry.name, xs, length)
    rows, rows_tree = flatten_values(xs)
    first = value_leaves(carry.name, first, init_tree)
    rows = value_leaves(carry.name, rows, rows_tree)
    steps = _steps(carry.name, rows, rows_tree, length)
    # Without a step, Python would not learn the types of ys.
    if in_python.is_asked_for() and isinstance(steps, int) and steps:
        order = range(steps)[::-1] if reverse else range(steps)
        return in_python.scan(f, init, rows, rows_tree, order)
    arguments_tree = flatten_values((init, xs))[1]
    row_types = [row_type(type_of(x)) for x in rows]
    values, body_trace = _traced_body(carry, _Body(f, init_tree), arguments_tree, first, row_types)
    # The number of the step is carried only if the body asked for it, as a draw without a key does.
    # It comes before the user's carry.
    carries = [*body_trace.counter, *values]
    outs = scan_primitive(
        *body_trace.captured,
        *carries,
        *rows,
        body=interned(with_carry(body_trace, [type_of(v) for v in values])),
        length=steps,
        reverse=bool(reverse),
        unroll=_written_out(unroll, steps),
        consts=len(body_trace.captured),
        carries=len(carries),
    )
    last, ys = tree.unflatten(body_trace.out_tree, weakened(outs[len(body_trace.counter) :], body_trace))
    # A float0 has no data to stack, so only its shape gets the axis of steps.
    return last, tree.map(lambda y: np.zeros((steps, *y.shape), y.dtype) if is_float0(y) else y, ys)


def _traced_body(
    carry: Carry, body: _Body, arguments_tree: TreeDef, first: Sequence[Value], row_types: Sequence[ArrayType]
) -> tuple[list[Value], Traced]:
    """The first values, with the types that the carry keeps, and the body traced for them."""

    def trace_body(types: Sequence[ArrayType]) -> Traced:
        body_trace = trace(Flat(carry.name, body, arguments_tree), [*types, *row_types], is_step=True)
        carry.check_tree(body.carry_tree)
        return body_trace

    # A weak first value takes the dtype that the body returns, and the body is traced again.
    values, body_trace = settle(trace_body, first)
    carry.check([type_of(v) for v in values], body_trace)
    body_trace.tell()
    return values, body_trace


def _without_voids(name: str, xs: object, length: Size | None) -> tuple[object, Size | None]:
    """The arrays, with a row in place of each float0 array, and the length.

    No array of rune has dtype float0, but a row of one can be a constant of the body.
    """
    voids = [x for x in tree.leaves(xs) if is_float0(x)]
    if not voids:
        return xs, length
    # The arrays with data are compared with this length later, in `_steps`.
    lengths = {x.shape[:1] for x in voids} | ({(length,)} if length is not None else set())
    if len(lengths) > 1 or () in lengths:
        raise AxisError(f"{name}: cannot step through float0 arrays of shapes {[x.shape for x in voids]}")
    return tree.map(lambda x: np.zeros(x.shape[1:], x.dtype) if is_float0(x) else x, xs), voids[0].shape[0]


class _Body:
    """The user's function, which must return a pair."""

    def __init__(self, function: Callable[..., object], init_tree: TreeDef):
        self.function, self.carry_tree = function, init_tree
        self.__name__ = name_of(function, type(function).__name__)

    def __call__(self, carry: object, x: object) -> tuple[Any, Any]:
        pair = self.function(carry, x)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ArgumentError(
                f"scan: cannot take {kind_of(pair)} as the result of a step (a pair (carry, y) required)",
                hint="return (carry, None) if there is nothing to stack",
            )
        # The trace has one tree for the pair; the carry's own is compared with that of `init`.
        _, self.carry_tree = flatten_values(pair[0])
        return tuple(pair)


def _steps(name: str, rows: Sequence[object], treedef: tree.TreeDef, length: Any) -> Size:
    """The number of steps, on which all leading axes and `length` must agree."""
    sizes = [_leading(name, x, i, treedef) for i, x in enumerate(rows)]
    if length is not None:
        sizes.append(_as_length(name, length))
    if not sizes:
        raise ArgumentError(
            f"{name}: cannot tell the number of steps (xs has no arrays)",
            hint="pass length=" if name == "scan" else None,
        )
    for number, size in enumerate(sizes):
        if size != sizes[0]:
            first, other = (f"xs{key_path(i, treedef)}" if i < len(rows) else "length" for i in (0, number))
            raise AxisError(f"{name}: cannot step through {sizes[0]} rows of {first} and {size} of {other}")
    return sizes[0]


def _leading(name: str, x: object, number: int, treedef: tree.TreeDef) -> Size:
    shape = type_of(x).shape
    if not shape:
        raise AxisError(
            f"{name}: cannot step through xs{key_path(number, treedef)} of type {type_of(x)} (it has no rows)",
            hint="close over values that are the same in every step",
        )
    return shape[0]


def _as_length(name: str, length: Any) -> Size:
    if isinstance(length, Dim):
        return length
    try:
        steps = operator.index(length)
    except TypeError as error:
        if isinstance(length, Tracer):
            raise TracerIntegerConversionError(
                f"{name}: cannot use a traced value as length (a traced {length.type})",
                hint="a number of steps known only at run time is what while_loop is for",
            ) from error
        raise ArgumentError(f"{name}: cannot use {type(length).__name__} as length (an integer required)") from None
    if steps < 0:
        raise ArgumentError(f"{name}: cannot take {steps} steps")
    return steps


def _written_out(unroll: int | bool, steps: Size) -> int:
    if isinstance(unroll, bool):  # a symbolic number of steps cannot be written out
        return max(steps, 1) if unroll and isinstance(steps, int) else 1
    # As in JAX, 0 means that nothing is written out.
    if unroll < 0:
        raise ArgumentError(f"scan: cannot write out {unroll} steps (at least 0 required)")
    return max(operator.index(unroll), 1)


@overload
def map(f: Callable[[Array], R], xs: Number, *, batch_size: int | None = None) -> R: ...
@overload
def map(f: Callable[[Any], R], xs: Numbers, *, batch_size: int | None = None) -> R: ...
@overload
def map(f: Callable[[X], R], xs: X, *, batch_size: int | None = None) -> R: ...
def map(f: Callable[..., R], xs: object, *, batch_size: int | None = None) -> R:
    """`f` applied to one row of `xs` after another, the results stacked.

    Unlike vmap it works on one row at a time, with the memory for one.
    batch_size:  how many rows to work on at once, by vmap; the last batch may be smaller.

    Shapes: xs [N, *S] -> [N, *T], where `f` maps [*S] to [*T]. Types: those that `f` returns.
    Errors: those of scan; ArgumentError if batch_size is below 1.

    >>> import rune, rune.numpy as rnp
    >>> rune.map(lambda x: x * 2.0, rnp.arange(5.0), batch_size=2)
    Array([0., 2., 4., 6., 8.], f32[5], cpu:0)
    """
    require_callable("map", f)
    if batch_size is None:
        return _mapped(f, xs)
    leaves, treedef = tree.flatten(xs)
    leaves = value_leaves("map", leaves, treedef)
    size, steps = operator.index(batch_size), _steps("map", leaves, treedef, None)
    if size < 1:
        raise ArgumentError(f"map: cannot take batches of {size} (at least 1 required)")
    batch_count, remainder = steps // size, steps % size
    batch_fun = vmap(f)
    # The full batches are one scan; the remainder has another shape, so it runs after the scan.
    batches = [_batches(x, batch_count, size) for x in leaves]
    results = tree.map(_joined, _mapped(batch_fun, tree.unflatten(treedef, batches)))
    if remainder == 0:
        return results
    last = batch_fun(tree.unflatten(treedef, [_rows(x, batch_count * size, steps) for x in leaves]))
    return tree.map(lambda a, b: concatenate(a, b, axis=0), results, last)


def _mapped(f: Callable[[Any], object], xs: object) -> Any:
    def step(carry: object, x: object) -> tuple[object, object]:
        return carry, f(x)

    step.__name__ = name_of(f, "f")  # the program gets the name of the user's function
    return scan_named(Carry("map", tree.structure(None)), step, None, xs, None, False, 1)[1]


def _batches(x: object, count: Size, size: int) -> Any:
    rows = _rows(x, 0, count * size)
    return reshape(rows, shape=(count, size, *type_of(rows).shape[1:]))


def _rows(x: object, start: Size, limit: Size) -> Any:
    shape = type_of(x).shape
    zeros = (0,) * (len(shape) - 1)
    return slice_(x, start=(start, *zeros), limit=(limit, *shape[1:]), stride=(1,) * len(shape))


def _joined(x: object) -> Any:
    count, size, *row_shape = type_of(x).shape
    return reshape(x, shape=(count * size, *row_shape))
