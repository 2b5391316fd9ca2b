"""How many kernels the well-known graphs become: golden numbers, no device needed.

First what must be one kernel; then what is two and why; then graphs with several outputs and
shared values; last, that the kernels compute what the program does.
"""

from __future__ import annotations

import functools

import pytest

import rune.numpy as rnp
from rune import dtypes, ops
from rune.lowering.kernels import Invoke, Routine
from rune.lowering.kernels_text import program_text
from rune.lowering.stages import stages
from tests.lowering import models
from tests.support.lowering import (
    PLAIN,
    WITH_DOT,
    agree,
    evaluate,
    f32,
    i32,
    number,
    program_of,
    random_arguments,
    run_kernel_program,
)

B, N, M = 64, 512, 256


def kernels_of(function, *types, target=PLAIN):
    return stages(program_of(function, *types), target, check=True).kernels


def counts(function, *types, target=PLAIN) -> tuple[int, int]:
    """(kernels, routine calls), after holding the kernels against the program."""
    program = program_of(function, *types)
    kernels = stages(program, target, check=True).kernels
    args = random_arguments(program)
    agree(evaluate(program, args), run_kernel_program(kernels, args), relative=2e-4)
    kinds = [type(step) for step in kernels.steps]
    return kinds.count(Invoke), kinds.count(Routine)


def chain(x, y):
    return ops.tanh(ops.add(ops.mul(x, y), ops.exp(ops.neg(x))))


def with_bias_and(activation):
    return lambda x, w, b: activation(models.linear(x, w, b))


ONE_KERNEL = {
    "elementwise chain": (chain, f32(B, N), f32(B, N)),
    "softmax": (models.softmax, f32(B, N)),
    "softmax of rank 4": (models.softmax, f32(2, 4, 16, 32)),
    "log-softmax": (models.log_softmax, f32(B, N)),
    "layernorm": (models.layernorm, f32(B, N), f32(N), f32(N)),
    "rms norm": (models.rms_norm, f32(B, N), f32(N)),
    "bias + gelu(tanh) behind a dot": (with_bias_and(models.gelu_tanh), f32(B, 32), f32(32, M), f32(M)),
    "bias + gelu(erf) behind a dot": (with_bias_and(models.gelu_erf), f32(B, 32), f32(32, M), f32(M)),
    "adam step of one leaf": (models.adam, *[f32(B, N)] * 4, f32()),
    "sum of a row and what it scales": (lambda x: ops.mul(x, models.over_rows(ops.reduce_sum, x)), f32(B, N)),
    "reduce, broadcast, reduce": (
        lambda x: ops.reduce_max(ops.abs(ops.sub(x, models.over_rows(ops.reduce_sum, x))), axes=(1,)),
        f32(B, N),
    ),
    "two sums of one row": (
        lambda x: (ops.reduce_sum(x, axes=(1,)), ops.reduce_sum(ops.mul(x, x), axes=(1,))),
        f32(B, N),
    ),
    "concatenation": (lambda x, y: ops.concatenate(x, y, axis=1), f32(B, 40), f32(B, 24)),
    "padding": (lambda x: ops.pad(x, number(0), low=(1, 1), high=(1, 1), interior=(0, 0)), f32(6, 5)),
    "transpose, reshape, slice, reverse": (
        lambda x: ops.reverse(
            ops.slice_(
                ops.reshape(ops.transpose(x, permutation=(1, 0)), shape=(N * B // 4, 4)),
                start=(8, 1),
                limit=(800, 4),
                stride=(2, 1),
            ),
            axes=(0,),
        ),
        f32(B, N),
    ),
    "a cast before and after a dot": (
        lambda x, w: ops.convert(models.dot(ops.convert(x, dtype=dtypes.f32), w), dtype=dtypes.bf16),
        f32(B, 8).with_dtype(dtypes.bf16),
        f32(8, 32),
    ),
    "cumulative sum of an expression": (lambda x: ops.cumsum(ops.exp(x), axis=1, reverse=False), f32(8, 32)),
    "batch norm over rows": (
        lambda x: ops.div(x, ops.expand_axes(ops.reduce_sum(ops.abs(x), axes=(0,)), x.type.shape, (0,))),
        f32(32, 1024),
    ),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name: str):
    function, *types = ONE_KERNEL[name]

    assert counts(function, *types) == (1, 0)


@pytest.mark.parametrize(
    "function", [models.cross_entropy_one_hot, models.cross_entropy_gather], ids=["one-hot", "gather"]
)
def test_cross_entropy_is_two_kernels(function):
    assert counts(function, f32(B, 10), i32(B)) == (2, 0)


def test_a_sum_of_many_elements_is_done_in_two_steps():
    assert counts(lambda x: ops.reduce_sum(x, axes=(0,)), f32(1 << 18)) == (2, 0)


def test_a_sum_of_few_elements_is_one_kernel():
    assert counts(lambda x: ops.reduce_sum(x, axes=(0,)), f32(1 << 12)) == (1, 0)


def test_a_large_dot_is_a_routine_and_its_epilogue_a_kernel():
    function = with_bias_and(models.gelu_tanh)

    assert counts(function, f32(B, 128), f32(128, M), f32(M), target=WITH_DOT) == (1, 1)


def test_a_small_dot_is_generated_even_if_a_routine_exists():
    assert counts(models.dot, f32(4, 8), f32(8, 4), target=WITH_DOT) == (1, 0)


def test_views_around_a_routine_cost_no_kernel():
    def function(x, w):
        heads = ops.reshape(models.dot(x, w), shape=(B, 4, M // 4))
        return ops.transpose(ops.reshape(heads, shape=(B, M)), permutation=(0, 1))

    assert counts(function, f32(B, 128), f32(128, M), target=WITH_DOT) == (0, 1)


def test_attention_with_routines_is_two_calls_and_the_softmax():
    types = [f32(2, 4, 64, 32)] * 3

    assert counts(models.attention, *types, target=WITH_DOT) == (1, 2)


def test_a_diamond_is_one_kernel():
    def diamond(x):
        y = ops.exp(x)
        return ops.add(ops.mul(y, number(2)), ops.neg(y))

    assert counts(diamond, f32(B, N)) == (1, 0)


def test_several_outputs_of_one_domain_are_one_kernel():
    assert counts(lambda x: (ops.exp(x), ops.neg(x), ops.mul(x, x)), f32(B, N)) == (1, 0)


def test_an_output_that_others_read_is_written_and_used_in_one_kernel():
    def function(x):
        y = ops.exp(x)
        return y, ops.reduce_sum(y, axes=(1,)), ops.mul(y, y)

    assert counts(function, f32(B, N)) == (1, 0)


def test_a_path_through_another_kernel_keeps_two_apart():
    # y is read by the sum over columns and by what uses the sum: rows, columns, rows.
    def function(x):
        y = models.softmax(x)
        total = ops.expand_axes(ops.reduce_sum(y, axes=(0,)), x.type.shape, (0,))
        return ops.mul(y, total)

    kernels = kernels_of(function, f32(1024, 1024))

    assert len(kernels.steps) >= 2
    whys = {n.why for n in kernels.not_fused}
    assert whys == {"the result of a reduction is not read row by row"}


def test_inputs_literals_and_duplicates_as_results_need_no_kernel():
    def function(x):
        y = ops.neg(x)
        return x, y, y, ops.reshape(y, shape=(B * N,))

    assert counts(function, f32(B, N)) == (1, 0)


def test_a_literal_result_is_a_kernel_that_writes_it():
    assert counts(lambda x: (ops.neg(x), number(3)), f32(B, N)) == (2, 0)


def test_nothing_is_launched_for_arrays_without_elements():
    assert counts(lambda x: ops.exp(x), f32(0, 4)) == (0, 0)
    assert counts(lambda x: ops.reduce_sum(x, axes=(0,)), f32(0, 4)) == (1, 0)


def readers_of_a_chain(s, *arrays):
    """Products of each array and a scalar of forty sines."""
    for _ in range(40):
        s = ops.sin(s)
    return tuple(ops.mul(x, s) for x in arrays)


@pytest.mark.parametrize("readers", [2, 5, 23])
def test_a_costly_scalar_is_computed_once_for_all_its_readers(readers: int):
    arrays = [f32(7 + 10 * k) for k in range(readers)]

    kernels = kernels_of(readers_of_a_chain, f32(), *arrays)

    # Some are computed again behind the last value that is stored.
    assert 40 <= program_text(kernels).count("sin(") < 60
    counts(readers_of_a_chain, f32(), *arrays)


def test_a_costly_scalar_with_one_reader_is_computed_in_its_kernel():
    assert counts(readers_of_a_chain, f32(), f32(7)) == (1, 0)


def test_a_cheap_scalar_is_computed_again_by_each_reader():
    kernels = kernels_of(lambda s, x, y: (ops.mul(x, ops.sin(s)), ops.mul(y, ops.sin(s))), f32(), f32(7), f32(17))

    assert program_text(kernels).count("sin(") == 2


def test_an_element_at_a_known_place_is_read_without_the_guards_of_those_that_use_it():
    def f(x, y):
        scaled = y * rnp.sin(x[0])
        return functools.reduce(ops.add, (rnp.pad(scaled, ((k, 3 - k), (3 - k, k))) for k in range(4)))

    counts(f, f32(5), f32(9, 9))
    text = program_text(kernels_of(f, f32(5), f32(9, 9)))
    assert "i0 if" in text  # elements at places that vary are guarded
    assert "x1[0]" in text
    assert "x1[0 if" not in text


def test_equal_layers_share_their_kernels():
    def function(x):
        for _ in range(4):
            x = models.dot(models.softmax(x), x)
        return x

    kernels = kernels_of(function, f32(64, 64), target=WITH_DOT)

    assert len(kernels.steps) == 8
    assert len(kernels.kernels) == 1
