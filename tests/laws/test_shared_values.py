"""Values that several kernels could share: the stored value and all of its readers are right.

Random programs of views, diagonals, axes that occur twice, reductions of reductions. They return
their intermediates, so that wherever fusion allows it, one kernel both stores a value and reads it
in another order. The oracle is the meaning of each primitive, equation by equation. The kernels are
run by their definition, by their loops with every check for races, bounds and unwritten memory, and
compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune.core.evaluate import eval_program
from rune.lowering.stages import stages
from tests.support.examples import COMPILING
from tests.support.lowering import (
    PLAIN,
    WITH_DOT,
    agree,
    evaluate,
    random_arguments,
    run_kernel_program,
    run_plan,
    target,
)
from tests.support.random_shared import random_shared

DEVICES = {
    "llvm": PLAIN,
    "routines": WITH_DOT,
    "scratch": target("dot", scratch_bytes=40),
    "opencl": target(language="opencl"),
}
SEEDS = st.integers(0, 1 << 20)


def hold(program: Any, device: Any, seed: int) -> None:
    """The kernels, and the loops made of them, compute what the program does."""
    args = random_arguments(program, seed)
    expected = evaluate(program, args)

    stages_of_program = stages(program, device, check=True)

    agree(expected, run_kernel_program(stages_of_program.kernels, args), 0)
    agree(expected, run_plan(stages_of_program.plan, args), 0)


@pytest.mark.parametrize("device", DEVICES)
@given(seed=SEEDS)
def test_every_intermediate_may_be_a_result(device: str, seed: int):
    hold(random_shared(seed, results=1.0), DEVICES[device], seed)


@pytest.mark.parametrize("device", DEVICES)
@given(seed=SEEDS, part=st.sampled_from([0.15, 0.5]))
def test_any_intermediates_may_be_results(device: str, seed: int, part: float):
    hold(random_shared(seed, results=part), DEVICES[device], seed)


@pytest.mark.parametrize("device", ["cpu:0", "reference:0"])
@COMPILING
@given(seed=SEEDS)
def test_compiled_intermediates_are_those_of_the_program(device: str, seed: int):
    program = random_shared(seed, length=8, results=0.7)
    args = random_arguments(program, seed)

    results = rune.jit(lambda *xs: eval_program(program, xs), device=device)(*args)

    agree(evaluate(program, args), [np.asarray(x) for x in results], 0)
