"""Runner-up: the cost model's predictions for schedules that a kernel does not use."""

from __future__ import annotations

import pytest

import rune
import rune.numpy as rnp
from rune.lowering.build import build
from rune.lowering.runner_up import Comparison, compared
from rune.lowering.stages import optimised, stages
from tests.lowering.costs.kernels import target

PROGRAMS = {
    "product": (lambda a, b: a @ b, ((67, 131), (131, 257))),
    "row sums": (lambda x: rnp.sum(x, axis=1), ((129, 700),)),
    "transposition": (lambda x: x.T + 1, ((150, 110),)),
}


def comparison(name: str) -> Comparison:
    function, shapes = PROGRAMS[name]
    program = rune.make_program(function)(*(rune.ShapeDtypeStruct(s, "f32") for s in shapes))
    lowering = stages(program, target())
    ((kernel, schedule),) = lowering.schedules.items()
    return compared(lowering.kernels.kernels[kernel], schedule, target())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_runner_up_is_another_schedule_that_the_kernel_can_have(name: str):
    function, shapes = PROGRAMS[name]
    program = rune.make_program(function)(*(rune.ShapeDtypeStruct(s, "f32") for s in shapes))
    (kernel,) = stages(program, target()).kernels.kernels.values()
    result = comparison(name)

    assert result.runner_up is not None
    assert result.runner_up.schedule != result.current.schedule
    optimised(build(kernel, result.runner_up.schedule, target()), target())


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_line_states_what_the_difference_consists_of(name: str):
    result = comparison(name)
    assert result.runner_up is not None
    cost, other = result.current.cost, result.runner_up.cost

    assert result.ratio == other.seconds / cost.seconds
    change = other.parts[result.cause] - cost.parts.get(result.cause, 0)
    assert (change > 0) == (result.ratio > 1)
    assert f"next {result.runner_up.schedule}: {result.ratio:.2f} times as long, by {result.cause}" in str(result)
    assert ("rune.tune measures" in str(result)) == (result.ratio < 1)


def test_loops_that_are_written_have_no_other_schedule():
    program = rune.make_program(rnp.sort)(rune.ShapeDtypeStruct((5000,), "f32"))
    lowering = stages(program, target())
    lines = [str(compared(lowering.kernels.kernels[n], s, target())) for n, s in lowering.schedules.items()]

    assert any(line.endswith("\n  no other schedule") for line in lines)


def test_explain_has_a_comparison_of_each_kernel():
    explanation = rune.explain(lambda x: rnp.sum(rnp.exp(x)))(rnp.ones(1000))
    heads = [line for line in explanation["runners-up"].splitlines() if not line.startswith(" ")]

    assert [head.partition(":")[0] for head in heads] == list(explanation.lowered.schedules)
