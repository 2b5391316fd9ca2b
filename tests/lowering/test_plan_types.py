"""The use of a buffer by a step has a type, which is printed, parsed and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends import device_named
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import CheckError
from rune.lowering.plan import Call, Loop, Plan, Slot, Space, all_steps
from rune.lowering.plan_text import parse, to_text
from rune.lowering.plan_types import check_types
from rune.lowering.stages import lower, stages
from tests.support.lowering import PLAIN, f32, program_of

TARGET = device_named("cpu").target


def centred(x: Any) -> Any:
    """Its result is the sorted array, in another shape."""
    return (x.ravel() - rnp.sort(x.ravel())[4]).reshape(2, 99)


def sorting() -> Plan:
    return stages(rune.make_program(centred)(f32(2, 99)), TARGET).plan


def meaning(plan: Plan, change: Callable[[Slot], Slot]) -> Plan:
    """The plan with other operands of its calls."""

    def changed(step: Any) -> Any:
        if not isinstance(step, Call):
            return step
        return replace(step, inputs=tuple(map(change, step.inputs)))

    return replace(plan, steps=tuple(map(changed, plan.steps)))


def test_a_plan_marks_a_use_of_a_result_in_another_shape():
    (call,) = (s for s in all_steps(sorting()) if isinstance(s, Call))

    assert call.inputs == (Slot(Space.RESULT, f32(198), 0),)
    assert "arena[0]:f32[198] <- result 0:f32[198]" in to_text(sorting())


def test_a_host_call_whose_operand_has_the_shape_of_the_buffer_is_refused():
    broken = meaning(sorting(), lambda slot: replace(slot, type=f32(2, 99)))

    with pytest.raises(CheckError, match=r"cannot give result 0 to sort as f32\[2,99\]"):
        check_types(broken)


def test_a_use_of_other_bytes_than_the_buffer_has_is_refused():
    broken = meaning(sorting(), lambda slot: replace(slot, type=f32(199)))

    with pytest.raises(CheckError, match=r"cannot use result 0 as f32\[199\] \(step 1"):
        check_types(broken)


def test_uses_within_loops_are_checked_too():
    def function(x: Any) -> Any:
        return rune.lax.fori_loop(0, 3, lambda _, x: centred(x), x)

    plan = stages(rune.make_program(function)(f32(2, 99)), TARGET).plan
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    broken = replace(loop, body=meaning(loop.body, lambda slot: replace(slot, type=f32(198, 1))))
    check_types(plan)

    with pytest.raises(CheckError, match=r"to sort as f32\[198,1\]"):
        check_types(replace(plan, steps=(broken,)))


@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_a_reshaped_result_is_read_back_from_its_text(shape: tuple[int, ...]):
    plan = lower(program_of(lambda x: rnp.reshape(rnp.exp(x), shape), f32(2, 3)), PLAIN)

    assert f"result 0:{f32(2, 3)}" in to_text(plan)
    assert parse(to_text(plan)) == plan


def test_a_plan_over_complex_arguments_is_read_back_from_its_text():
    plan = lower(program_of(lambda x: x * x, ArrayType((3,), dtypes.c64)), PLAIN)

    assert "argument 0:f32[3,2]" in to_text(plan)
    assert parse(to_text(plan)) == plan


def test_a_symbolic_use_is_read_back_and_checked():
    n = symbol("n", 1, 64)
    plan = lower(program_of(lambda x: rnp.reshape(rnp.exp(x), (-1,)), ArrayType((n, 3), dtypes.f32)), PLAIN)

    assert parse(to_text(plan)) == plan
    check_types(plan)
