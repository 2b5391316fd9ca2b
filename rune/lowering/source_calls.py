"""Kernels that users wrote, as equations of programs and steps of plans.

Before   %1 = scale %0 {factor=2.0}
After    %1 = source_call %0 {kernel=scale[4 of 256], ...}    on a device of its language
Plan     call cuda_source {kernel=scale[4 of 256]} result 0 <- argument 0

Such a kernel is never fused: its operands and results are complete arrays in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.source import Bound, Source, bind_source
from rune.core.values import Params, Value
from rune.lowering.plan import Call, Step

source_call = Primitive("source_call", "source", lambda *_types, results, **_: tuple(results), multiple_results=True)


def write_source_call(source: Source, primitive: Primitive, args: Sequence[Value], params: Params) -> object:
    """Bind the kernel in place of the primitive.

    Errors: ArgumentError if the launch is not valid.
    """
    types = [type_of(a) for a in args]
    result_types = primitive.type_rule(*types, **params)
    kernel = bind_source(source, primitive.name, types, params)
    results = tuple(result_types) if primitive.multiple_results else (result_types,)
    outs = source_call(*args, kernel=kernel, results=results)
    return outs if primitive.multiple_results else outs[0]


def kernel_of(call: Call) -> Bound:
    """The kernel that a step calls."""
    kernel = dict(call.parameters)["kernel"]
    assert isinstance(kernel, Bound)
    return kernel


def is_source(step: Step) -> TypeGuard[Call]:
    """Whether a step runs a kernel that a user wrote."""
    return isinstance(step, Call) and isinstance(dict(step.parameters).get("kernel"), Bound)
