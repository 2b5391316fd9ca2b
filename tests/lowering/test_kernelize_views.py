"""Views are index expressions: chains of movement against NumPy, and how simple they come out.

Every pair of movements, with and without a reduction between or around them, in both orders; then
goldens of the index expressions, which must hold no division that the bounds make needless; then
what a view at the root of a kernel becomes.
"""

from __future__ import annotations

import itertools
import re

import pytest

from rune import dtypes, ops
from rune.lowering.kernelize import cost, kernelize, views
from rune.lowering.kernels import Write
from rune.lowering.kernels_text import to_text
from rune.lowering.stages import stages
from tests.support.lowering import (
    PLAIN,
    agree,
    evaluate,
    f32,
    i32,
    number,
    only_kernel,
    program_of,
    random_arguments,
    run_kernel_program,
    run_plan,
)

FULL = (0, 0), (1, 1)


def _sliced(x):
    start = tuple(1 if d > 2 else 0 for d in x.type.shape)
    return ops.slice_(x, start=start, limit=x.type.shape, stride=(1,) * x.type.ndim)


def _strided(x):
    return ops.slice_(x, start=(0,) * x.type.ndim, limit=x.type.shape, stride=(2,) * x.type.ndim)


def _padded(low: int, high: int, interior: int):
    def function(x):
        k = x.type.ndim
        return ops.pad(x, number(7), low=(low,) * k, high=(high,) * k, interior=(interior,) * k)

    return function


def _split(x):
    *outer, last = x.type.shape
    return ops.reshape(x, shape=(*outer, 2, last // 2) if last % 2 == 0 else (1, *x.type.shape))


def _merged(x):
    shape = x.type.shape
    return ops.reshape(x, shape=(shape[0] * shape[1], *shape[2:])) if len(shape) > 1 else x


def _spread(x):
    return ops.broadcast(x, shape=(2, *x.type.shape), axes=tuple(range(1, 1 + x.type.ndim)))


MOVEMENTS = {
    "transpose": lambda x: ops.transpose(x, permutation=tuple(reversed(range(x.type.ndim)))),
    "split": _split,
    "merge": _merged,
    "slice": _sliced,
    "stride": _strided,
    "pad": _padded(1, 2, 0),
    "large pad": _padded(9, 7, 0),
    "crop": _padded(-1, 0, 0),
    "dilate": _padded(0, 1, 1),
    "reverse": lambda x: ops.reverse(x, axes=(x.type.ndim - 1,)),
    "broadcast": _spread,
    "concatenate": lambda x: ops.concatenate(x, ops.neg(x), axis=0),
}
PAIRS = list(itertools.product(MOVEMENTS, MOVEMENTS))


def hold(function, *types):
    program = program_of(function, *types)
    kernels = stages(program, PLAIN, check=True).kernels
    args = random_arguments(program)
    agree(evaluate(program, args), run_kernel_program(kernels, args), relative=1e-5)
    return kernels


@pytest.mark.parametrize("pair", PAIRS, ids=" then ".join)
def test_a_pair_of_movements_is_one_kernel_that_moves_right(pair):
    first, second = (MOVEMENTS[name] for name in pair)

    kernels = hold(lambda x: ops.tanh(second(first(x))), f32(3, 4))

    assert len(kernels.steps) <= 1


@pytest.mark.parametrize("pair", PAIRS, ids=" then ".join)
def test_movement_then_a_sum_and_a_sum_then_movement(pair):
    first, second = (MOVEMENTS[name] for name in pair)

    def function(x):
        view = first(x)
        total = ops.reduce_sum(view, axes=(view.type.ndim - 1,))
        return second(ops.broadcast(total, shape=(*total.type.shape, 2), axes=_axes(total)))

    hold(function, f32(3, 4))


def _axes(x):
    return tuple(range(x.type.ndim))


@pytest.mark.parametrize("name", MOVEMENTS)
def test_plans_of_movement_keep_their_values(name: str):
    program = program_of(lambda x: MOVEMENTS[name](ops.exp(x)), f32(4, 6))
    args = random_arguments(program)

    plan = stages(program, PLAIN, check=True).plan

    agree(evaluate(program, args), run_plan(plan, args), relative=1e-5)


# --- simple expressions -----------------------------------------------------------------------


def body(function, *types) -> str:
    lines = to_text(only_kernel(kernelize(program_of(function, *types), PLAIN))).splitlines()
    return "\n".join(line.strip() for line in lines if "write" in line)


def test_a_reshape_that_splits_needs_no_division():
    assert body(lambda x: ops.exp(ops.reshape(x, shape=(4, 6))), f32(24)) == ("write y0[i0, i1]: exp(x0[6*i0 + i1])")


def test_a_reshape_that_merges_divides_once():
    assert body(lambda x: ops.exp(ops.reshape(x, shape=(24,))), f32(4, 6)) == ("write y0[i0]: exp(x0[i0//6, i0 % 6])")


def test_there_and_back_is_the_plain_index():
    def function(x):
        return ops.exp(ops.reshape(ops.reshape(x, shape=(24,)), shape=(4, 6)))

    assert body(function, f32(4, 6)) == "write y0[i0, i1]: exp(x0[i0, i1])"


def test_splitting_heads_and_transposing_needs_no_division():
    def function(x):
        return ops.exp(ops.transpose(ops.reshape(x, shape=(5, 2, 4)), permutation=(1, 0, 2)))

    assert body(function, f32(5, 8)) == "write y0[i0, i1, i2]: exp(x0[i1, 4*i0 + i2])"


def test_a_slice_within_one_part_of_a_concatenation_reads_that_part():
    def function(x, y):
        both = ops.concatenate(x, y, axis=0)
        return ops.exp(ops.slice_(both, start=(5,), limit=(8,), stride=(1,)))

    assert body(function, f32(4), f32(6)) == "write y0[i0]: exp(x0[i0 + 1])"


def test_a_padded_read_is_guarded_and_no_memory_outside_is_touched():
    text = to_text(
        only_kernel(
            kernelize(
                program_of(
                    lambda x: ops.reduce_sum(ops.pad(x, number(0), low=(2,), high=(0,), interior=(0,)), axes=(0,)),
                    f32(3),
                ),
                PLAIN,
            )
        )
    )

    assert "c1: bool = index(j0 - 2) >= 0_i64" in text
    assert "select(c1, x0[j0 - 2 if c1], 0.0_f32)" in text


# --- views at the root ------------------------------------------------------------------------


def test_a_concatenation_is_one_write_for_each_part_and_no_condition():
    assert body(lambda x, y: ops.concatenate(x, y, axis=1), f32(2, 3), f32(2, 4)) == (
        "write y0[i0, j0] over j0 in 3: x0[i0, j0]\nwrite y0[i0, j0 + 3] over j0 in 4: x1[i0, j0]"
    )


def test_an_operation_on_a_concatenation_is_split_as_well():
    def function(x, y):
        return ops.mul(ops.concatenate(x, y, axis=0), number(2))

    assert "select" not in body(function, f32(3), f32(4))


def test_a_padding_is_written_in_ranges():
    text = body(lambda x: ops.pad(x, number(0), low=(1,), high=(2,), interior=(0,)), f32(5))

    assert text == (
        "write y0[0]: 0.0_f32\nwrite y0[j0 + 1] over j0 in 5: x0[j0]\nwrite y0[j0 + 6] over j0 in 2: 0.0_f32"
    )


def _writes(program):
    return sum(isinstance(s, Write) for s in only_kernel(kernelize(program, PLAIN)).body)


def test_inner_axes_stay_whole_where_ranges_become_many():
    assert _writes(program_of(_padded(1, 1, 0), f32(2, 2, 2))) == 9


def test_the_shortest_of_many_ranges_share_a_guarded_write():
    def function(x):
        parts = [ops.slice_(x, start=(0,), limit=(n,), stride=(1,)) for n in (1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)]
        return ops.concatenate(*(ops.mul(part, number(k)) for k, part in enumerate(parts, 2)), axis=0)

    first, *others = body(function, f32(512)).splitlines()

    assert first == "write y0[j0] over j0 in 4 {"
    assert len(others) == cost.MAX_CELLS - 1


def test_neighbours_of_equal_length_are_joined_evenly():
    def function(x):
        return ops.concatenate(*(ops.mul(x, number(k)) for k in range(2, 12)), axis=0)

    assert _writes(program_of(function, f32(3))) == cost.MAX_CELLS


def test_each_array_of_a_stack_of_rolled_ones_is_computed_separately():
    def rolled(x, axis):
        n, start = x.type.shape[axis], [0, 0, 0]
        start[axis] = n - 1
        last = ops.slice_(x, start=tuple(start), limit=x.type.shape, stride=(1, 1, 1))
        limit = tuple(n - 1 if k == axis else m for k, m in enumerate(x.type.shape))
        return ops.concatenate(last, ops.slice_(x, start=(0, 0, 0), limit=limit, stride=(1, 1, 1)), axis=axis)

    def function(x, y, z):
        return ops.concatenate(rolled(x, 1), rolled(y, 2), rolled(rolled(z, 1), 2), x, axis=0)

    lines = to_text(only_kernel(kernelize(program_of(function, *[f32(1, 5, 7)] * 3), PLAIN))).splitlines()
    sources = [set(re.findall(r"x\d", line)) for line in lines if "write" in line]

    assert [len(arrays) for arrays in sources] == [1] * 8


def test_a_window_at_a_literal_start_is_a_slice():
    def function(x):
        return ops.exp(ops.dynamic_slice(x, number(9, dtypes.i32), sizes=(3,)))

    assert body(function, f32(8)) == "write y0[i0]: exp(x0[i0 + 5])"


def test_a_window_at_a_start_from_memory_is_clamped():
    kernel = only_kernel(kernelize(program_of(lambda x, s: ops.dynamic_slice(x, s, sizes=(3,)), f32(8), i32()), PLAIN))

    assert "g1: i64 in 0..5 = min(max(i64(x0[]), 0_i64), 5_i64)" in to_text(kernel)
    assert "write y0[i0]: x1[g1 + i0]" in to_text(kernel)


def test_a_window_read_where_it_was_written_needs_no_condition():
    def written_and_read(x, part, i):
        buffer = ops.dynamic_update_slice(x, part, i)
        return ops.neg(ops.dynamic_slice(ops.tanh(buffer), i, sizes=(3,)))

    program = program_of(written_and_read, f32(7), f32(3), i32())
    args = random_arguments(program)
    plan = stages(program, PLAIN, check=True).plan

    agree(evaluate(program, args), run_plan(plan, args), 1e-6)


def test_what_a_view_shows_at_one_place_is_resolved_once_for_all_kernels(monkeypatch):
    resolve, requests = views.resolve, []

    def counted(equation, indices):
        requests.append((equation.results[0], indices))
        return resolve(equation, indices)

    def sums_of_updates(x, part, i):
        total = x
        for _ in range(5):
            x = ops.dynamic_update_slice(x, part, i)
            total = ops.add(total, ops.cumsum(x, axis=0, reverse=False))
        return total

    monkeypatch.setattr(views, "resolve", counted)
    kernelize(program_of(sums_of_updates, f32(7), f32(3), i32()), PLAIN)

    assert len(requests) > 5
    assert len(requests) == len(set(requests))
