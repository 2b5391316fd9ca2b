"""Fusion and storing: what shares a kernel, what is stored, and why not.

The cost function alone; which values it stores in graphs; the laws of grouping (convex, every
root in one group); the reasons that are given; and that compiling stays linear.
"""

from __future__ import annotations

import functools
import re
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import ops
from rune.core.program import Var
from rune.dims import symbol
from rune.lowering.kernelize import cost, groups, kernelize
from rune.lowering.kernelize.cost import LONE_WORK, Granularity
from rune.lowering.kernelize.groups import fuse
from rune.lowering.kernelize.roots import find_roots
from rune.lowering.kernelize.stored import choose
from rune.lowering.kernelize.two_step import Parallelism, split_reductions
from rune.lowering.kernels import Fill, Let, Reduce, Write
from rune.lowering.kernels_check import check
from rune.lowering.kernels_text import program_text
from rune.lowering.stages import stages
from rune.ops.memory import in_memory
from tests.lowering import models
from tests.support.gpus import H100
from tests.support.lowering import (
    PLAIN,
    WITH_DOT,
    agree,
    evaluate,
    f32,
    i32,
    number,
    only_kernel,
    program_of,
    random_arguments,
    run_kernel_program,
    target,
)
from tests.support.random_programs import random_program
from tests.support.work import calls

# --- the cost function ------------------------------------------------------------------------

LARGE = 1 << 20


def test_a_value_that_is_used_once_is_not_stored():
    assert not cost.is_worth_storing(20, loads=1, elements=LARGE, evaluations=LARGE)


def test_a_dear_value_that_is_used_twice_is_stored():
    assert cost.is_worth_storing(20, loads=1, elements=LARGE, evaluations=2 * LARGE)


def test_a_cheap_value_that_is_used_twice_is_computed_again():
    assert not cost.is_worth_storing(1, loads=2, elements=LARGE, evaluations=2 * LARGE)


def test_a_cheap_value_that_is_used_often_is_stored():
    assert cost.is_worth_storing(3, loads=2, elements=LARGE, evaluations=10 * LARGE)


def test_few_elements_are_not_worth_a_kernel():
    assert not cost.is_worth_storing(20, loads=1, elements=10, evaluations=40)


def test_a_very_expensive_value_is_stored_even_if_it_is_read_little():
    assert cost.is_worth_storing(cost.MAX_AGAIN + 1, loads=0, elements=10, evaluations=20)


def test_a_value_that_is_read_little_is_not_stored():
    # A gather of a few rows of a large table.
    assert not cost.is_worth_storing(20, loads=1, elements=LARGE, evaluations=100)


def test_a_kernel_keeps_enough_parallel_points_or_has_little_work():
    keeps = functools.partial(cost.keeps_parallel, small=cost.SMALL_WORK)
    assert keeps(512, before=512 * 64, work=LARGE, rows=32)
    assert not keeps(1, before=512, work=LARGE, rows=32)
    assert keeps(1, before=512, work=1000, rows=32)
    assert not keeps(64, before=512 * 64, work=LARGE, rows=cost.PARALLEL_COLUMNS)


def test_few_points_of_a_gpu_have_little_work_unless_threads_share_it():
    gpu, processor = Granularity.of(H100), Granularity.of(PLAIN)
    assert gpu.small(is_reducing=True) == processor.small(is_reducing=False) == cost.SMALL_WORK
    assert gpu.small(is_reducing=False) == LONE_WORK


def test_a_device_asks_for_a_few_rows_for_each_processor():
    assert cost.parallel_rows(2) == 8
    assert cost.parallel_rows(128) == cost.MOST_ROWS


def test_symbolic_sizes_have_typical_values_within_their_bounds():
    assert cost.estimate(symbol("n", 1)) == cost.TYPICAL_SIZE
    assert cost.estimate(2 * symbol("n", 1, 8)) == 16
    assert cost.estimate(symbol("n", 5000)) == 5000


# --- what is stored ---------------------------------------------------------------------------


def names(program) -> list[str]:
    """The primitives of the stored values, in order."""
    storage = choose(program)
    return [e.primitive.name for e in storage.equations if e.results[0] in storage.values]


def test_softmax_stores_the_exponential_for_two_uses():
    assert names(program_of(models.softmax, f32(512, 512))) == ["reduce_max", "exp", "reduce_sum", "div"]


def test_layernorm_computes_the_difference_again():
    assert "sub" not in names(program_of(models.layernorm, f32(512, 512), f32(512), f32(512)))


def test_two_dear_values_in_a_row_are_stored_once():
    # The inner one is asked for by the outer one only, once that is stored.
    def function(x):
        y = ops.tanh(ops.exp(x))
        return ops.mul(y, number(2)), ops.reduce_sum(y, axes=(1,))

    assert names(program_of(function, f32(512, 512))) == ["tanh", "mul", "reduce_sum"]


def test_a_dear_operand_of_a_dot_is_stored_and_a_cheap_one_is_not():
    def dear(x, w):
        return models.dot(ops.tanh(x), w)

    def cheap(x, w):
        return models.dot(ops.mul(x, number(2)), w)

    types = f32(256, 256), f32(256, 256)
    assert names(program_of(dear, *types)) == ["tanh", "dot_general"]
    assert names(program_of(cheap, *types)) == ["dot_general"]


def test_a_stencil_of_dear_values_is_stored():
    def function(x):
        y = ops.exp(x)
        windows = [ops.slice_(y, start=(k,), limit=(LARGE - 4 + k,), stride=(1,)) for k in range(3)]
        return ops.add(windows[0], ops.add(windows[1], windows[2]))

    assert names(program_of(function, f32(LARGE))) == ["exp", "add"]


# --- groups -----------------------------------------------------------------------------------


def grouped(seed: int, length: int = 30):
    program = split_reductions(random_program(seed, length=length), Parallelism(32, 512))
    storage = choose(program)
    results = frozenset(a for a in storage.outputs if isinstance(a, Var))
    return fuse(find_roots(program, storage), results, Granularity(32))


@pytest.mark.parametrize("window", [groups.WINDOW, 5])
@given(seed=st.integers(0, 1 << 20))
def test_groups_are_convex_and_hold_every_root_once(window: int, seed: int):
    with mock.patch.object(groups, "WINDOW", window):
        state = grouped(seed)

    members = sorted(m for g in state.groups.values() for m in g.members)
    assert members == list(range(len(state.roots)))
    assert all(len({m // window for m in g.members}) == 1 for g in state.groups.values())
    edges = {(state.owner[q], state.owner[r]) for q, r in state.alignments}
    assert is_acyclic({(a, b) for a, b in edges if a != b})


@pytest.mark.parametrize("window", [groups.WINDOW, 7])
@given(seed=st.integers(0, 1 << 20))
def test_groups_depend_on_all_groups_that_their_edges_reach(window: int, seed: int):
    with mock.patch.object(groups, "WINDOW", window):
        state = grouped(seed, length=40)

    above: dict[int, set[int]] = {g: set() for g in state.groups}
    inside = [(q, r) for q, r in state.alignments if q // window == r // window]
    for _ in state.groups:
        for q, r in inside:
            a, b = state.owner[q], state.owner[r]
            if a != b:
                above[b] |= above[a] | set(state.groups[a].members)
    for g, members in above.items():
        assert state.above[g] == sum(1 << m % window for m in members)
    for g in state.groups:
        below = {m for h in state.groups if g in above[h] for m in state.groups[h].members}
        assert state.below[g] == sum(1 << m % window for m in below)


def is_acyclic(edges: set[tuple[int, int]]) -> bool:
    while edges:
        sources = {a for a, _ in edges} - {b for _, b in edges}
        if not sources:
            return False
        edges = {(a, b) for a, b in edges if a not in sources}
    return True


@pytest.mark.parametrize("window", [groups.WINDOW, 3])
@given(seed=st.integers(0, 1 << 20))
def test_every_kernel_program_passes_its_check(window: int, seed: int):
    with mock.patch.object(groups, "WINDOW", window):
        check(kernelize(random_program(seed, length=20), WITH_DOT))


def test_a_sum_of_a_hundred_arrays_needs_no_kernel_with_a_hundred_buffers():
    program = program_of(lambda *xs: functools.reduce(ops.add, xs), *[f32(8)] * 100)

    kernels = kernelize(program, PLAIN).kernels.values()

    assert max(len(k.inputs) + len(k.outputs) for k in kernels) <= cost.MAX_BUFFERS + 1


def test_the_row_of_a_softmax_lives_in_scratch():
    kernel = only_kernel(kernelize(program_of(models.softmax, f32(64, 512)), PLAIN))

    assert [type(s) for s in kernel.body] == [Reduce, Fill, Reduce, Write]


def test_a_row_that_does_not_fit_scratch_is_computed_again():
    small = target(scratch_bytes=1024)

    kernel = only_kernel(kernelize(program_of(models.softmax, f32(64, 512)), small))

    assert [type(s) for s in kernel.body] == [Reduce, Reduce, Write]


@pytest.mark.parametrize(
    ("length", "columns", "kinds"),
    [
        (7, 13, [Write]),
        (8, 13, [Fill, Write]),
        (14, 512, [Fill, Write]),
        (15, 13, [Fill, Fill, Write]),
        (8, 513, [Write]),
    ],
)
def test_rows_that_would_be_written_out_many_times_live_in_slow_scratch(length: int, columns: int, kinds: list[type]):
    def sums(x: Any) -> Any:
        for _ in range(length):
            x = in_memory(x + x[:, ::-1])
        return x

    program, device = program_of(sums, f32(64, columns)), target(scratch_bytes=0)
    lowering, args = stages(program, device), random_arguments(program)

    assert [type(s) for s in only_kernel(kernelize(program, device)).body] == kinds
    agree(evaluate(program, args), run_kernel_program(lowering.kernels, args, {}), relative=1e-5)


def test_a_value_that_does_not_depend_on_the_column_is_computed_outside_the_inner_loop():
    program = program_of(models.layernorm, f32(64, 512), f32(512), f32(512))

    kernel = only_kernel(stages(program, PLAIN).kernels)

    assert [type(s) for s in kernel.body] == [Reduce, Let, Reduce, Let, Write]


def test_statistics_that_keep_an_axis_of_one_point_fuse_as_rows():
    def function(x):
        total = ops.reshape(ops.reduce_sum(ops.mul(x, x), axes=(1,)), shape=(64, 1))
        scale = ops.rsqrt(ops.div(total, number(512)))
        return ops.mul(x, ops.broadcast(scale, shape=(64, 512), axes=(0, 1)))

    assert len(kernelize(program_of(function, f32(64, 512)), PLAIN).steps) == 1


def over_a_pivot(x, i):
    return x / rnp.sqrt(x[i])


def along_a_slope(x, i):
    return rnp.exp(x) * rnp.exp((x[i + 1] - x[i]) / 3)


@pytest.mark.parametrize("function", [over_a_pivot, along_a_slope])
@pytest.mark.parametrize("size", [1, 7, 31, 130, 2048, 65537])
def test_no_single_thread_of_a_gpu_computes_a_long_row(function, size: int):
    kernels = stages(rune.make_program(function)(f32(size), i32()), H100).kernels

    rows = [int(n) for n in re.findall(r"over j0 in (\d+)", program_text(kernels))]
    assert max(rows, default=0) <= LONE_WORK
    assert size <= 130 or rows == []


# --- reasons ----------------------------------------------------------------------------------


def reasons(function, *types, device=PLAIN) -> set[str]:
    return {n.why for n in kernelize(program_of(function, *types), device).not_fused}


def test_explain_gives_reasons_for_kernels_that_are_not_fused():
    def dots(x, w):
        return models.dot(models.dot(x, w), w)

    def scan(x):
        return ops.neg(ops.cumsum(x, axis=0, reverse=False))

    def share_of_total(x):
        total = ops.reduce_sum(x, axes=(0, 1))
        return ops.div(x, ops.broadcast(total, shape=x.type.shape, axes=()))

    assert reasons(dots, f32(64, 64), f32(64, 64)) == {"a dot takes no second reduction"}
    assert reasons(scan, f32(64, 64)) == {"a scan, scatter or window update is a kernel of its own"}
    assert reasons(share_of_total, f32(64, 256)) == {"too little would run in parallel (1 points)"}
    assert reasons(models.linear, f32(64, 64), f32(64, 64), f32(64), device=WITH_DOT) == {"a library routine"}


# --- compile time -----------------------------------------------------------------------------


def straight(count: int):
    """Elementwise, with the input used again and again."""

    def function(x):
        y = x
        for k in range(count // 2):
            y = ops.add(ops.mul(y, number(1 + k)), x)
        return y

    return program_of(function, f32(64, 64))


def reductions(count: int):
    """Every step needs the sum of the one before."""

    def function(x):
        y = x
        for _ in range(count // 3):
            y = ops.mul(y, models.over_rows(ops.reduce_sum, y))
        return y

    return program_of(function, f32(64, 64))


def diamonds(count: int):
    """Every value is used twice: without memory of answers the walk is exponential."""

    def function(x):
        for _ in range(count):
            x = ops.mul(x, x)
        return x

    return program_of(function, f32(64, 64))


def shifts(count: int):
    """Every value is used at two places."""

    def function(x):
        for _ in range(count // 2):
            x = ops.add(x, ops.reverse(x, axes=(0,)))
        return x

    return program_of(function, f32(64, 64))


@pytest.mark.parametrize("build", [straight, reductions, diamonds, shifts])
def test_the_work_is_about_linear_in_the_number_of_equations(build):
    def work(count: int) -> int:
        program = build(count)
        return calls(lambda: kernelize(program, PLAIN))

    work(100)
    one, four = work(250), work(1000)

    assert four < 6 * one


@pytest.mark.parametrize("edges", [(1, 1), (5, 0), (3, 7)], ids=str)
@pytest.mark.parametrize("size", [97, 1_027, 2_053])
def test_thin_edges_do_not_take_the_parallel_points_of_what_they_surround(size: int, edges: tuple[int, int]):
    low, high = edges

    def padded(x):
        return ops.pad(x, 0.0, low=(low, low), high=(high, high), interior=(0, 0))

    rows = cost.parallel_rows(PLAIN.cores)
    for kernel in kernelize(program_of(padded, f32(size, size)), PLAIN).kernels.values():
        points = cost.count(tuple(a.size for a in kernel.domain))
        write_count = max(
            points * cost.count(tuple(a.size for a in s.axes)) for s in kernel.body if isinstance(s, Write)
        )
        assert points >= rows or write_count <= cost.SMALL_WORK
