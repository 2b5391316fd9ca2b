"""The types of a plan's slots: inside those of legalised kernels, outside those of callers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.legalize.pairs import has_parts
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Step
from rune.records import replace


def outer_types(plan: Plan, program: Program) -> Plan:
    """The plan with the types of arguments and results that `program` had before the split."""
    argument_types = (*program.input_types, *(v.type for v, _ in program.constants))
    if not any(map(has_parts, (*argument_types, *program.output_types))):
        return plan
    return replace(
        plan,
        arguments=tuple(map(_outer, plan.arguments, argument_types)),
        results=tuple(map(_outer, plan.results, program.output_types)),
    )


def _outer(inner: ArrayType, outer: ArrayType) -> ArrayType:
    return outer if has_parts(outer) else inner


def kernel_types(plan: Plan) -> Plan:
    """The plan with every launch's slots in the dtypes that its kernel's parameters have."""
    return replace(plan, steps=tuple(_with_kernel_types(s, plan.kernels) for s in plan.steps))


def _with_kernel_types(step: Step, kernels: Mapping[str, KernelCode]) -> Step:
    match step:
        case Launch(kernel=kernel, slots=slots):
            param_dtypes = (p.dtype for p in kernels[kernel].params)
            return replace(step, slots=tuple(map(_with_dtype, slots, param_dtypes)))
        case Loop(body=body, condition=condition):
            new_condition = condition if condition is None else kernel_types(condition)
            return replace(step, body=kernel_types(body), condition=new_condition)
        case Branch(branches=branches):
            return replace(step, branches=tuple(map(kernel_types, branches)))
        case Call() | Copy():
            return step


def _with_dtype(slot: Slot, dtype: np.dtype) -> Slot:
    return slot if slot.type.dtype == dtype else replace(slot, type=slot.type.with_dtype(dtype))
