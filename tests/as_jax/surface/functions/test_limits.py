"""At limits (NaN, infinities, -0.0, the largest numbers) answers are those of jax 0.10.2.

NaN, infinities and the signs of zeros are where JAX has them, integers are equal, and other numbers
agree to a few ulps; where JAX has 0, a denormal is right. hard_differences.txt has the expressions
of hard.txt that differ on purpose, with reasons, hard_slopes.txt those whose tangents do, and
hard_cotangents.txt those whose cotangents do as well.
A run tries all values and slopes, and a share by vmap and jit; RUNE_TEST_WHOLE=1 tries all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import jax
import numpy as np
import pytest

from tests.as_jax.surface.functions.letters import FOLDER, WAYS, Expression, expressions, is_inexact
from tests.as_jax.surface.functions.pulled import pulled
from tests.as_jax.surface.functions.test_functions import expected, is_tried

Same = Callable[[np.ndarray, np.ndarray], np.ndarray]


def disagreements(e: Expression, way: str, same: Same | None = None) -> Iterator[str]:
    """Where and how answers differ."""
    same = same or is_same
    answers = [np.asarray(x) for x in jax.tree.leaves((WAYS | {"vjp": pulled})[way](e))]
    reference = expected(e, way)
    assert reference is not None
    if [(x.dtype, x.shape) for x in answers] != [(x.dtype, x.shape) for x in reference]:
        yield f"{e.text}: {way}: {[(x.dtype, x.shape) for x in answers]} for {[(x.dtype, x.shape) for x in reference]}"
        return
    for x, y in zip(answers, reference, strict=True):
        wrong = ~same(x, y)
        if wrong.any():
            yield f"{e.text}: {way}: at {np.argwhere(wrong).tolist()}: {x[wrong]} for {y[wrong]}"


def is_same(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether two arrays of one type have the same numbers."""
    if not is_inexact(y):
        return x == y
    if np.issubdtype(x.dtype, np.complexfloating):
        return is_same(np.real(x), np.real(y)) & is_same(np.imag(x), np.imag(y))
    tiny = float(np.finfo(np.float32).tiny) if y.dtype.itemsize != 2 or y.dtype.name == "bfloat16" else 6.2e-5
    x, y = (np.asarray(v, np.float64 if v.dtype.itemsize > 2 else np.float32) for v in (x, y))
    digits = 2e-3 if wide(x) else 3e-6
    with np.errstate(all="ignore"):
        is_near = np.abs(x - y) <= digits * np.abs(y)
    is_zero = (y == 0) & (np.abs(x) < tiny)
    signs = np.signbit(x) == np.signbit(y)
    return np.where(is_zero, signs, is_near | (x == y) | (np.isnan(x) & np.isnan(y)))


def is_same_slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether two tangents agree: formulas of slopes lose digits, and their zeros have no sign."""
    if np.issubdtype(x.dtype, np.complexfloating):
        return is_same_slope(np.real(x), np.real(y)) & is_same_slope(np.imag(x), np.imag(y))
    is_half, is_float16 = y.dtype.itemsize == 2, y.dtype == np.float16
    tiny = 6.2e-5 if is_float16 else float(np.finfo(np.float32).tiny)
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    with np.errstate(all="ignore"):
        is_near = np.abs(x - y) <= (1e-2 if is_half else 1e-4) * np.abs(y) + 4 * tiny
    return is_near | (x == y) | (np.isnan(x) & np.isnan(y))


def wide(x: np.ndarray) -> bool:
    """Whether the array has been widened from 16 bits or fewer."""
    return x.dtype == np.float32


# The mean of i32 at both ends of its range: what is left of the sum is rounding.
CANCELLED = {"jnp.mean(I)", "jnp.nanmean(I)"}


@cache
def on_purpose(file: str = "hard_differences.txt") -> frozenset[str]:
    """The expressions that differ for a reason."""
    lines = (FOLDER / file).read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


@pytest.mark.filterwarnings("ignore")
def test_values_at_limits_are_those_of_jax_but_for_the_table():
    wrong = {e.text: line for e in expressions("hard") for line in disagreements(e, "value")}

    assert [line for text, line in wrong.items() if text not in on_purpose()] == []
    assert [text for text in on_purpose() if text not in wrong] == []


@pytest.mark.parametrize("way", ["vmap", "jit"])
@pytest.mark.filterwarnings("ignore")
def test_the_answers_at_limits_are_those_of_jax(way: str):
    others = on_purpose() | CANCELLED
    trials = [e for e in expressions("hard") if is_tried(e, way) and e.text not in others]

    assert [line for e in trials for line in disagreements(e, way)] == []


@pytest.mark.filterwarnings("ignore")
def test_tangents_at_limits_are_those_of_jax_but_for_the_table():
    lines = [e for e in expressions("hard") if expected(e, "jvp") is not None]
    wrong = {e.text: line for e in lines for line in disagreements(e, "jvp", is_same_slope)}
    table = on_purpose("hard_slopes.txt")

    assert [line for text, line in wrong.items() if text not in table] == []
    assert [text for text in table if text not in wrong] == []


# Their tangents differ, but not their cotangents, which are empty.
AGREEING = {"jnp.var(E, axis=0)", "jnp.nanmean(E, axis=0)", "jnp.tanh(H)", "stats.beta.logpdf(X, 2.0, 3.0)"}
AGREEING |= {f"jnp.{name}(X[:, None], Y)" for name in ("remainder", "fmod", "divmod")} | {"jnp.fmod(H[:, None], H)"}


@pytest.mark.filterwarnings("ignore")
def test_cotangents_at_limits_are_those_of_jax_but_for_the_tables():
    lines = [e for e in expressions("hard") if expected(e, "vjp") is not None]
    wrong = {e.text: line for e in lines for line in disagreements(e, "vjp", is_same_slope)}
    table = on_purpose("hard_slopes.txt") - AGREEING | on_purpose("hard_cotangents.txt")

    assert [line for text, line in wrong.items() if text not in table] == []
    assert [text for text in table if text not in wrong] == []
