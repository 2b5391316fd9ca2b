"""make_program: what transformations write down, shown.

A program lists its inputs, its closed-over constants and one equation per primitive. Each golden
text shows one idea; the programs also run elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import dims, dtypes, ops
from rune.core.check import check_program
from rune.core.evaluate import eval_program
from rune.core.program import Program
from rune.core.types import ArrayType
from tests.support.arrays import array
from tests.support.close import same

X = array([0.5, 1.0, 2.0])
N = dims.symbol("n", 1, 4096)


def names(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


# --- writing down -----------------------------------------------------------------------------


def test_a_program_lists_its_operations(expect: Any):
    program = rune.make_program(lambda x, y: ops.sin(x) * y + 1.0)(X, X)

    expect(
        program,
        """
        program lambda(%0: f32[3], %1: f32[3]) {
          %2: f32[3] = sin %0
          %3: f32[3] = mul %2, %1
          %4: f32[3] = add %3, 1.0: f32[]
          return %4
        }""",
    )


def test_closed_over_arrays_are_constants_and_scalars_are_literals(expect: Any):
    scale = array(2.0)

    def scaled(x: Any) -> Any:
        return x * X + scale

    expect(
        rune.make_program(scaled)(X),
        """
        program scaled(%0: f32[3]) {
          const %1: f32[3] = [0.5, 1.0, 2.0]
          %2: f32[3] = mul %0, %1
          %3: f32[3] = add %2, 2.0: f32[]
          return %3
        }""",
    )


def test_types_may_stand_in_for_arrays_and_nothing_is_allocated(expect: Any):
    huge = ArrayType((1 << 40, 1 << 10), dtypes.f32)

    expect(
        rune.make_program(lambda x: x.sum())(huge),
        """
        program lambda(%0: f32[1099511627776,1024]) {
          %1: f32[] = reduce_sum %0 {axes=(0, 1)}
          return %1
        }""",
    )


def test_a_symbolic_size_is_declared_after_the_inputs(expect: Any):
    batch = ArrayType((N, 8), dtypes.f32)

    expect(
        rune.make_program(lambda x: x.reshape(-1).sum())(batch),
        """
        program lambda(%0: f32[n,8]) where n in 1..4096 {
          %1: f32[8*n] = reshape %0 {shape=(8*n,)}
          %2: f32[] = reduce_sum %1 {axes=(0,)}
          return %2
        }""",
    )


def test_trees_are_flattened_in_and_out(expect: Any):
    def function(p: Any, *, k: Any) -> Any:
        return p["b"], {"s": p["a"] + k}

    program = rune.make_program(function)({"a": 1.0, "b": 2}, k=X)

    expect(
        program,
        """
        program function(%0: f32*[], %1: i32*[], %2: f32[3]) {
          %3: f32[3] = add %0, %2
          return %1, %3
        }""",
    )


def test_vmap_of_a_reduction_moves_the_axis(expect: Any):
    program = rune.make_program(rune.vmap(lambda row: row.sum()))(ArrayType((N, 8), dtypes.f32))

    expect(
        program,
        """
        program vmap_lambda(%0: f32[n,8]) where n in 1..4096 {
          %1: f32[n] = reduce_sum %0 {axes=(1,)}
          return %1
        }""",
    )


def test_jvp_of_a_product_is_two_products(expect: Any):
    program = rune.make_program(lambda x, t: rune.jvp(lambda v: v * X, (x,), (t,)))(X, X)

    expect(
        program,
        """
        program lambda(%0: f32[3], %1: f32[3]) {
          const %2: f32[3] = [0.5, 1.0, 2.0]
          %3: f32[3] = mul %0, %2
          %4: f32[3] = mul %1, %2
          return %3, %4
        }""",
    )


def test_grad_writes_forward_then_backward(expect: Any):
    program = rune.make_program(rune.grad(lambda x: ops.sin(x).sum()))(X)

    expect(
        program,
        """
        program grad_lambda(%0: f32[3]) {
          %1: f32[3] = sin %0
          %2: f32[3] = cos %0
          %3: f32[] = reduce_sum %1 {axes=(0,)}
          %4: f32[3] = broadcast 1.0: f32[] {axes=(), shape=(3,)}
          %5: f32[3] = mul %4, %2
          return %5
        }""",
    )


def sines(x: Any) -> Any:
    return ops.sin(x).sum()


def test_grad_of_jit_is_two_programs_joined_by_residuals(expect: Any):
    program = rune.make_program(rune.grad(rune.jit(sines)))(X)

    assert names(program) == ["jit", "jit"]
    expect(
        program,
        """
        program grad_jit_sines(%0: f32[3]) {
          %1: f32[], %2: f32[3] = jit %0 {program=program jvp_sines_known(%0: f32[3]) {
            %1: f32[3] = sin %0
            %2: f32[3] = cos %0
            %3: f32[] = reduce_sum %1 {axes=(0,)}
            return %3, %2
          }}
          %3: f32[3] = jit %2, 1.0: f32[] {program=program transpose_jvp_sines_unknown(%0: f32[3], %1: f32[]) {
            %2: f32[3] = broadcast %1 {axes=(), shape=(3,)}
            %3: f32[3] = mul %2, %0
            return %3
          }}
          return %3
        }""",
    )


def test_jit_of_grad_is_one_program(expect: Any):
    program = rune.make_program(rune.jit(rune.grad(lambda x: x * x)))(2.0)

    expect(
        program,
        """
        program jit_grad_lambda(%0: f32*[]) {
          %1: f32*[] = jit %0 {program=program grad_lambda(%0: f32*[]) {
            %1: f32*[] = mul %0, %0
            %2: f32*[] = mul 1.0: f32*[], %0
            %3: f32*[] = mul 1.0: f32*[], %0
            %4: f32*[] = add %2, %3
            return %4
          }}
          return %1
        }""",
    )


def test_vmap_of_jit_is_jit_of_a_batched_program(expect: Any):
    program = rune.make_program(rune.vmap(rune.jit(ops.exp)))(X)

    expect(
        program,
        """
        program vmap_jit_exp(%0: f32[3]) {
          %1: f32[3] = jit %0 {program=program vmap_exp(%0: f32[3]) {
            %1: f32[3] = exp %0
            return %1
          }}
          return %1
        }""",
    )


def test_frames_name_the_line_of_every_operation():
    program = rune.make_program(lambda x: ops.sin(x) * 2.0)(X)

    text = program.text(frames=True)
    assert text.count("# test_programs.py:") == 2


# --- what a program is ------------------------------------------------------------------------


def test_evaluating_a_program_gives_what_the_function_gives():
    def function(x: Any) -> Any:
        return ops.exp(x) / (ops.exp(x) + X)

    program = rune.make_program(function)(X)

    same(function(X), eval_program(program, [X])[0])


def test_a_program_is_traceable_again():
    program = rune.make_program(lambda x: ops.sin(x).sum())(X)

    gradient = rune.grad(lambda x: eval_program(program, [x])[0])(X)

    same(ops.cos(X), gradient)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_programs_of_derivatives_of_every_order_pass_the_check(order: int):
    function = lambda x: ops.tanh(x) * x  # noqa: E731
    for _ in range(order):
        function = rune.grad(function)

    check_program(rune.make_program(function)(0.5))
    check_program(rune.make_program(rune.jit(function))(0.5))


def test_an_argument_that_is_returned_twice_is_the_same_variable():
    program = rune.make_program(lambda x: (x, x))(X)

    assert program.outputs == (program.inputs[0],) * 2


def test_a_program_closes_over_a_value_of_the_trace_around_it():
    def outer(x: Any) -> Any:
        program = rune.make_program(lambda y: y * x)(X)
        assert "const %1: f32[3] = ..." in str(program)
        return eval_program(program, [X])[0]

    np.testing.assert_array_equal(rune.jit(outer)(X), X * X)


def test_make_jaxpr_is_the_same_function():
    assert rune.make_jaxpr is rune.make_program


def test_the_program_of_a_function_without_results():
    program = rune.make_program(lambda x: None)(X)

    assert (program.outputs, program.equations) == ((), ())


def test_a_deep_program_needs_no_recursion():
    def function(x: Any) -> Any:
        for _ in range(3000):
            x = x * 1.0009765625
        return x

    program = rune.make_program(rune.grad(function))(np.float32(1.0))

    assert len(program.equations) >= 3000
    check_program(program)
