"""linear_transpose: the transpose of a linear function, without evaluating it anywhere.

A linear function is its own derivative, so the derivative is transposed; it must not depend on the
point where it is taken, and every operation in it must have a transpose. An affine function x + c
counts as linear, as in JAX: the derivative drops the constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import dtypes, tree
from rune.core.dead_code import prune
from rune.core.higher import equation_program, map_subprograms
from rune.core.lists import pick
from rune.core.program import Equation, Program, Var, substitute
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.ops import stop_gradient
from rune.transforms.arguments import function_name, key_path, refuse_other, require_callable
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.derivatives.held_programs import jvp_program
from rune.transforms.derivatives.tangents import cotangents_of, filled_as
from rune.transforms.derivatives.transpose import backward
from rune.transforms.eval_shape import leaf_types

NAME = "linear_transpose"


def linear_transpose(
    fun: Callable[..., object], *primals: object, reduce_axes: Sequence[object] = ()
) -> Callable[..., Any]:
    """The transposed function: from a cotangent of the result to those of the arguments.

    primals: arrays or ShapeDtypeStructs; only their types count.
    Types:   floating or complex arguments; over the complex numbers nothing is conjugated.
    Errors:  TransformError names the operation that is not linear in the arguments.

    >>> import rune, rune.numpy as rnp
    >>> rune.linear_transpose(lambda x: 2.0 * x, rune.ShapeDtypeStruct((2,), "f32"))(rnp.ones(2))
    (Array([2., 2.], f32[2], cpu:0),)
    """
    require_callable(NAME, fun)
    refuse_other(NAME, reduce_axes=(tuple(reduce_axes), ()))
    leaves, treedef = tree.flatten(primals)
    types = leaf_types(NAME, leaves, treedef)
    _require_inexact(types, treedef)
    flat = Flat(NAME, fun, treedef)
    closure = stage(flat, types, function_name(fun))
    out_tree, out_types = flat.out_tree, closure.program.output_types
    # Captured values come first among the inputs; they are constants of the linear map.
    linear, nonzero = _derivative(_with_identities(closure.program), len(closure.captured))
    known = dict(zip(linear.inputs, closure.captured, strict=False))

    def transposed(cotangent: object) -> tuple[Any, ...]:
        cts = cotangents_of(NAME, out_types, out_tree, cotangent)
        return tree.unflatten(treedef, map(filled_as, types, backward(linear, known, pick(cts, nonzero))))

    return transposed


def _with_identities(program: Program) -> Program:
    """The program without `stop_gradient`, an identity whose derivative is declared to be zero."""
    program = map_subprograms(program, _with_identities)
    stops = [e for e in program.equations if e.primitive is stop_gradient]
    if not stops:
        return program
    operands = {e.results[0]: e.operands[0] for e in stops}
    return substitute(program, operands, (e for e in program.equations if e.primitive is not stop_gradient))


def _require_inexact(types: Sequence[ArrayType], treedef: tree.TreeDef) -> None:
    for number, type in enumerate(types):
        if type.dtype not in dtypes.INEXACT:
            raise TransformError(
                f"{NAME}: cannot transpose with respect to argument{key_path(number, treedef)} "
                f"of type {type} (floating or complex dtype required)"
            )


def _derivative(program: Program, captured_count: int) -> tuple[Program, tuple[bool, ...]]:
    """captured values, tangents -> nonzero tangents of the outputs; and which outputs have one."""
    # Checked first, for an error that names the operation: jvp would just return zero for some.
    _require_linear(program, [i >= captured_count for i in range(len(program.inputs))])
    mask = tuple(i >= captured_count for i in range(len(program.inputs)))
    # The derivative of a linear function is the function itself, written in linear equations only.
    jvp, nonzero = jvp_program(program, mask)
    tangents_alone = [False] * len(program.outputs) + [True] * sum(nonzero)
    # If primals are still read once the outputs are pruned, the derivative depends on them.
    tangents, live_inputs = prune(jvp, tangents_alone)
    count = len(program.inputs)
    if any(live_inputs[captured_count:count]):
        raise TransformError(
            f"{NAME}: cannot transpose {program.name} (it is not linear: its derivative depends on the argument)",
            frame=_culprit(program, captured_count),
        )
    inputs = (*jvp.inputs[:captured_count], *jvp.inputs[count:])
    return Program(inputs, tangents.equations, tangents.outputs, jvp.constants), nonzero


def _require_linear(program: Program, linear: Sequence[bool]) -> None:
    """Refuse an equation that depends on a linear input and can never be transposed."""
    # An explicit stack, because programs may be nested deeply.
    pending = [(program, tuple(linear))]
    while pending:
        inner_program, mask = pending.pop()
        live = {v for v, is_linear in zip(inner_program.inputs, mask, strict=True) if is_linear}
        for equation in _needed(inner_program):
            depends = tuple(a in live for a in equation.operands)
            if not any(depends):
                continue
            live.update(equation.results)
            inner = equation_program(equation)
            if inner is not None:
                pending.append((inner, depends))
            elif equation.primitive.transpose is None:
                raise TransformError(
                    f"{NAME}: cannot transpose {equation.primitive} (it is not linear)", frame=equation.frame
                )


def _needed(program: Program) -> tuple[Equation, ...]:
    return prune(program, [True] * len(program.outputs))[0].equations


def _culprit(program: Program, captured_count: int) -> Any:
    """The line of the first equation in which two operands depend on the arguments."""
    live: set[Any] = set(program.inputs[captured_count:])
    for equation in _needed(program):
        depends = [isinstance(a, Var) and a in live for a in equation.operands]
        # As in x * x, which is linear in each factor but not in both.
        if sum(depends) > 1:
            return equation.frame
        if any(depends):
            live.update(equation.results)
    return None
