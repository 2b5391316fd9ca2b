"""Decoding with a key-value cache: one compiled program for all positions, and nothing copied.

examples/decode.py does it in three ways. Each must give the attention over the whole prefix, which
NumPy recomputes in float64. Then: how often each way traces and compiles, and where the cache is
from step to step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import dims
from rune.lowering.plan import Copy, Loop, Plan, Space
from tests.support.close import near, same

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import decode
from decode import CAPACITY, HEAD, HEADS, PROMPT, empty_cache, make_weights, step

WEIGHTS = make_weights()
CACHE_BYTES = CAPACITY * HEADS * HEAD * 4  # of the keys, or values, of one layer
COUNT = 40


def declared() -> Any:
    return rune.jit(step, donate_argnums=1, dims={"t": (1, CAPACITY)}, in_dims=(None, None, "t"))


def prefix(t: int) -> np.ndarray:
    return (np.arange(t, dtype=np.int32) * 7) % decode.VOCABULARY


# --- the answers ----------------------------------------------------------------------------------


def recomputed(tokens: np.ndarray) -> np.ndarray:
    """The logits behind every prefix of the tokens, without a cache."""
    weights = rune.tree.map(lambda x: np.asarray(x, np.float64), WEIGHTS)
    places = np.arange(len(tokens))
    x = weights["tokens"][tokens] + weights["positions"][places]
    for layer in weights["layers"]:
        projections = normalised(x) @ layer["queries_keys_values"]
        q, k, v = projections.reshape(-1, 3, HEADS, HEAD).transpose(1, 2, 0, 3)
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(HEAD)
        scores = np.where(places[:, None] >= places, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        context = shares / shares.sum(-1, keepdims=True) @ v
        x = x + context.transpose(1, 0, 2).reshape(len(tokens), -1) @ layer["mix"]
        x = x + np.maximum(normalised(x) @ layer["up"], 0) @ layer["down"]
    return normalised(x) @ weights["logits"]


def normalised(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def automatically(count: int) -> tuple[Any, Any]:
    with rune.configure(symbolic="auto"):
        return decode.decode(rune.jit(step, donate_argnums=1), WEIGHTS, count)


@pytest.mark.parametrize(
    "way",
    [
        lambda count: decode.decode(step, WEIGHTS, count),
        lambda count: decode.decode(declared(), WEIGHTS, count),
        automatically,
        lambda count: decode.decode_by_scan(WEIGHTS, PROMPT, count=count),
    ],
    ids=["eager", "declared", "automatic", "whole"],
)
def test_every_way_gives_what_attention_over_the_whole_prefix_gives(way: Any):
    tokens, logits = map(np.asarray, way(COUNT))

    expected = recomputed(tokens)
    same(PROMPT, tokens[: len(PROMPT)])
    same(expected[len(PROMPT) - 1 : -1].argmax(-1).astype(np.int32), tokens[len(PROMPT) :])
    near(expected, logits, relative=1e-4, why="two layers in f32")


# --- how often it compiles ------------------------------------------------------------------------


def test_one_compiled_program_covers_all_positions():
    f, cache = declared(), empty_cache()

    with rune.counting() as counts:
        for t in range(1, CAPACITY + 1):
            cache, _ = f(WEIGHTS, cache, prefix(t))
    assert (counts.traces, counts.compiles, counts.runs) == (1, 1, CAPACITY)


@pytest.mark.parametrize("device", [d.name for d in rune.devices() if d.target.backend != "null"])
def test_every_device_decodes_with_one_program(device: str):
    count = 12
    with rune.configure(device=device):
        f, cache, logits_by_position = declared(), empty_cache(), []
        with rune.counting() as counts:
            for t in range(1, count + 1):
                cache, logits = f(WEIGHTS, cache, prefix(t))
                logits_by_position.append(np.asarray(logits))

    assert (counts.traces, counts.compiles, counts.runs) == (1, 1, count)
    near(recomputed(prefix(count)), np.stack(logits_by_position), relative=1e-4, why="two layers in f32")


def test_automatic_sizes_compile_once_more_when_the_length_has_changed_twice():
    f, cache, compiles = rune.jit(step, donate_argnums=1), empty_cache(), []

    with rune.configure(symbolic="auto"):
        for t in (*range(1, 8), CAPACITY):
            with rune.counting() as counts:
                cache, _ = f(WEIGHTS, cache, prefix(t))
            compiles.append(counts.compiles)
    # A length of 1 is a special size; then 2, 3, and one program from 4 on.
    assert compiles == [1, 1, 1, 1, 0, 0, 0, 0]


def test_a_prefix_that_the_cache_cannot_hold_is_refused():
    with pytest.raises(rune.errors.DimensionError, match=r"with t = 257 \(t in 1..256"):
        declared()(WEIGHTS, empty_cache(), prefix(CAPACITY + 1))


def test_the_whole_decoding_is_one_program_that_runs_once():
    f = rune.jit(decode.decode_by_scan.function, static_argnames="count")

    with rune.counting() as counts:
        f(WEIGHTS, PROMPT, count=COUNT)
    assert (counts.traces, counts.compiles, counts.runs) == (1, 1, 1)


# --- where the cache is ---------------------------------------------------------------------------


def addresses(cache: Any) -> list[int]:
    return [x.buffer.ctypes.data for x in rune.tree.leaves(cache)]


def whole_copies(plan: Plan) -> Iterator[Copy]:
    """Copies of as many bytes as a cache from one place to another in each run of the plan.

    A donated argument whose memory becomes the result's does not count.
    """
    stays = {((Space.ARGUMENT, a), (Space.RESULT, r)) for a, r in plan.donations}
    for copy in (s for s in plan.steps if isinstance(s, Copy)):
        source, target = copy.source, copy.target
        elements = dims.product(target.type.shape)
        places = (source.space, source.number), (target.space, target.number)
        if places not in stays and elements * target.type.dtype.itemsize >= CACHE_BYTES:
            yield copy


def test_a_donated_cache_keeps_its_memory_during_decoding():
    f, cache = declared(), empty_cache()
    cache, _ = f(WEIGHTS, cache, prefix(1))  # zeros may be shared
    before = addresses(cache)

    for t in range(2, COUNT):
        cache, _ = f(WEIGHTS, cache, prefix(t))
        assert addresses(cache) == before


def test_a_step_has_no_room_for_a_copy_of_the_cache():
    plan = rune.explain(declared())(WEIGHTS, empty_cache(), prefix(3)).plan

    assert len(plan.donations) == len(rune.tree.leaves(empty_cache()))
    assert list(whole_copies(plan)) == []
    assert dims.evaluate(plan.arena_bytes, {"t": CAPACITY}) < CACHE_BYTES


def test_a_step_of_the_whole_decoding_copies_no_cache():
    plan = rune.explain(decode.decode_by_scan)(WEIGHTS, PROMPT, count=COUNT).plan

    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    assert list(whole_copies(loop.body)) == []
    assert dims.evaluate(loop.body.arena_bytes, {}) < CACHE_BYTES
    assert len(loop.body.donations) >= len(rune.tree.leaves(empty_cache()))


def test_without_donation_every_step_copies_the_cache():
    f = rune.jit(step, dims={"t": (1, CAPACITY)}, in_dims=(None, None, "t"))
    plan = rune.explain(f)(WEIGHTS, empty_cache(), prefix(3)).plan

    assert len(list(whole_copies(plan))) == len(rune.tree.leaves(empty_cache()))


def test_the_script_prints_the_same_text_for_every_way(capsys):
    decode.main(count=16)

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["declared", "automatic", "whole"]
    assert len({line.split(": ")[1] for line in lines}) == 1
