"""Memory: no two live values share a byte, and the arena is hardly larger than what is alive.

Placement over random lifetimes first, then plans of programs: in-place results, donation, copies,
symbolic sizes; last, that the check of a finished plan finds what is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dims, dtypes, ops
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import CheckError, DimensionError
from rune.lowering import arena
from rune.lowering.arena import ALIGNMENT, Block, live_peak, place
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Copy, Launch, Slot, Space
from rune.lowering.plan_check import check_overlap
from rune.lowering.stages import lower, stages
from tests.lowering import models
from tests.support.lowering import PLAIN, WITH_DOT, agree, evaluate, f32, program_of, random_arguments, run_plan
from tests.support.random_programs import random_program
from tests.support.work import calls

lifetimes = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(1, 100)), max_size=40)


def blocks_of(lives: list[tuple[int, int, int]]) -> list[Block]:
    return [Block((), first, first + length, size * ALIGNMENT) for first, length, size in lives]


@pytest.mark.parametrize("most_compared", [arena.MOST_COMPARED, 0])
@given(lives=lifetimes)
def test_blocks_alive_together_never_share_a_byte(most_compared, lives):
    with mock.patch.object(arena, "MOST_COMPARED", most_compared):
        placements, total = place(blocks_of(lives))

    for n, a in enumerate(placements):
        assert a.offset % ALIGNMENT == 0
        assert a.offset + a.block.bytes <= total
        for b in placements[n + 1 :]:
            if a.block.first <= b.block.last and b.block.first <= a.block.last:
                apart = a.offset + a.block.bytes <= b.offset or b.offset + b.block.bytes <= a.offset
                assert apart


def test_the_arena_is_hardly_larger_than_the_peak_of_live_bytes():
    ratios: list[Any] = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        lives = [
            (int(a), int(d), int(s))
            for a, d, s in zip(rng.integers(0, 60, 50), rng.geometric(0.2, 50), rng.integers(1, 200, 50))
        ]
        placements, total = place(blocks_of(lives))
        ratios.append(dims.evaluate(total, {}) / dims.evaluate(live_peak(placements), {}))

    assert np.mean(ratios) <= 1.08
    assert np.quantile(ratios, 0.95) <= 1.15


def test_a_chain_needs_two_buffers():
    _, total = place([Block((), k, k + 1, 4096) for k in range(20)])

    assert total == 8192


def test_very_many_blocks_are_placed_in_the_order_of_their_steps_and_packed_well():
    count = 3 * arena.MOST_COMPARED
    rng = np.random.default_rng(3)
    sizes = (64 * rng.choice([1, 2, 3, 16, 100], count)).tolist()
    ends = (np.arange(count) + rng.geometric(0.05, count)).tolist()
    blocks = [Block((), k, end, size) for k, (end, size) in enumerate(zip(ends, sizes))]

    placements, total = place(blocks)

    assert dims.evaluate(total, {}) <= 1.3 * dims.evaluate(live_peak(placements), {})


def test_the_work_of_placing_blocks_that_are_all_alive_is_about_linear():
    # As what a derivative keeps of a long program: it is needed in the opposite order.
    def work(count: int) -> int:
        blocks = [Block((), k, 2 * count - k, 64 + k % 7 * 64) for k in range(count)]
        return calls(lambda: place(blocks))

    few, many = arena.MOST_COMPARED + 1, 4 * arena.MOST_COMPARED

    assert work(many) < 6 * work(few)


@given(st.integers(0, 1 << 20))
def test_a_random_program_has_a_plan_without_overlap(seed: int):
    plan = lower(random_program(seed, length=40), WITH_DOT)

    check_overlap(plan)
    assert dims.at_most(plan.live_peak_bytes, plan.arena_bytes)


def mlp(x, *weights):
    for w in weights:
        x = ops.max(models.dot(x, w), ops.mul(x, x))
    return x


def test_the_plan_of_a_network_is_within_the_bar():
    types = [f32(64, 64)] * 9

    plan = lower(program_of(mlp, *types), WITH_DOT)

    assert plan.arena_bytes <= 1.15 * plan.live_peak_bytes


# --- in place, donation, copies ---------------------------------------------------------------


def test_an_elementwise_result_takes_the_place_of_an_operand_that_dies():
    def function(x, w):
        return models.dot(ops.tanh(models.dot(x, w)), w)

    plan = lower(program_of(function, f32(64, 64), f32(64, 64)), WITH_DOT)

    assert plan.arena_bytes == 64 * 64 * 4
    check_overlap(plan)


def test_an_operand_that_is_used_again_keeps_its_place():
    def function(x, w):
        y = models.dot(x, w)
        return models.dot(models.dot(ops.tanh(y), w), y)

    program = program_of(function, f32(64, 64), f32(64, 64))
    plan = lower(program, WITH_DOT)

    args = random_arguments(program)
    agree(evaluate(program, args), run_plan(plan, args), relative=1e-4)
    assert plan.arena_bytes > 64 * 64 * 4


def test_a_transposed_read_is_never_in_place():
    def function(x, w):
        return models.dot(ops.tanh(ops.transpose(models.dot(x, w), permutation=(1, 0))), w)

    plan = lower(program_of(function, f32(64, 64), f32(64, 64)), WITH_DOT)

    assert plan.arena_bytes == 2 * 64 * 64 * 4


def step_of_sgd(p, g):
    return ops.sub(p, ops.mul(g, g))


def test_a_donated_argument_lends_its_memory_to_a_result_of_its_type():
    plan = lower(program_of(step_of_sgd, f32(8), f32(8)), PLAIN, donated=(0,))

    assert plan.donations == ((0, 0),)


def test_without_donation_no_memory_is_reused():
    assert lower(program_of(step_of_sgd, f32(8), f32(8)), PLAIN).donations == ()


def test_a_donated_argument_that_is_read_elsewhere_in_the_kernel_is_kept():
    def function(x):
        return ops.add(x, ops.reverse(x, axes=(0,)))

    assert lower(program_of(function, f32(8)), PLAIN, donated=(0,)).donations == ()


def test_a_donated_argument_that_is_returned_is_kept():
    assert lower(program_of(lambda x: (x, ops.neg(x)), f32(8)), PLAIN, donated=(0,)).donations == ()


def test_a_donated_argument_of_another_type_is_kept():
    program = program_of(lambda x: ops.reduce_sum(x, axes=(1,)), f32(8, 8))

    assert lower(program, PLAIN, donated=(0,)).donations == ()


def test_an_update_takes_the_donated_argument_before_any_other_memory():
    # The gradient dies in the same kernel; the parameter is what was offered.
    def function(p, x, y):
        return ops.sub(p, models.dot(ops.transpose(x, permutation=(1, 0)), y))

    program = program_of(function, f32(64, 64), f32(64, 64), f32(64, 64))

    assert lower(program, WITH_DOT, donated=(0,)).donations == ((0, 0),)
    assert lower(program, WITH_DOT).arena_bytes == 0  # else the gradient lies in the result


def test_a_value_that_becomes_a_result_is_written_into_the_result_from_the_start():
    def function(x, w):
        return ops.tanh(models.dot(x, w))

    program = program_of(function, f32(64, 64), f32(64, 64))
    plan = stages(program, WITH_DOT, check=True).plan

    assert plan.arena_bytes == 0
    args = random_arguments(program)
    agree(evaluate(program, args), run_plan(plan, args), relative=1e-4)


def test_donated_memory_may_be_used_again_before_a_later_result():
    def function(x, w):
        y = models.dot(x, w)  # x dies here, long before the result is written
        return models.dot(ops.tanh(models.dot(y, w)), y)

    plan = lower(program_of(function, f32(64, 64), f32(64, 64)), WITH_DOT, donated=(0,))

    assert plan.donations == ((0, 0),)


def test_inputs_and_duplicates_among_the_results_are_copied():
    def function(x):
        y = ops.neg(x)
        return x, y, y

    program = program_of(function, f32(8))
    plan = lower(program, PLAIN)

    assert sum(isinstance(s, Copy) for s in plan.steps) == 2
    args = random_arguments(program)
    agree(evaluate(program, args), run_plan(plan, args), relative=0)


# --- symbolic sizes ---------------------------------------------------------------------------

n = symbol("n", 1, 4096)


def test_offsets_of_symbolic_values_are_expressions_that_never_overlap():
    def function(x, w):
        y = models.dot(x, w)
        return models.dot(models.dot(ops.tanh(y), w), ops.transpose(w, permutation=(1, 0))), y

    types = ArrayType((n, 64), dtypes.f32), f32(64, 64)
    plan = stages(program_of(function, *types), WITH_DOT, check=True).plan

    assert not isinstance(plan.arena_bytes, int)
    assert [(s.name, s.argument, s.axis) for s in plan.size_sources] == [("n", 0, 0)]


def test_equal_symbolic_sizes_share_memory():
    def function(x, w):
        for _ in range(6):
            x = models.dot(x, w)
        return x

    types = ArrayType((n, 64), dtypes.f32), f32(64, 64)
    plan = lower(program_of(function, *types), WITH_DOT)

    assert dims.evaluate(plan.arena_bytes, {"n": 100}) == 2 * 100 * 64 * 4


def test_a_size_that_no_argument_determines_is_an_error():
    program = program_of(lambda x: ops.neg(x), ArrayType((n // 2,), dtypes.f32))

    with pytest.raises(DimensionError, match=r"the size n .*cannot be read off .*f32\[n//2\]"):
        lower(program, PLAIN)


# --- the check --------------------------------------------------------------------------------


def two_dots() -> Any:
    def function(x, w):
        return models.dot(models.dot(models.dot(x, w), w), w)

    return lower(program_of(function, f32(64, 64), f32(64, 64)), WITH_DOT)


def plan_with_offset(plan: Any, number: int, offset: int) -> Any:
    """The plan with the arena slots of one step's results moved."""
    step = plan.steps[number]
    outputs = tuple(replace(s, offset=offset) for s in step.outputs)
    later = [
        replace(s, inputs=tuple(outputs[0] if x == step.outputs[0] else x for x in s.inputs))
        for s in plan.steps[number + 1 :]
    ]
    steps = (*plan.steps[:number], replace(step, outputs=outputs), *later)
    return replace(plan, steps=steps, arena_bytes=1 << 20)


def test_check_finds_two_live_values_on_the_same_bytes():
    plan = two_dots()
    first = plan.steps[0].outputs[0].offset

    with pytest.raises(CheckError, match="cannot keep arena"):
        check_overlap(plan_with_offset(plan, 1, first + 64))


def test_an_unread_output_of_a_call_is_dead_after_it():
    def call(target: Slot, source: Slot) -> Any:
        return replace(plan.steps[0], outputs=(target,), inputs=(source, source))

    plan = two_dots()
    x = Slot(Space.ARGUMENT, f32(64, 64), 0)
    low, middle, high = (Slot(Space.ARENA, x.type, offset=offset) for offset in (0, 64, 1 << 16))
    result = Slot(Space.RESULT, x.type, 0)
    steps = (call(middle, x), call(low, x), call(high, low), call(middle, high), call(result, middle))

    check_overlap(replace(plan, steps=steps, arena_bytes=1 << 20))
    with pytest.raises(CheckError, match="cannot keep arena"):
        check_overlap(replace(plan, steps=(*steps, call(result, low)), arena_bytes=1 << 20))


@pytest.mark.parametrize(("count", "is_whole"), [(16, True), (15, False)])
def test_a_fully_written_unread_output_of_a_kernel_is_dead_after_it(count: int, is_whole: bool):
    code = parse(f"code k(x: read f32[16], y: write f32[16]) {{ for i in {count} grid {{ store y[i] = x[i] }} }}")
    x, result = Slot(Space.ARGUMENT, f32(16), 0), Slot(Space.RESULT, f32(16), 0)
    low, middle, high = (Slot(Space.ARENA, x.type, offset=offset) for offset in (0, 32, 128))
    pairs = ((x, middle), (x, low), (low, high), (high, middle), (middle, result))
    steps = tuple(Launch("k", pair) for pair in pairs)
    plan = replace(two_dots(), steps=steps, kernels={"k": code}, arena_bytes=1 << 10)

    if is_whole:
        check_overlap(plan)
        return
    with pytest.raises(CheckError, match="cannot keep arena"):
        check_overlap(plan)


def test_check_detects_a_read_of_unwritten_memory():
    plan = two_dots()

    with pytest.raises(CheckError, match="nothing was written there"):
        check_overlap(replace(plan, steps=plan.steps[1:]))


def test_check_finds_a_value_outside_the_arena():
    with pytest.raises(CheckError, match="the arena at 64"):
        check_overlap(replace(two_dots(), arena_bytes=64))


def test_in_place_needs_the_kernels_permission():
    def function(x, w):
        return models.dot(ops.tanh(models.dot(x, w)), w)

    plan = lower(program_of(function, f32(64, 64), f32(64, 64)), WITH_DOT)
    strict = {name: replace(code, aliases=()) for name, code in plan.kernels.items()}

    assert any(isinstance(s, Launch) for s in plan.steps)
    with pytest.raises(CheckError, match="cannot keep"):
        check_overlap(replace(plan, kernels=strict))


def test_a_slot_of_a_result_has_the_type_that_its_step_means():
    plan = lower(program_of(lambda x: ops.reshape(ops.neg(x), shape=(8,)), f32(2, 4)), PLAIN)

    (step,) = plan.steps
    assert isinstance(step, Launch)
    assert step.slots[-1] == Slot(Space.RESULT, f32(2, 4), 0)
    assert plan.results == (f32(8),)
