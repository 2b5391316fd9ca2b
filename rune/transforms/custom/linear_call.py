"""linear_call: a linear function with its own transpose.

    %2 = linear_call %0, %1 {program=p, transposed=q, residuals=1}     %2 = p(%0, %1), linear in %1

Both are programs: transposing the equation exchanges them, so transposing twice restores it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rune import tree
from rune.core.higher import HigherOrder
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.types import ArrayType, same_layout
from rune.core.values import Value
from rune.dims import Size
from rune.errors import MissingRule, TransformError
from rune.ops.family import zeros_of
from rune.ops.movement import repeat_lane
from rune.transforms.arguments import array_leaves, function_name
from rune.transforms.batching.batch import batch_program
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.programs import call_rules
from rune.transforms.programs.size_witnesses import own_size

KIND = "linear_call"
Function = Callable[[Any, Any], object]


def linear_call(fun: Function, fun_transpose: Function, residual_args: object, linear_args: object) -> Any:
    """`fun(residual_args, linear_args)`, linear in the latter, with its own transpose.

    fun_transpose(residual_args, cotangent) returns a cotangent of `linear_args`. Neither function
    may close over values that are differentiated, and the residuals are not differentiated.

    Errors: TransformError if the transpose returns a tree or types unlike `linear_args`;
            MissingRule for a derivative with respect to the residuals.

    >>> import rune, rune.numpy as rnp
    >>> def scaled(scale, x):
    ...     return rune.linear_call(lambda s, v: v * s, lambda s, ct: ct * s, scale, x)
    >>> rune.grad(lambda x: scaled(3.0, x))(2.0)
    Array(3., f32*[], cpu:0)
    """
    res_leaves = tree.leaves(residual_args)
    lin_leaves, lin_tree = tree.flatten(linear_args)
    pair = tree.structure((residual_args, linear_args))
    values = array_leaves(KIND, [*res_leaves, *lin_leaves], pair)
    types = [type_of(x) for x in values]
    res_types, lin_types = types[: len(res_leaves)], types[len(res_leaves) :]
    forward = Flat(KIND, fun, pair)
    forward_program = stage(forward, [*res_types, *lin_types], function_name(fun)).closed()
    out_types = [t.to_tangent() for t in forward_program.output_types]
    out = tree.unflatten(forward.out_tree, range(len(out_types)))
    backward = Flat(KIND, fun_transpose, tree.structure((residual_args, out)))
    # Both are traced at once: the equation must hold its own transpose, to be transposed twice.
    transposed_program = stage(backward, [*res_types, *out_types], function_name(fun_transpose)).closed()
    _check(function_name(fun), backward.out_tree, transposed_program, lin_tree, lin_types)
    outs = linear_call_primitive(
        *values, program=forward_program, transposed=transposed_program, residuals=len(res_types)
    )
    return tree.unflatten(forward.out_tree, outs)


def _check(
    name: str,
    in_tree: tree.TreeDef,
    transposed_program: Program,
    lin_tree: tree.TreeDef,
    lin_types: Sequence[ArrayType],
) -> None:
    expected_types = [t.to_tangent() for t in lin_types]
    if in_tree != lin_tree or not all(map(same_layout, transposed_program.output_types, expected_types)):
        actual = ", ".join(map(str, transposed_program.output_types))
        required_text = ", ".join(map(str, expected_types))
        raise TransformError(
            f"{KIND}: cannot use the transpose of {name} (it gives {actual}, and {required_text} is required)"
        )


def _jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, Any]) -> Any:
    count = params["residuals"]
    if any(t is not None for t in tangents[:count]):
        raise MissingRule(f"{KIND}: cannot differentiate {params['program'].name} with respect to its residuals")
    # The equation has an operand for each linear argument, so zeros are written out.
    full_tangents = [
        zeros_of(type_of(p).to_tangent()) if t is None else t
        for p, t in zip(primals[count:], tangents[count:], strict=True)
    ]
    # The equation is linear in these operands, so the derivative is the equation itself on
    # tangents.
    outs = linear_call_primitive(*primals, **params)
    return outs, linear_call_primitive(*primals[:count], *full_tangents, **params)


def _transpose(
    cts: Sequence[Value | None],
    linear: Sequence[bool],
    *inputs: Any,
    program: Program,
    transposed: Program,
    residuals: int,
) -> list[Value | None]:
    if any(linear[:residuals]):
        raise MissingRule(f"{KIND}: cannot transpose {program.name} with respect to its residuals")
    full_cts = [zeros_of(t.to_tangent()) if ct is None else ct for ct, t in zip(cts, program.output_types, strict=True)]
    outs = linear_call_primitive(
        *inputs[:residuals], *full_cts, program=transposed, transposed=program, residuals=residuals
    )
    return [*(None for _ in range(residuals)), *outs]


def _batch(
    batched: Sequence[bool], size: Size, *args: Value, program: Program, transposed: Program, residuals: int
) -> tuple[list[Any], list[bool]]:
    residual_flags, inner = tuple(batched[:residuals]), own_size(size, program)
    # All linear values have lanes, forwards and backwards. An operand without lanes is repeated, so
    # its cotangent is a sum over the lanes.
    lanes = (True,) * (len(args) - residuals)
    lane_operands = [x if b else repeat_lane(x, size) for x, b in zip(args[residuals:], batched[residuals:])]
    forward, _ = batch_program(program, (*residual_flags, *lanes), inner, (True,) * len(program.outputs))
    backward, _ = batch_program(transposed, (*residual_flags, *(True for _ in program.outputs)), inner, lanes)
    operands = [*args[:residuals], *lane_operands]
    outs = linear_call_primitive(*operands, program=forward, transposed=backward, residuals=residuals)
    return outs, [True] * len(outs)


linear_call_primitive = HigherOrder(
    KIND,
    "program",
    call_rules.type_rule,
    calls=call_rules.calls,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
    run=call_rules.run,
    interpret=call_rules.interpret,
    jvp_equation=_jvp,
    vary=call_rules.vary,
)
