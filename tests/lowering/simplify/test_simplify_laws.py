"""Laws of program passes: whatever the program, evaluation is unchanged bit for bit.

This holds for each pass alone and for any order of passes, and together they reach a fixpoint.
Inputs include special values (NaN, infinities, both zeros), for which laws of arithmetic break.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import ops
from rune.core.check import check_program
from rune.core.program import Program
from rune.lowering.passes import fixpoint, run_passes
from rune.lowering.simplify.scalar_laws import SCALAR_LAWS
from tests.lowering.simplify.cases import PASSES
from tests.support.close import same
from tests.support.lowering import evaluate, f32, i32, number, program_of, random_arguments
from tests.support.random_programs import random_program
from tests.support.work import calls

# The laws of select and convert are about operands and dtypes; the text cases show them.
ABOUT_VALUES = [p for p in SCALAR_LAWS if p not in (ops.select, ops.convert)]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38, 1e-45], np.float32)


def special_arguments(program: Program, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.choice(SPECIAL, size=v.type.shape) for v in program.inputs]


@given(st.integers(0, 10_000), st.permutations(list(PASSES)))
def test_any_order_of_passes_keeps_every_bit(seed: int, order: list[str]):
    program = random_program(seed)

    result = run_passes([PASSES[name] for name in order], program, check_program)

    args = random_arguments(program, seed)
    same(evaluate(program, args), evaluate(result, args))


@given(st.integers(0, 10_000))
def test_the_fixpoint_is_reached_and_keeps_every_bit(seed: int):
    program = random_program(seed, length=20)
    together = fixpoint(*PASSES.values())

    result = together.run(program)

    assert together.run(result) is result
    args = random_arguments(program, seed)
    same(evaluate(program, args), evaluate(result, args))


def _applied(primitive, dtype_of):
    """Every way to give a primitive x, -x, and special constants."""
    constants = (0.0, -0.0, 1.0, -1.0) if dtype_of is f32 else (0, 1, -1)
    dtype = dtype_of().dtype
    count = primitive.name in ("neg", "not") or 2
    for c in constants if count == 2 else (None,):
        yield lambda x, c=c: primitive(x, number(c, dtype)) if c is not None else primitive(x)
        if c is not None:
            yield lambda x, c=c: primitive(number(c, dtype), x)
    if count == 2:
        yield lambda x: primitive(x, x)


@pytest.mark.parametrize("dtype_of", [f32, i32], ids=["f32", "i32"])
@pytest.mark.parametrize("primitive", ABOUT_VALUES, ids=lambda p: p.name)
def test_a_scalar_law_holds_for_special_values(primitive, dtype_of):
    x = SPECIAL if dtype_of is f32 else np.array([0, 1, -1, 7, -(2**31), 2**31 - 1], np.int32)
    together = fixpoint(*PASSES.values())
    for function in _applied(primitive, dtype_of):
        try:
            program = program_of(function, dtype_of(len(x)))
        except TypeError:
            continue  # the primitive does not take this dtype
        same(evaluate(program, [x]), evaluate(together.run(program), [x]))


def test_the_algebraic_passes_are_linear_in_the_length_of_a_chain():
    def work(count: int) -> int:
        def chain(x):
            for k in range(count // 2):
                x = ops.add(ops.mul(x, number(1 + k)), number(-0.0))
            return x

        program = program_of(chain, f32(4))
        return calls(lambda: fixpoint(*PASSES.values()).run(program))

    work(100)
    one, four = work(500), work(2000)

    assert four < 6 * one
