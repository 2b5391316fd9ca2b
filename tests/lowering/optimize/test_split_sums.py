"""Long sums of straight code are added up in parts, for devices that run one thread at a time."""

from __future__ import annotations

import numpy as np
import pytest

from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import Accumulate, KernelCode, Var
from rune.lowering.kernel.rewrite import walk
from rune.lowering.optimize.split_sums import split_sums
from tests.lowering.optimize.bodies import CPU, MESA, code

SPLIT = split_sums(MESA)


def total(count: int, combine: str = "add", between: str = "", start: str = "0.0_f32") -> KernelCode:
    """A sum of `count` elements, in one thread."""
    half = count // 2
    additions = [f"s {combine}= x[{k}]" for k in range(count)]
    lines = [*additions[:half], between, *additions[half:]]
    return code(f"var s: f32 = {start}\n{chr(10).join(lines)}\nstore y[0] = s")


def variables(kernel: KernelCode) -> int:
    return sum(isinstance(s, Var) for s in walk(kernel.body))


def test_many_additions_are_made_to_eight_variables_in_turn():
    split = SPLIT.run(total(32))
    names = [s.name for s in walk(split.body) if isinstance(s, Accumulate)]

    assert variables(split) == 8
    assert names[:9] == ["s", *(f"s_{k}" for k in range(2, 9)), "s"]
    assert len(names) == 32 + 7


@pytest.mark.parametrize("kernel", [total(31), total(40, between="t: f32 = s"), total(40, between="s = 1.0_f32")])
def test_short_sums_and_those_that_are_read_in_between_stay(kernel: KernelCode):
    assert SPLIT.run(kernel) == kernel


def test_sums_in_loops_are_split_within_a_round():
    additions = "\n".join(f"s add= x[{k}]" for k in range(32))
    kernel = code(f"var s: f32 = 0.0_f32 for j in 3 serial {{ {additions} }} store y[0] = s")

    assert variables(SPLIT.run(kernel)) == 8


def test_other_devices_keep_their_sums():
    assert split_sums(CPU).run(total(64)) == total(64)


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("count", [32, 37, 64])
def test_split_sums_have_the_same_values(combine: str, count: int):
    x = np.random.default_rng(count).integers(-2, 3, 64).astype(np.float32) + 4
    reduce = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[combine].reduce
    y = np.zeros(64, np.float32)

    interpret(SPLIT.run(total(count, combine, start="3.0_f32")), [x, np.zeros(64, np.int32), y], {"n": 1})

    np.testing.assert_allclose(y[0], reduce([np.float32(3), *x[:count]]), rtol=1e-5)
