"""Plans as text, and the pipeline as a whole: stages, costs, drawings, what is dumped."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import CheckError
from rune.lowering import explain
from rune.lowering.pipeline import kernel_passes, program_passes
from rune.lowering.plan_text import parse, to_text
from rune.lowering.stages import lower, stages
from tests.lowering import models
from tests.support.lowering import PLAIN, WITH_DOT, agree, evaluate, f32, program_of, random_arguments, run_plan
from tests.support.random_programs import random_program


def layer():
    def function(x, w, b):
        return models.dot(models.linear(x, w, b), w)

    return program_of(function, f32(64, 64), f32(64, 64), f32(64), name="layer")


def test_a_plan_shows_memory_and_steps(expect):
    plan = lower(layer(), WITH_DOT, donated=(0,))

    expect(
        to_text(plan, codes=False),
        """
        plan layer on test:0 {
          argument 0: f32[64,64]
          argument 1: f32[64,64]
          argument 2: f32[64]
          result 0: f32[64,64]
          arena 16384 bytes, at least 16384
          donate argument 0 -> result 0
          0: call dot {batch=1, m=64, n=64, k=64, trans_a=False, trans_b=False} arena[0]:f32[64,64] <- argument 0, argument 1
          1: launch add_0 arena[0]:f32[64,64] <- arena[0]:f32[64,64], argument 2
          2: call dot {batch=1, m=64, n=64, k=64, trans_a=False, trans_b=False} result 0 <- arena[0]:f32[64,64], argument 1
        }""",  # noqa: E501
    )


@given(st.integers(0, 1 << 20))
def test_printed_text_is_read_back(seed: int):
    plan = lower(random_program(seed, length=20), WITH_DOT, donated=(0,))

    assert parse(to_text(plan)) == plan


def test_a_symbolic_plan_is_read_back():
    n = symbol("n", 1, 4096)
    types = ArrayType((n, 64), dtypes.f32), f32(64, 64), f32(64)

    plan = lower(program_of(models.linear, *types), WITH_DOT)

    assert "size n = argument 0 axis 0 in 1..4096" in to_text(plan)
    assert parse(to_text(plan)) == plan


def test_text_that_is_not_a_plan_is_refused():
    with pytest.raises(CheckError, match="cannot read a plan"):
        parse("plan f on cpu:0 {\n  jump\n}")


# --- the pipeline -----------------------------------------------------------------------------


def test_every_stage_prints():
    lowering = stages(layer(), WITH_DOT)

    for stage in explain.STAGES:
        assert lowering.text(stage)
    assert "1 kernel, 2 calls, 0 copies" in str(lowering)
    with pytest.raises(ValueError, match="cannot show 'soup'"):
        lowering.text("soup")


def test_costs_are_those_of_the_steps():
    costs = stages(layer(), WITH_DOT).costs()

    assert (costs.launches, costs.calls) == (1, 2)
    assert costs.bytes_moved == 4 * (8 * 64 * 64 + 64)
    assert costs.flops == 2 * 2 * 64**3 + 64 * 64
    assert costs.arena_bytes == 64 * 64 * 4


def test_chosen_stages_are_dumped(monkeypatch, capsys):
    monkeypatch.setenv("RUNE_DUMP", "kernels,plan")

    stages(layer(), WITH_DOT)

    dump = capsys.readouterr().err
    assert "kernels layer(" in dump
    assert "plan layer on test:0" in dump
    assert "program layer(" not in dump


def test_nothing_is_dumped_unasked(monkeypatch, capsys):
    monkeypatch.delenv("RUNE_DUMP", raising=False)

    stages(layer(), WITH_DOT)

    assert capsys.readouterr().err == ""


EVERY = [program_passes(PLAIN), kernel_passes(PLAIN)]


@pytest.mark.parametrize("passes", EVERY, ids=["program", "code"])
def test_pass_names_are_unique(passes):
    assert len({p.name for p in passes}) == len(passes)


def subsets(items: Sequence[int]) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(items), max_size=len(items))


@given(st.integers(0, 1 << 20), st.data())
def test_any_selection_of_passes_keeps_the_values(seed: int, data):
    from rune.lowering import memory
    from rune.lowering.build import build_by_default
    from rune.lowering.kernel.check import check
    from rune.lowering.kernelize import kernelize
    from rune.lowering.order import with_steps_ordered
    from rune.lowering.passes import run_passes

    program = random_program(seed)
    passes = kernel_passes(WITH_DOT)
    selection = [passes[k] for k in data.draw(subsets(range(len(passes))))]

    kernels = kernelize(program, WITH_DOT)
    kernels = with_steps_ordered(kernels) if data.draw(st.booleans()) else kernels
    codes = {
        name: run_passes(selection, build_by_default(kernel, WITH_DOT).code, check)
        for name, kernel in kernels.kernels.items()
    }
    plan = memory.plan_memory(kernels, codes, "test:0")

    args = random_arguments(program, seed)
    agree(evaluate(program, args), run_plan(plan, args), relative=1e-4)
