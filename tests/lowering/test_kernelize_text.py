"""Kernels as text: the text, parsing it, and what the check refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes, ops
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import CheckError
from rune.lowering.kernelize import kernelize
from rune.lowering.kernels_check import check, check_kernel
from rune.lowering.kernels_parse import parse, parse_program
from rune.lowering.kernels_text import program_text, to_text
from tests.lowering import models
from tests.support.kernel_program import run_kernel
from tests.support.lowering import PLAIN, WITH_DOT, f32, i32, only_kernel, program_of
from tests.support.random_programs import random_program


def test_softmax_reads_like_its_definition(expect):
    kernel = only_kernel(kernelize(program_of(models.softmax, f32(512, 4096)), PLAIN))

    expect(
        to_text(kernel),
        """
        kernel max_exp_sum_div_0(x0: f32[512,4096]) -> (y0: f32[512,4096]) {
          for i0 in 512 parallel {
            max1 = max j0 in 4096: x0[i0, j0]
            fill row2[j0 in 4096]: exp(x0[i0, j0] - max1)
            sum3 = sum j0 in 4096: row2[j0]
            write y0[i0, j0] over j0 in 4096: row2[j0] / sum3
          }
        }""",
    )


def test_a_program_shows_its_steps_its_kernels_and_why_they_are_several(expect):
    program = program_of(models.linear, f32(64, 64), f32(64, 64), f32(64), name="layer")

    expect(
        program_text(kernelize(program, WITH_DOT)),
        """
        kernels layer(%0: f32[64,64], %1: f32[64,64], %2: f32[64]) {
          %3: f32[64,64] = call dot %0, %1 {batch=1, m=64, n=64, k=64, trans_a=False, trans_b=False}
          %4: f32[64,64] = add_0 %3, %2
          return %4: f32[64,64]
        }
        kernel add_0(x0: f32[64,64], x1: f32[64]) -> (y0: f32[64,64]) {
          for i0 in 64, i1 in 64 parallel {
            write y0[i0, i1]: x0[i0, i1] + x1[i1]
          }
        }
        # dot -> add_0 (%3): a library routine""",
    )


def test_a_scatter_shows_its_order_and_condition(expect):
    dims = ops.IndexDims((1,), (0,), (0,))
    program = program_of(
        lambda x, i, u: ops.scatter_add(x, i, u, dims=dims, slice_sizes=(1, 4), mode="fill"),
        f32(6, 4),
        i32(5, 1),
        f32(5, 4),
    )

    text = to_text(only_kernel(kernelize(program, PLAIN)))

    assert "ordered write y0[" in text
    assert " if c" in text
    assert parse(text) == only_kernel(kernelize(program, PLAIN))


@given(st.integers(0, 1 << 20))
def test_printed_text_is_read_back(seed: int):
    program = kernelize(random_program(seed, length=20), WITH_DOT)

    for kernel in program.kernels.values():
        assert parse(to_text(kernel)) == kernel
    assert parse_program(program_text(program)) == replace(program, not_fused=())


def test_symbolic_sizes_are_declared_and_read_back():
    n = symbol("n", 1, 4096)
    program = kernelize(program_of(models.softmax, ArrayType((n, 8), dtypes.f32)), PLAIN)

    text = program_text(program)

    assert "sizes n in 1..4096" in text
    assert parse_program(text) == replace(program, not_fused=())


def test_a_kernel_written_by_hand_runs():
    kernel = parse("""
        kernel rows(x: f32[n,4]) -> (y: f32[n]) sizes n in 1..9 {
          for i in n parallel {
            total = sum j in 4: x[i, j] * x[i, j]
            write y[i]: sqrt(total)
          }
        }""")
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    y = np.zeros(2, np.float32)

    check_kernel(kernel)
    run_kernel(kernel, [x], [y], {"n": 2})

    np.testing.assert_allclose(y, np.linalg.norm(x, axis=1), rtol=1e-6)


REFUSED = {
    "y0 is never written": """
        kernel f(x0: f32[4]) -> (y0: f32[4]) {
          t1: f32 = 1.0_f32
        }""",
    "x0 has 1 axes": """
        kernel f(x0: f32[4]) -> (y0: f32[4]) {
          for i0 in 4 parallel {
            write y0[i0]: x0[i0, i0]
          }
        }""",
    "i0 is bound already": """
        kernel f(x0: f32[4]) -> (y0: f32[4]) {
          for i0 in 4 parallel {
            write y0[i0] over i0 in 4: x0[i0]
          }
        }""",
    "y0 is read too early": """
        kernel f(x0: f32[4]) -> (y0: f32[4]) {
          for i0 in 4 parallel {
            t1: f32 = y0[i0]
            write y0[i0]: t1
          }
        }""",
    "y0 holds float32": """
        kernel f(x0: i32[4]) -> (y0: f32[4]) {
          for i0 in 4 parallel {
            write y0[i0]: x0[i0]
          }
        }""",
    "add(f32, i32)": """
        kernel f(x0: f32[4], x1: i32[4]) -> (y0: f32[4]) {
          for i0 in 4 parallel {
            t1: i32 = x0[i0] + x1[i0]
            write y0[i0]: f32(t1)
          }
        }""",
    "no reduction and of f32": """
        kernel f(x0: f32[4]) -> (y0: f32[]) {
          all1 = all j0 in 4: x0[j0]
          write y0[]: all1
        }""",
}


@pytest.mark.parametrize("fault", REFUSED)
def test_check_names_the_fault(fault: str):
    kernel = parse(REFUSED[fault])

    with pytest.raises(CheckError) as error:
        check_kernel(kernel)

    assert fault in str(error.value)


def test_check_refuses_a_step_that_reads_too_early():
    program = kernelize(program_of(models.linear, f32(64, 64), f32(64, 64), f32(64)), WITH_DOT)

    with pytest.raises(CheckError, match="step 0 reads %3 before it is written"):
        check(replace(program, steps=program.steps[::-1]))
