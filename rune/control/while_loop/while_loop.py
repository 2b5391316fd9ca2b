"""while_loop and fori_loop: a function applied while a condition holds, or a number of times."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

import numpy as np

from rune import dims, dtypes, tree
from rune.array import Array
from rune.control import carried_references, in_python
from rune.control.annotations import Number, Numbers
from rune.control.carry_types import Carry, settle, weakened
from rune.control.programs import with_inputs
from rune.control.scan.scan import scan_named
from rune.control.tracing import NUMBER, Traced, trace, with_carry, with_inputs_of
from rune.control.while_loop.checkpoints import DEFAULT, Policy
from rune.control.while_loop.primitive import while_
from rune.core.interpreter import Tracer, type_of
from rune.core.program import Program
from rune.core.types import NONE, ArrayType
from rune.core.values import Operand, Value
from rune.dims import Dim, Size
from rune.errors import ArgumentError, TransformError
from rune.ops.family import size_value
from rune.ops.promote import promoted
from rune.transforms import references
from rune.transforms.arguments import flatten_values, name_of, require_callable, value_leaves
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.programs.interned import interned
from rune.transforms.tracers import ValueTracer
from rune.transforms.tree_difference import structure_text

C = TypeVar("C")
R = TypeVar("R")


@overload
def while_loop(
    cond_fun: Callable[[Array], object], body_fun: Callable[[Array], R], init_val: Number, *, reverse: Policy = DEFAULT
) -> R: ...
@overload
def while_loop(
    cond_fun: Callable[[Any], object], body_fun: Callable[[Any], R], init_val: Numbers, *, reverse: Policy = DEFAULT
) -> R: ...
@overload
def while_loop(
    cond_fun: Callable[[C], object], body_fun: Callable[[C], R], init_val: C, *, reverse: Policy = DEFAULT
) -> R: ...
def while_loop(
    cond_fun: Callable[..., object], body_fun: Callable[..., R], init_val: object, *, reverse: Policy = DEFAULT
) -> R:
    """Apply `body_fun` to a tree of arrays as long as `cond_fun` of it is true; the last tree.

    cond_fun:  returns one bool of rank 0.
    init_val:  the first value, a tree. A Python number takes the dtype that `body_fun` returns.
    reverse:   what reverse-mode derivatives save: Checkpoints(count), in memory that does not grow
               with the number of steps, or GrowingResiduals().
    Both functions are traced once. Under vmap the loop goes on while any lane does; lanes that
    have finished keep their value.

    Shapes: init_val any; its tree and shapes do not change. Types: those of init_val.
    Errors: TransformError if the value changes its type, naming the leaf, or if `cond_fun` does
            not return a bool.

    >>> import rune
    >>> rune.while_loop(lambda x: x < 100.0, lambda x: x * 2.0, 3.0)
    Array(192., f32*[], cpu:0)
    >>> rune.grad(lambda x: rune.while_loop(lambda v: v < 100.0, lambda v: v * v, x))(3.0)
    Array(17496., f32*[], cpu:0)
    """
    for function in (cond_fun, body_fun):
        require_callable("while_loop", function)
    _, treedef = flatten_values(init_val)
    return _while_named(Carry("while_loop", treedef), cond_fun, body_fun, init_val, reverse)


def _while_named(
    carry: Carry, cond_fun: Callable[[Any], object], body_fun: Callable[[Any], R], init_val: object, reverse: Policy
) -> R:
    """`while_loop` under the name that messages use for it."""
    if in_python.is_asked_for():
        init_val, has_ended = in_python.while_loop(cond_fun, body_fun, init_val)
        # Otherwise the condition became a traced value, and the loop continues from there.
        if has_ended:
            return init_val  # type: ignore[return-value]
    if not references.are_there():
        return _looped(carry, cond_fun, body_fun, init_val, reverse)

    def run(refs: carried_references.Refs) -> R:
        state = (init_val, references.values_of(refs))
        pair = replace(carry, treedef=flatten_values(state)[1], prefix=f"[0]{carry.prefix}")
        condition = carried_references.condition(carry.name, cond_fun, refs)
        body = carried_references.body(carry.name, body_fun, refs)
        last, values = _looped(pair, condition, body, state, reverse)
        references.write_all(refs, values)
        return last

    try:
        return references.threaded(run)
    except carried_references.InCondition:
        return _decided_before(carry, cond_fun, body_fun, init_val, reverse)


def _decided_before(
    carry: Carry, cond_fun: Callable[..., object], body_fun: Callable[..., R], init_val: object, reverse: Policy
) -> R:
    """The loop of a condition that writes references: the body evaluates it, and carries it.

    The primitive has no way to return what a condition writes, but a body may write references.
    """

    def step(state: tuple[object, object]) -> tuple[object, R]:
        value = body_fun(state[1])
        return cond_fun(value), value

    pair = replace(carry, treedef=flatten_values((0, init_val))[1], prefix=f"[1]{carry.prefix}")
    first = (cond_fun(init_val), init_val)
    return _while_named(pair, lambda state: state[0], carried_references.named_as(step, body_fun), first, reverse)[1]


def _looped(
    carry: Carry, cond_fun: Callable[[Any], object], body_fun: Callable[[Any], R], init_val: object, reverse: Policy
) -> R:
    first, treedef = flatten_values(init_val)
    first = value_leaves(carry.name, first, treedef)
    _, args_tree = flatten_values((init_val,))

    def trace_body(types: Sequence[ArrayType]) -> Traced:
        body_trace = trace(Flat(carry.name, body_fun, args_tree), types, is_step=True)
        carry.check_tree(body_trace.out_tree)
        return body_trace

    values, body = settle(trace_body, first)
    # The types of the carry are settled only now: the condition is traced for those of the body.
    types = [type_of(v) for v in values]
    carry.check(types, body)
    condition = trace(Flat(carry.name, cond_fun, args_tree), body.program.input_types[-len(types) :] if types else ())
    # The loop carries strong values where the trace saw weak ones: the condition converts them.
    condition = with_inputs_of(condition, types)
    _check_condition(condition)
    body.tell()
    outs = while_(
        *condition.captured,
        *body.captured,
        *body.counter,
        *values,
        condition=interned(_beside_number(condition) if body.is_numbered else condition.program),
        body=interned(with_carry(body, types)),
        condition_consts=len(condition.captured),
        body_consts=len(body.captured),
        reverse=reverse,
    )
    return tree.unflatten(treedef, weakened(outs[len(body.counter) :], body))


def _beside_number(condition: Traced) -> Program:
    """The condition with one more carry, the number of the step, which it does not read."""
    consts, input_types = len(condition.captured), condition.program.input_types
    positions = tuple(i if i < consts else i + 1 for i in range(len(input_types)))
    return with_inputs(condition.program, positions, (*input_types[:consts], NUMBER, *input_types[consts:]))


def _check_condition(condition: Traced) -> None:
    # A condition has no number of the step to fold in, so it would draw the same in each step.
    if condition.needs:
        raise TransformError("while_loop: cannot draw in cond_fun", hint="draw in body_fun, and carry the number")
    result = ", ".join(map(str, condition.out_types))
    if condition.out_tree.num_nodes != 1 or [t.along(NONE) for t in condition.out_types] != [
        ArrayType((), dtypes.bool_)
    ]:
        result = result or structure_text(condition.out_tree)
        raise TransformError(
            f"while_loop: cannot go on while cond_fun gives ({result}) (one bool[] required)",
            hint="compare, as in x > 0, and reduce with rune.numpy.any or all",
        )


@overload
def fori_loop(
    lower: Operand,
    upper: Operand,
    body_fun: Callable[[Array, Array], R],
    init_val: Number,
    *,
    unroll: int | bool | None = None,
    reverse: Policy = DEFAULT,
) -> R: ...
@overload
def fori_loop(
    lower: Operand,
    upper: Operand,
    body_fun: Callable[[Any, Any], R],
    init_val: Numbers,
    *,
    unroll: int | bool | None = None,
    reverse: Policy = DEFAULT,
) -> R: ...
@overload
def fori_loop(
    lower: Operand,
    upper: Operand,
    body_fun: Callable[[Array, C], R],
    init_val: C,
    *,
    unroll: int | bool | None = None,
    reverse: Policy = DEFAULT,
) -> R: ...
@overload
def fori_loop(
    lower: Operand,
    upper: Operand,
    body_fun: Callable[[int, C], R],
    init_val: C,
    *,
    unroll: int | bool | None = None,
    reverse: Policy = DEFAULT,
) -> R: ...
def fori_loop(
    lower: Operand,
    upper: Operand,
    body_fun: Callable[..., R],
    init_val: object,
    *,
    unroll: int | bool | None = None,
    reverse: Policy = DEFAULT,
) -> R:
    """`for i in range(lower, upper): value = body_fun(i, value)`; the last value.

    lower, upper:  integers. With Python integers or symbolic sizes the loop is a scan of known
                   length, with traced integers or arrays a while_loop. Two floats are accepted as
                   in JAX: the loop counts in their dtype while below `upper`. Floats whose values
                   are known are truncated first, so that 0.0 to 5.3 has 5 steps, traced 6.
    unroll:        as in scan, for a known length.
    reverse:       as in while_loop, for an unknown length.

    Shapes: lower and upper int[] or float[]; init_val any, unchanged. Types: those of init_val.
    Errors: those of scan and while_loop; ArgumentError if the bounds are neither two integers nor
            two floats, a known one is not finite, or `unroll` is used with an unknown length.

    >>> import rune
    >>> rune.fori_loop(0, 4, lambda i, x: x * 2.0 + i, 1.0)
    Array(27., f32*[], cpu:0)
    """
    require_callable("fori_loop", body_fun)
    first, last = _static(lower), _static(upper)
    if first is None and last is None:
        first, last = _truncated(_bound(lower)), _truncated(_bound(upper))
    if first is not None and last is not None:
        length = _length(first, last)
        if length is not None:
            return _counted(first, length, body_fun, init_val, unroll)
    # A loop of unknown length has no steps to write out while it is traced.
    if unroll is not None:
        raise ArgumentError("fori_loop: cannot unroll a loop whose length is not known")
    return _counted_until(lower, upper, body_fun, init_val, reverse)


def _counted_until(lower: Operand, upper: Operand, body_fun: Callable[..., R], init_val: object, reverse: Policy) -> R:
    """The loop as a while_loop, for bounds that are known only when it runs."""
    # The counter starts at `start` and keeps its dtype, so `stop` must fit into that.
    begin = _bound(lower)
    start, stop = _of_one_dtype(begin, _bound(upper))

    # The user's function sees a counter as weak as `lower`, unless promotion changed its dtype.
    if type_of(begin).weak and type_of(begin).dtype == type_of(start).dtype:
        start = begin

    # The counter is the first leaf of the carry, and messages do not mention it.
    def step(state: tuple[Any, Any]) -> Any:
        i, value = state
        return i + 1, body_fun(i, value)

    init = (start, init_val)
    return _while_named(_counting(init), lambda s: s[0] < stop, step, init, reverse)[1]


def _counting(init: tuple[object, object]) -> Carry:
    """A carry after a counter that the user does not see."""
    return Carry("fori_loop", flatten_values(init)[1], prefix="[1]")


def _static(bound: Any) -> Size | None:
    """A bound that is known while tracing, or None."""
    if isinstance(bound, Dim):
        return bound
    # To Python a bool is an integer, but True is not a count.
    is_integer = isinstance(bound, int | np.integer) and not isinstance(bound, bool)
    return operator.index(bound) if is_integer else None


def _truncated(bound: Value) -> int | None:
    """A float whose value is known, without its fraction; None for any other bound."""
    value = bound.known() if isinstance(bound, ValueTracer) else bound
    if value is None or isinstance(value, Tracer):
        return None
    if type_of(value).shape or type_of(value).dtype not in dtypes.FLOATING:
        return None
    number = float(np.asarray(value))
    if not math.isfinite(number):
        raise ArgumentError(f"fori_loop: cannot count to {number} (a finite number required)")
    return int(number)


def _of_one_dtype(lower: Value, upper: Value) -> list[Value]:
    """Bounds that are not both known, promoted. Errors: ArgumentError if their kinds differ."""
    types = type_of(lower), type_of(upper)
    kinds = dtypes.INTEGER, dtypes.FLOATING
    if not any(all(not t.shape and t.dtype in kind for t in types) for kind in kinds):
        requirement = "two integers or two floats of rank 0 required"
        raise ArgumentError(f"fori_loop: cannot count from {types[0]} to {types[1]} ({requirement})")
    return promoted("fori_loop", lower, upper)


def _length(lower: Size, upper: Size) -> Size | None:
    """The number of steps; None if it cannot be decided which bound is larger."""
    if dims.at_most(upper, lower):
        return 0
    return upper - lower if dims.at_most(lower, upper) else None


def _bound(bound: Operand) -> Value:
    if isinstance(bound, Dim):
        return size_value(bound, dtypes.i32)
    (value,) = value_leaves("fori_loop", [bound], tree.structure(bound))
    return value


def _counted(
    lower: Size, length: Size, body_fun: Callable[[Any, Any], R], init_val: object, unroll: int | bool | None
) -> R:
    def step(state: tuple[Any, Any], _: None) -> tuple[Any, None]:
        i, value = state
        return (i + 1, body_fun(i, value)), None

    # The program is named after the user's function, not after this wrapper.
    step.__name__ = name_of(body_fun, "body")
    init, steps = (_bound(lower), init_val), 1 if unroll is None else unroll
    (_, value), _ = scan_named(_counting(init), step, init, None, length, False, steps)
    return value
