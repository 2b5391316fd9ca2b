"""Attention on every executor: in one pass over keys that recomputes scores, or with stored scores.

On processors the default is to store scores, so streaming is forced here on every device with
groups of threads. With odd sizes, masks, bias, grouped heads, one query, and gradients; NumPy in
f64 is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, nn
from rune import numpy as rnp
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from tests.support.attention import Case, attention, gradient, gradient_of_squares, slopes_in_a_direction
from tests.support.close import near, same
from tests.support.sampling import each_value, in_turn

DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
on_every_executor = pytest.mark.parametrize("device", DEVICES)
CASES = (Case(1, 5, 7, 1, 1, 3), Case(2, 13, 67, 2, 1, 5), Case(1, 67, 131, 2, 2, 17), Case(2, 1, 65, 4, 2, 8))
# Head sizes: those of vectors, of rows of threads, and others.
WIDE = (Case(1, 33, 70, 1, 1, 16), Case(1, 65, 129, 1, 1, 64), Case(1, 1, 300, 2, 1, 128), Case(1, 64, 192, 1, 1, 48))


@pytest.fixture(autouse=True)
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute scores again wherever a group shares them."""

    def again(target: Target) -> bool:
        return target.language in cost.STREAMING

    monkeypatch.setattr(cost, "computes_again", again)


def computed(function: Callable[..., Any], args: list[np.ndarray], device: str) -> Any:
    """The results on a device, as NumPy arrays."""
    out = rune.jit(function, device=device)(*map(rnp.asarray, args))
    return rune.tree.map(np.asarray, out)


@in_turn("case")
@on_every_executor
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention_is_right_at_odd_sizes(case: Case, causal: bool, device: str):
    out = computed(attention(is_causal=causal), case.arrays(), device)

    near(case.values(case.causal() if causal else None), out, relative=1e-5, why="f32 sums")


@each_value()
@in_turn("case")
@on_every_executor
@pytest.mark.parametrize("case", WIDE, ids=str)
def test_attention_is_right_for_heads_of_every_width(case: Case, device: str):
    out = computed(attention(), case.arrays(), device)

    near(case.values(None), out, relative=1e-5, why="f32 sums")


@each_value()
@in_turn("case")
@on_every_executor
@pytest.mark.parametrize("case", [Case(2, 1, 1031, 4, 2, 128), Case(1, 3, 4099, 2, 2, 64)], ids=str)
def test_few_queries_attend_to_a_long_cache(case: Case, device: str):
    out = computed(attention(), case.arrays(), device)

    near(case.values(None), out, relative=1e-5, why="f32 sums")


@each_value()
@in_turn("case", "dtype")
@on_every_executor
@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=str)
@pytest.mark.parametrize("case", [Case(1, 64, 128, 1, 1, 64), Case(1, 70, 131, 2, 1, 16)], ids=str)
def test_attention_is_right_for_halves(case: Case, dtype: Any, device: str):
    arrays = case.arrays(dtype)
    out = rune.jit(attention(is_causal=True), device=device)(*(rnp.asarray(x, dtype=dtype) for x in arrays))

    wide = np.asarray(out).astype(np.float64)
    near(case.values(case.causal(), arrays=arrays), wide, relative=2e-2, why="weights are rounded")


@each_value()
@in_turn("case", "dtype")
@on_every_executor
@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=str)
@pytest.mark.parametrize("case", [Case(1, 70, 131, 2, 2, 16), Case(1, 64, 128, 1, 1, 64)], ids=str)
def test_gradients_of_halves_are_right(case: Case, dtype: Any, device: str):
    arrays, cotangent = case.arrays(dtype), case.cotangent().astype(dtype)
    args = [rnp.asarray(x, dtype=dtype) for x in (*arrays, cotangent)]
    out = rune.jit(slopes_in_a_direction, device=device)(*args)

    expected = case.gradients(case.causal(), cotangent=cotangent.astype(np.float64), arrays=arrays)
    for exact, actual in zip(expected, out, strict=True):
        scale = np.abs(exact).max()
        wide = np.asarray(actual).astype(np.float64)
        near(exact / scale, wide / scale, relative=0, absolute=3e-2, why="halves, thrice")


@each_value()
@in_turn("case")
@on_every_executor
@pytest.mark.parametrize("case", [CASES[2], *WIDE[::2]], ids=str)
def test_gradients_that_depend_on_the_result_are_right(case: Case, device: str):
    out = computed(gradient_of_squares(is_causal=True), case.arrays(), device)

    for expected, actual in zip(case.gradients(case.causal(), cotangent=2 * case.values(case.causal())), out):
        near(expected, actual, relative=1e-4, why="f32 sums, of a result that is one")


@each_value()
@in_turn("case")
@on_every_executor
@pytest.mark.parametrize("case", CASES[1::2], ids=str)
def test_gradients_are_right_at_odd_sizes(case: Case, device: str):
    out = computed(gradient(is_causal=True), [*case.arrays(), case.cotangent()], device)

    for expected, actual in zip(case.gradients(case.causal()), out, strict=True):
        near(expected, actual, relative=5e-5, why="f32 sums")


@in_turn()
@on_every_executor
def test_windows_and_biases_are_right(device: str):
    case = Case(1, 33, 67, 2, 1, 8)
    bias = np.random.default_rng(3).normal(size=(1, 2, 33, 67)).astype(np.float32)
    options = {"bias": bias, "local_window_size": (3, 2)}
    mask = case.window(3, 2)

    out = computed(attention(**options), case.arrays(), device)
    near(case.values(mask, bias), out, relative=1e-5, why="f32 sums")
    slopes = computed(gradient(**options), [*case.arrays(), case.cotangent()], device)
    for expected, actual in zip(case.gradients(mask, bias), slopes, strict=True):
        near(expected, actual, relative=5e-5, why="f32 sums")


@in_turn()
@on_every_executor
def test_a_query_that_sees_nothing_attends_uniformly(device: str):
    case = Case(1, 5, 66, 1, 1, 4)
    mask = np.ones((5, 66), np.bool_)
    mask[2], mask[3, :65] = False, False

    out = computed(attention(mask=mask), case.arrays(), device)
    near(case.values(mask), out, relative=1e-5, why="f32 sums")


@in_turn()
@on_every_executor
def test_every_run_has_the_same_bits(device: str):
    case = CASES[1]
    args = [*map(rnp.asarray, [*case.arrays(), case.cotangent()])]
    function = rune.jit(gradient(is_causal=True), device=device)

    first = rune.tree.map(np.asarray, function(*args))
    for _ in range(3):
        same(first, rune.tree.map(np.asarray, function(*args)))


@in_turn()
@on_every_executor
def test_batches_of_attention_are_right(device: str):
    case = Case(3, 7, 35, 2, 2, 4)
    one = attention()
    out = computed(rune.vmap(lambda q, k, v: one(q, k, v)), case.arrays(), device)

    near(case.values(None), out, relative=1e-5, why="f32 sums")


@in_turn("length")
@on_every_executor
@pytest.mark.parametrize("length", [65_536, 65_537])
def test_softmax_of_long_rows_in_parts_is_right(length: int, device: str):
    x = np.random.default_rng(5).normal(size=(3, length)).astype(np.float32)
    x[1, :9000], x[2] = -np.inf, -1e30
    x[2, 9] = -np.inf

    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    out = computed(nn.softmax, [x], device)
    near(e / e.sum(1, keepdims=True), out, relative=1e-5, absolute=1e-10, why="f32 sums")


@in_turn()
@on_every_executor
def test_long_sequences_need_no_memory_for_scores(device: str):
    if device.startswith("cpu"):
        pytest.skip("a processor stores scores")
    case = Case(1, 1031, 1033, 1, 1, 8)
    function = gradient(is_causal=True)
    args = [*map(rnp.asarray, [*case.arrays(), case.cotangent()])]

    assert rune.explain(function, device=device)(*args).costs.arena_bytes < 1031 * 1033
