"""In-place updates: scatters and window updates write only what changes, and seldom copy.

A value that is not used again is updated in place, and so is a donated argument, such as the carry
of a loop; anything else is copied first. Branches pass on their arguments and update them in place.
The choice depends only on sizes; small arrays are copied by the kernel itself.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import control, dtypes, lax, ops
from rune.backends.shared.executor import ConcreteLoop, all_concrete, concrete
from rune.lowering.kernel.nodes import For
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Invoke, KernelProgram, KernelStep, Repeat, Value
from rune.lowering.plan import Copy, Plan
from rune.lowering.stages import stages
from tests.lowering import models
from tests.support.lowering import (
    WITH_DOT,
    agree,
    evaluate,
    f32,
    i32,
    number,
    program_of,
    random_arguments,
    run_kernel_program,
    run_plan,
)
from tests.support.random_programs import random_program

ROWS = ops.IndexDims((1,), (0,), (0,))


def scatter(x, at, u):
    return ops.scatter_add(x, at, u, dims=ROWS, slice_sizes=(1, 64), mode="fill")


def kinds(plan) -> list[str]:
    return [type(s).__name__ for s in plan.steps]


def hold(function, *types, donate_argnums=()):
    program = program_of(function, *types)
    plan = stages(program, WITH_DOT, donate_argnums, check=True).plan
    args = random_arguments(program)
    agree(evaluate(program, args), run_plan(plan, args), relative=1e-4)
    return plan


def test_a_large_scatter_copies_its_operand_and_changes_the_copy():
    plan = hold(scatter, f32(512, 64), i32(8, 1), f32(8, 64))

    assert kinds(plan) == ["Copy", "Launch"]


def test_a_scatter_into_a_value_that_dies_changes_it_in_place():
    def function(x, at, u):
        return scatter(ops.exp(x), at, u)

    plan = hold(function, f32(512, 64), i32(8, 1), f32(8, 64))

    assert kinds(plan) == ["Launch", "Launch"]
    assert plan.arena_bytes == 0


def test_a_scatter_into_a_value_that_is_needed_later_copies_it():
    def function(x, at, u):
        y = ops.exp(x)
        return ops.mul(scatter(y, at, u), y), models.softmax(y)

    assert "Copy" in kinds(hold(function, f32(512, 64), i32(8, 1), f32(8, 64)))


def test_a_scatter_into_a_donated_argument_is_in_place():
    plan = hold(scatter, f32(512, 64), i32(8, 1), f32(8, 64), donate_argnums=(0,))

    assert plan.donations == ((0, 0),)


def test_tiny_changes_of_an_argument_are_in_place_one_after_another():
    def function(x, i, j, u):
        return scatter(scatter(x, i, u), j, u)

    plan = hold(function, f32(32, 64), i32(1, 1), i32(1, 1), f32(1, 64), donate_argnums=(0,))

    loops = [s for kernel in plan.kernels.values() for s in kernel.body if isinstance(s, For)]
    assert {loop.extent for loop in loops} == {64}
    assert plan.arena_bytes == 0


def operands_in_place(program: KernelProgram, step: KernelStep) -> list[Value]:
    """The operands that a step changes in place."""
    assert isinstance(step, Invoke)
    kernel = program.kernels[step.kernel]
    sources = {source for source, _ in kernel.in_place}
    return [v for buffer, v in zip(kernel.inputs, step.operands, strict=True) if buffer.name in sources]


def test_a_chain_of_changes_of_an_argument_may_be_longer_than_a_stack_of_calls():
    def written(x, v):
        for k in range(347):
            x = lax.dynamic_update_slice(x, v[k : k + 1], (np.int32(3 * k),))
        return x

    plan = stages(program_of(written, f32(1049), f32(347)), WITH_DOT).plan

    assert kinds(plan) == ["Copy", *["Launch"] * 347]


def test_a_chain_of_scatters_changes_one_copy_of_its_argument():
    def added(x, v):
        for k in range(61):  # where a link asks twice for the chain before it, this does not end
            x = x.at[v[k].astype(rnp.int32)].add(v[k])
        return x

    plan = stages(program_of(added, f32(1049), f32(61)), WITH_DOT).plan

    assert kinds(plan) == ["Copy", *["Launch"] * 61]


def test_a_carry_is_changed_in_place_after_all_that_reads_it():
    def walk(x):
        return lax.fori_loop(1, 9, lambda i, x: x.at[i].set(rnp.tanh(x[i - 1] + x[i])), x)

    size = 20_011
    program = rune.make_program(rune.grad(lambda x: (walk(x) ** 2).sum()))(f32(size))
    loops = [s for s in stages(program, WITH_DOT).kernels.steps if isinstance(s, Repeat)]

    assert len(loops) == 2
    for loop in loops:
        (carry,) = [v for v in loop.body.inputs if v.type.shape == (size,)]
        readers = [s for s in loop.body.steps if carry in s.operands]
        assert [carry in operands_in_place(loop.body, s) for s in readers] == [False] * (len(readers) - 1) + [True]


def test_an_argument_is_read_by_others_before_it_is_changed_in_place():
    def function(x, i, u):
        return scatter(x, i, u), ops.reduce_sum(ops.exp(x), axes=(0,))

    plan = hold(function, f32(512, 64), i32(8, 1), f32(8, 64), donate_argnums=(0,))

    assert plan.donations == ((0, 0),)
    assert plan.arena_bytes == 0


def test_a_small_window_is_the_only_part_written():
    def function(cache, new, start):
        return ops.dynamic_update_slice(cache, new, start, number(0, dtypes.i32))

    plan = hold(function, f32(512, 64), f32(1, 64), i32(), donate_argnums=(0,))

    (kernel,) = plan.kernels.values()
    assert kinds(plan) == ["Copy", "Launch"]
    assert plan.donations == ((0, 0),)
    (loop,) = kernel.body
    assert isinstance(loop, For)
    assert loop.extent == 64


@pytest.mark.parametrize(("rows", "in_place"), [(32, True), (8, False)], ids=["of many rows", "of few"])
def test_a_row_of_a_small_array_is_written_alone_where_it_is_a_tiny_part(rows: int, in_place: bool):
    def function(x, row, k):
        return ops.dynamic_update_slice(x, row, k, number(0, dtypes.i32))

    plan = hold(function, f32(rows, 512), f32(1, 512), i32(), donate_argnums=(0,))

    (kernel,) = plan.kernels.values()
    (loop, *_) = kernel.body
    assert isinstance(loop, For)
    assert ((0, 0) in plan.donations and loop.extent == 512) == in_place


def test_updates_of_one_cache_follow_each_other_in_place():
    def function(cache, a, b):
        zero = number(0, dtypes.i32)
        once = ops.dynamic_update_slice(cache, a, number(3, dtypes.i32), zero)
        return ops.dynamic_update_slice(once, b, number(4, dtypes.i32), zero)

    plan = hold(function, f32(512, 64), f32(1, 64), f32(2, 64))

    assert kinds(plan) == ["Copy", "Launch", "Launch"]
    assert plan.arena_bytes == 0


@given(st.integers(0, 1 << 20))
def test_random_programs_may_change_everything_in_place(seed: int):
    program = random_program(seed, length=20)
    args = random_arguments(program, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "IN_PLACE", 1)
        patch.setattr(cost, "WINDOW_SHARE", 1)
        lowering = stages(program, WITH_DOT, check=True)

    agree(evaluate(program, args), run_kernel_program(lowering.kernels, args), relative=1e-4)
    agree(evaluate(program, args), run_plan(lowering.plan, args), relative=1e-4)


# --- branches and loops -----------------------------------------------------------------------

SIZE = 5000


def changed(how: str, x, k):
    """One way for a branch to compute a result from an argument f32[SIZE]."""
    match how:
        case "keep":
            return x
        case "set":
            return x.at[k].set(1.0)
        case "scale":
            return x * 2.0
        case _:
            return rnp.flip(x)


def stepped(branches, k, *carries):
    """A loop whose steps choose among branches: each makes result n of argument `a`, some way."""

    def branch(choice):
        return lambda k, *xs: tuple(changed(how, xs[a], k) for a, how in choice)

    def step(k, carries):
        return control.switch(k % len(branches), [branch(b) for b in branches], k, *carries)

    return control.fori_loop(0, k, step, carries)


def copies_in_loops(plan) -> list[int]:
    """The bytes that each step of a loop really copies, except single numbers."""
    loops = [s for s in concrete(plan, {}).steps if isinstance(s, ConcreteLoop)]
    steps = all_concrete(tuple(s for loop in loops for body in (*loop.conditions, *loop.bodies) for s in body))
    return [s.places[0].bytes for s in steps if isinstance(s.step, Copy) and s.places[0].bytes > 4]


def lowered_loop(function, *types) -> Plan:
    return stages(rune.make_program(function)(*types), WITH_DOT, check=True).plan


@pytest.mark.parametrize("how", ["set", "scale"])
def test_a_carry_that_one_branch_changes_and_one_passes_on_is_copied_in_no_step(how: str):
    branches = [[(0, "keep")], [(0, how)], [(0, "set")]]

    plan = lowered_loop(lambda k, x: stepped(branches, k, x), rune.ArrayType((), dtypes.i32), f32(SIZE))

    assert copies_in_loops(plan) == []


def test_a_carry_that_is_read_after_the_branch_is_copied():
    def function(k, x):
        def step(k, x):
            y = control.cond(k > 3, lambda x: x, lambda x: x.at[k].set(1.0), x)
            return rnp.flip(x) + y

        return control.fori_loop(0, k, step, x)

    assert copies_in_loops(lowered_loop(function, rune.ArrayType((), dtypes.i32), f32(SIZE))) == [4 * SIZE] * 4


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("size", [300, SIZE, 20_000])
def test_a_vmapped_loop_that_sets_elements_of_its_carry_copies_it_in_no_step(lanes: int, size: int):
    def loop(start, x):
        return control.while_loop(lambda c: c[0] < size, lambda c: (c[0] + 1, c[1].at[c[0]].set(1.0)), (start, x))

    plan = lowered_loop(rune.vmap(loop), rune.ArrayType((lanes,), dtypes.i32), f32(lanes, size))

    assert copies_in_loops(plan) == []


WAYS = st.tuples(st.integers(0, 2), st.sampled_from(["keep", "set", "scale", "flip"]))
BRANCHES = st.lists(st.lists(WAYS, min_size=3, max_size=3), min_size=2, max_size=3)


@settings(max_examples=15)
@given(BRANCHES, st.integers(0, 7))
def test_branches_that_share_memory_in_any_way_give_what_each_says(branches, steps: int):
    xs = [np.arange(SIZE, dtype=np.float32) + 10_000 * n for n in range(3)]
    expected = list(xs)
    for k in range(steps):
        new = [np.array(expected[a]) for a, _ in branches[k % len(branches)]]
        for x, (_, how) in zip(new, branches[k % len(branches)], strict=True):
            if how == "set":
                x[k] = 1.0
            elif how != "keep":
                x[:] = x * 2.0 if how == "scale" else x[::-1].copy()
        expected = new

    actual = rune.jit(lambda k, *xs: stepped(branches, k, *xs))(steps, *xs)

    for x, y in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(x, y)
