"""Check the types with which the steps of a plan use buffers.

    result 0: f32[2,3]
    0: call callback {sort} arena[0]:f32[6] <- result 0:f32[6]

An argument or result that a step uses has as many bytes as were declared, in whatever shape. A
Python function takes and returns exactly the types in the program. A kernel takes the dtypes and
numbers of elements of its parameters.

Cost: linear in the number of slots.
"""

from __future__ import annotations

from typing import NoReturn

from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.errors import CheckError
from rune.lowering.arena import type_bytes
from rune.lowering.host_calls import HostFunction
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.plan import Call, Launch, Plan, Slot, buffer_type, inner_plans, slots_of
from rune.lowering.plan_text import slot_text


def check_types(plan: Plan) -> None:
    """Verify that every use of a buffer has a type that fits the buffer and the step.

    Errors: CheckError "check_types: cannot give result 0 to sort as f32[2,3] (step 1 of f; ...)".
    """
    for number, step in enumerate(plan.steps):
        where = f"step {number} of {plan.name}"
        for slot in slots_of(step):
            _check_bytes(plan, slot, where)
        match step:
            case Launch(kernel=kernel):
                _check_launch(plan, step, plan.kernels[kernel], where)
            case Call():
                _check_call(plan, step, where)
        for inner in inner_plans(step):
            check_types(inner)


def _check_bytes(plan: Plan, slot: Slot, where: str) -> None:
    declared_type = buffer_type(plan, slot)
    # Refused only if surely different: symbolic sizes may be equal without a proof.
    if declared_type is not None and dims.equal(type_bytes(declared_type), type_bytes(slot.type)) is False:
        name = f"{slot.space.value} {slot.number}"
        raise CheckError(f"check_types: cannot use {name} as {slot.type} ({where}; it is {declared_type})")


def _check_launch(plan: Plan, step: Launch, code: KernelCode, where: str) -> None:
    for param, slot in zip(code.params, step.slots, strict=True):
        is_same_size = dims.equal(param.size, dims.product(slot.type.shape)) is not False
        if param.dtype != slot.type.dtype or not is_same_size:
            _refuse(plan, slot, step, f"{dtypes.short(param.dtype)}[{param.size}]", where)


def _check_call(plan: Plan, step: Call, where: str) -> None:
    function = dict(step.parameters).get("function")
    if not isinstance(function, HostFunction):
        return
    # In the order of `slots_of`: outputs, inputs.
    known_types = (*function.results, *function.operands)
    for slot, type in zip(slots_of(step), known_types, strict=True):
        if not _is_same(slot.type, type):
            _refuse(plan, slot, step, str(type), where)


def _is_same(a: ArrayType, b: ArrayType) -> bool:
    # Weakness matters only for promotion, which is over here.
    return a.strong() is b.strong()


def _refuse(plan: Plan, slot: Slot, step: Launch | Call, accepted_type: str, where: str) -> NoReturn:
    name = step.kernel if isinstance(step, Launch) else dict(step.parameters)["function"]
    why = f"{where}; it takes {accepted_type}"
    raise CheckError(f"check_types: cannot give {slot_text(plan, slot)} to {name} as {slot.type} ({why})")
