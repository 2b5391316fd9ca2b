"""Kernels compute what the program does: the law, over random programs, in three ways.

Evaluated by the primitives' meaning, by the kernels' definition, and by the whole plan with its
loops, its arena and its aliases; with and without routines, with scratch memory and with almost
none. Then the same for symbolic sizes: one lowering serves every size.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes, ops
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.lowering.stages import stages
from tests.lowering import models
from tests.support.lowering import (
    PLAIN,
    WITH_DOT,
    agree,
    evaluate,
    number,
    program_of,
    random_arguments,
    run_kernel_program,
    run_plan,
    sizes_of,
    target,
)
from tests.support.random_programs import random_program

LITTLE_SCRATCH = target("dot", scratch_bytes=40)
OPENCL = target(language="opencl")


def hold_to_the_program(program, device, args, relative=1e-4):
    lowering = stages(program, device, check=True)
    sizes = sizes_of(program, args)
    expected = evaluate(program, args)

    agree(expected, run_kernel_program(lowering.kernels, args, sizes), relative)
    agree(expected, run_plan(lowering.plan, args, sizes), relative)


@pytest.mark.parametrize("device", [PLAIN, WITH_DOT, LITTLE_SCRATCH, OPENCL], ids=["llvm", "dot", "scratch", "opencl"])
@given(seed=st.integers(0, 1 << 20))
def test_a_random_program_keeps_its_values(device, seed: int):
    program = random_program(seed)

    hold_to_the_program(program, device, random_arguments(program, seed))


@given(seed=st.integers(0, 1 << 20))
def test_a_long_random_program_keeps_its_values(seed: int):
    program = random_program(seed, length=40)

    hold_to_the_program(program, WITH_DOT, random_arguments(program, seed))


@pytest.mark.parametrize("dtype", [dtypes.f64, dtypes.bf16, dtypes.f16], ids=str)
def test_softmax_in_other_float_types(dtype):
    program = program_of(_softmax_in(dtype), ArrayType((8, 40), dtype))

    hold_to_the_program(program, PLAIN, random_arguments(program), relative=2e-2)


def _softmax_in(dtype):
    def function(x):
        e = ops.exp(ops.sub(x, models.over_rows(ops.reduce_max, x)))
        return ops.div(e, models.over_rows(ops.reduce_sum, e))

    return function


@pytest.mark.parametrize("size", [4096, 1 << 17], ids=["one step", "two steps"])
def test_half_sums_accumulate_in_f32_from_end_to_end(size: int):
    # The sum of ones: in bf16 it would stop growing at 256.
    program = program_of(
        lambda x: ops.reduce_sum(ops.exp(ops.mul(x, number(0, dtypes.bf16))), axes=(0,)),
        ArrayType((size,), dtypes.bf16),
    )

    lowering = stages(program, PLAIN, check=True)
    (total,) = run_kernel_program(lowering.kernels, random_arguments(program))

    assert float(total) == size


SPECIAL = {
    "a padded view of nothing": (
        lambda x: ops.reduce_sum(
            ops.pad(
                ops.exp(ops.slice_(x, start=(3, 0), limit=(3, 4), stride=(1, 1))),
                number(0.5),
                low=(1, 0),
                high=(1, 0),
                interior=(0, 0),
            ),
            axes=(1,),
        ),
        (3, 4),
    ),
    "a sum of nothing, used": (
        lambda x: ops.add(
            ops.broadcast(
                ops.reduce_sum(ops.slice_(x, start=(0, 2), limit=(3, 2), stride=(1, 1)), axes=(1,)),
                shape=(3, 4),
                axes=(0,),
            ),
            x,
        ),
        (3, 4),
    ),
    "axes of one point between rows": (
        lambda x: ops.reshape(models.softmax(ops.reshape(x, shape=(1, 3, 1, 4))), shape=(3, 1, 4)),
        (3, 4),
    ),
    "a concatenation read as a whole and in parts": (
        lambda x: ((y := ops.concatenate(ops.exp(x), x, axis=0)), ops.mul(y, ops.reverse(y, axes=(0,)))),
        (3, 4),
    ),
    "integers that wrap": (lambda x: ops.mul(ops.convert(x, dtype=dtypes.i8), number(100, dtypes.i8)), (3, 4)),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_a_program_that_once_went_wrong_is_right(name: str):
    function, shape = SPECIAL[name]
    program = program_of(function, ArrayType(shape, dtypes.f32))

    hold_to_the_program(program, PLAIN, random_arguments(program))


# --- symbolic sizes ---------------------------------------------------------------------------

n = symbol("n", 1, 4096)
m = symbol("m", 1, 64)


def _flatten_rows(x):
    rows, width = x.type.shape
    return ops.reshape(x, shape=(rows * width,))


SYMBOLIC = {
    "chain": (lambda x: ops.tanh(ops.add(x, x)), (n, 8)),
    "softmax of n rows": (models.softmax, (n, 40)),
    "softmax over n columns": (models.softmax, (8, n)),
    "sum over n": (lambda x: ops.reduce_sum(x, axes=(0,)), (n, 4)),
    "sum of everything": (lambda x: ops.reduce_sum(x, axes=(0, 1)), (n, m)),
    "reshape": (_flatten_rows, (n, m)),
    "transpose and reshape back": (
        lambda x: ops.reshape(ops.transpose(x, permutation=(1, 0)), shape=x.type.shape),
        (n, m),
    ),
    "concatenate": (lambda x: ops.concatenate(x, ops.neg(x), axis=0), (n, 3)),
    "pad": (lambda x: ops.pad(x, number(0), low=(1, 2), high=(3, 0), interior=(0, 0)), (n, 3)),
    "reverse": (lambda x: ops.reverse(x, axes=(0,)), (n, 3)),
    "cumulative sum": (lambda x: ops.cumsum(x, axis=0, reverse=True), (n, 3)),
    "positions": (
        lambda x: ops.add(x, ops.convert(ops.iota(shape=x.type.shape, axis=0, dtype=dtypes.i32), dtype=dtypes.f32)),
        (n, 3),
    ),
    "dot with itself": (lambda x: ops.dot_general(x, x, dimension_numbers=(((0,), (0,)), ((), ()))), (n, m)),
}


@pytest.mark.parametrize("device", [PLAIN, WITH_DOT], ids=["generated", "routine"])
@pytest.mark.parametrize("name", SYMBOLIC)
def test_one_lowering_covers_every_size(name: str, device):
    function, shape = SYMBOLIC[name]
    program = program_of(function, ArrayType(shape, dtypes.f32))
    lowering = stages(program, device, check=True)

    for a, b in ((1, 1), (2, 7), (5, 3), (100, 64)):
        args = random_arguments(program, n=a, m=b)
        sizes = sizes_of(program, args)
        expected = evaluate(program, args)
        agree(expected, run_kernel_program(lowering.kernels, args, sizes), 2e-4)
        agree(expected, run_plan(lowering.plan, args, sizes), 2e-4)
