"""Operands of different dtypes, and Python's numbers, are promoted as in jax 0.10.2."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from tests.as_jax.promotion.make_promotion import lines, operand, text

# 64 bits are among the dtypes, off or on.
pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
STORED = Path(__file__).with_name("promotion_jax_0_10_2.txt").read_text().splitlines()


def parts(line: str) -> tuple[str, str, str, str]:
    """Width, operands and result of a line."""
    call, _, result = line.partition(": ")
    width, a, b = call.split()
    return width, a, b, result


def test_the_sum_of_any_two_has_the_dtype_that_it_has_in_jax():
    assert [line for line, line_of_jax in zip(lines(), STORED, strict=True) if line != line_of_jax] == []


@pytest.mark.parametrize("width", ["off", "on"])
def test_every_function_promotes_in_the_same_way_in_both_orders(width: str):
    unlike = []
    with jax.enable_x64(width == "on"):
        for line in STORED:
            w, a, b, result = parts(line)
            if w != width or result == "refused":
                continue
            x, y = operand(a), operand(b)
            others = [text(jnp.add(y, x)), text(jnp.where(True, x, y)), str(jnp.result_type(y, x)) + "*"]
            if {t.rstrip("*") for t in others} != {result.rstrip("*")}:
                unlike.append((line, others))

    assert unlike == []


def test_a_compiled_function_promotes_as_an_eager_one():
    pairs = [p for p in map(parts, STORED) if p[0] == "off" and p[3] != "refused"]

    results = jax.jit(lambda xs: [jnp.add(x, y) for x, y in xs])([(operand(a), operand(b)) for _, a, b, _ in pairs])

    # A Python number that is an argument is a weak array.
    arrays = {"int": "int*", "float": "float*", "complex": "complex*"}
    eager = {frozenset({a, b}): result for _, a, b, result in pairs}
    expected = [eager[frozenset({arrays.get(a, a), arrays.get(b, b)})] for _, a, b, _ in pairs]
    assert [text(r) for r in results] == expected
