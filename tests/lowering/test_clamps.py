"""Integers that are clamped twice are clamped from below first, because of NVIDIA's compiler."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.lowering.kernel.text import parse, to_text
from rune.lowering.legalize.clamps import clamp_upwards_first
from tests.support.lowering import target
from tests.support.sampling import in_turn

pytestmark = in_turn()

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]


def after(statements: str, language: str = "cuda") -> str:
    """The statements of a kernel over x: i32[8] behind the pass."""
    lines = "\n".join(f"    {line}" for line in statements.split("; "))
    text = f"code f(x: read i32[8], y: write i32[8]) {{\n  for i in 8 grid {{\n{lines}\n  }}\n}}"
    code = clamp_upwards_first(target(language=language)).run(parse(text))
    return "; ".join(line.strip() for line in to_text(code).splitlines()[2:-2])


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("max(min(x[i], 7_i32), 0_i32)", "min(max(x[i], 0_i32), 7_i32)"),
        ("max(0_i32, min(7_i32, x[i]))", "min(7_i32, max(x[i], 0_i32))"),
        ("max(min(x[i], -7_i32), 0_i32)", "min(max(x[i], 0_i32), 0_i32)"),
        ("max(min(x[i], x[0]), 0_i32)", "min(max(x[i], 0_i32), max(x[0], 0_i32))"),
        ("max(min(x[i], 7_i32), 1_i32)", "max(min(x[i], 7_i32), 1_i32)"),
        ("min(max(x[i], 0_i32), 7_i32)", "min(max(x[i], 0_i32), 7_i32)"),
    ],
)
def test_the_lower_limit_comes_first_where_it_is_0(before: str, expected: str):
    assert after(f"store y[i] = {before}") == f"store y[i] = {expected}"


def test_a_clamp_is_recognised_if_its_minimum_has_a_name():
    statements = "a: i32 = x[i]; m: i32 = min(a, 7_i32); store y[i] = max(m, 0_i32)"

    assert after(statements).endswith("store y[i] = min(max(a, 0_i32), 7_i32)")


def test_a_clamp_of_a_variable_that_changes_in_between_is_not_merged():
    statements = "var a: i32 = x[i]; m: i32 = min(a, 7_i32); a = 9_i32; store y[i] = max(m, 0_i32)"

    assert after(statements).endswith("store y[i] = max(m, 0_i32)")


def test_code_of_a_processor_is_not_changed():
    assert after("store y[i] = max(min(x[i], 7_i32), 0_i32)", "llvm").endswith("max(min(x[i], 7_i32), 0_i32)")


@pytest.mark.parametrize("device", DEVICES)
def test_the_branch_of_every_lane_is_its_own(device: str):
    branches = [lambda x: x, lambda x: x * 3 + 1, lambda x: rnp.sqrt(rnp.abs(x)) + 5]
    number = np.array([-9, -1, 0, 1, 2, 3, 70], np.int32)
    x = np.arange(7, dtype=np.float32) * 4

    lanes = rune.jit(rune.vmap(lambda n, x: (lax.switch(n, branches, x), n)), device=device)
    result, _ = lanes(number, x)

    expected = [[x, x * 3 + 1, np.sqrt(x) + 5][n] for n, x in zip(np.clip(number, 0, 2), x, strict=True)]
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_clamped_number_is_compared_with_its_limits(device: str):
    x, n = (np.array(v, np.int32) for v in zip(*itertools.product(range(-3, 9), (2, 5)), strict=True))

    def compared(x: Any, n: Any) -> list[Any]:
        return _with_comparisons(rnp.maximum(rnp.minimum(x, 5), 0), rnp.maximum(rnp.minimum(x, n), 0), n)

    results = rune.jit(compared, device=device)(x, n)

    expected = _with_comparisons(np.clip(x, 0, 5), np.maximum(np.minimum(x, n), 0), n)
    for a, b in zip(expected, results, strict=True):
        np.testing.assert_array_equal(a, np.asarray(b))


def _with_comparisons(to_numbers: Any, to_array: Any, n: Any) -> list[Any]:
    """Two clamped numbers, and whether each is at its limits or within them."""
    by_number = [to_numbers, to_numbers == 5, to_numbers == 1, to_numbers == 0]
    return [*by_number, to_array, to_array == n, to_array == 1, to_array == 0]
