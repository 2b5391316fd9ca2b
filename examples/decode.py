"""Decode with a key-value cache: a small attention model, one compiled program for all positions.

    python examples/decode.py

Each step writes the key and value of one token into a cache and attends over what is there so far.
Three ways to run it, which give the same text:

declared    the prefix has a symbolic length t; one compilation serves every t up to the capacity
automatic   the same step without a declaration; rune notices that the length changes
whole       the position is a traced number and the cache is masked; `scan` over all positions makes
            the whole decoding one compiled program

The cache is donated, so a step changes one row of each of its arrays where they are. The weights
are drawn from a fixed seed and mean nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import nn

LAYERS, HEADS, WIDTH, VOCABULARY, CAPACITY = 2, 4, 64, 64, 256
HEAD = WIDTH // HEADS
PROMPT = np.array([7, 21, 3], np.int32)

Weights = dict[str, Any]
Cache = tuple[tuple[Any, Any], ...]  # keys and values of each layer: f32[CAPACITY, HEADS, HEAD]
Rows = Callable[[Any], Any]  # keys or values -> those to attend over


def make_weights(seed: int = 0) -> Weights:
    """The weights; their variances keep the scale of what they meet."""
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> Any:
        return rnp.asarray(random.normal(0, shape[-2] ** -0.5, shape).astype(np.float32))

    def layer() -> dict[str, Any]:
        return {
            "queries_keys_values": draw(WIDTH, 3 * WIDTH),
            "mix": draw(WIDTH, WIDTH),
            "up": draw(WIDTH, 4 * WIDTH),
            "down": draw(4 * WIDTH, WIDTH),
        }

    return {
        "tokens": draw(VOCABULARY, WIDTH),
        "positions": draw(CAPACITY, WIDTH),
        "layers": tuple(layer() for _ in range(LAYERS)),
        "logits": draw(WIDTH, VOCABULARY),
    }


def empty_cache() -> Cache:
    """A cache with no token in it."""
    shape = (CAPACITY, HEADS, HEAD)
    return tuple((rnp.zeros(shape), rnp.zeros(shape)) for _ in range(LAYERS))


def attention(query: Any, keys: Any, values: Any, allowed: Any = None) -> Any:
    """Attend from one token over T others.

    Shapes: query [HEADS, HEAD]; keys, values [T, HEADS, HEAD]; allowed bool [T] -> [WIDTH].
    """
    scores = rnp.sum(query * keys, axis=-1) * HEAD**-0.5
    if allowed is not None:
        scores = rnp.where(allowed[:, None], scores, -rnp.inf)
    shares = nn.softmax(scores, axis=0)
    return rnp.sum(shares[:, :, None] * values, axis=0).reshape(WIDTH)


def decode_token(
    weights: Weights, cache: Cache, token: Any, position: Any, rows: Rows, allowed: Any = None
) -> tuple[Cache, Any]:
    """The cache with one more token, and the logits of what follows it.

    rows: which of the cache's CAPACITY rows to attend over; allowed: which of these count.
    """
    x = weights["tokens"][token] + weights["positions"][position]
    longer = []
    for layer, (keys, values) in zip(weights["layers"], cache):
        projected = nn.rms_norm(x) @ layer["queries_keys_values"]
        query, key, value = projected.reshape(3, HEADS, HEAD)
        keys, values = keys.at[position].set(key), values.at[position].set(value)
        longer.append((keys, values))
        x = x + attention(query, rows(keys), rows(values), allowed) @ layer["mix"]
        x = x + nn.relu(nn.rms_norm(x) @ layer["up"]) @ layer["down"]
    return tuple(longer), nn.rms_norm(x) @ weights["logits"]


def step(weights: Weights, cache: Cache, prefix: Any) -> tuple[Cache, Any]:
    """Take in the last token of a prefix of t tokens, whose others are in the cache."""
    t = prefix.shape[0]
    return decode_token(weights, cache, prefix[-1], t - 1, lambda rows: rows[:t])


declared = rune.jit(step, donate_argnums=1, dims={"t": (1, CAPACITY)}, in_dims=(None, None, "t"))
automatic = rune.jit(step, donate_argnums=1)  # to be called under configure(symbolic="auto")


def decode(
    step: Callable[..., Any], weights: Weights, count: int, prompt: np.ndarray = PROMPT
) -> tuple[np.ndarray, np.ndarray]:
    """`count` tokens, the prompt and then the likeliest ones, and the logits behind each."""
    cache, tokens, logits_of_steps = empty_cache(), prompt.tolist(), []
    for t in range(1, count + 1):
        cache, logits = step(weights, cache, np.asarray(tokens[:t], np.int32))
        logits_of_steps.append(np.asarray(logits))
        if t == len(tokens):
            tokens.append(int(logits_of_steps[-1].argmax()))
    return np.asarray(tokens[:count], np.int32), np.stack(logits_of_steps)


@functools.partial(rune.jit, static_argnames="count")
def decode_by_scan(weights: Weights, prompt: Any, count: int) -> tuple[Any, Any]:
    """What `decode` gives, as one program: a loop over positions that carries the cache."""
    padded_prompt = rnp.zeros(count, "int32").at[: len(prompt)].set(prompt)
    places = rnp.arange(CAPACITY)

    def body(carry: tuple[Cache, Any], position: Any) -> tuple[tuple[Cache, Any], tuple]:
        cache, chosen = carry
        token = rnp.where(position < len(prompt), padded_prompt[position], chosen)
        cache, logits = decode_token(weights, cache, token, position, lambda rows: rows, places <= position)
        return (cache, rnp.argmax(logits).astype("int32")), (token, logits)

    start = (empty_cache(), rnp.int32(0))
    _, (tokens, logits) = rune.scan(body, start, rnp.arange(count))
    return tokens, logits


def main(count: int = CAPACITY) -> None:
    """Decode in the three ways, and say what each of them took."""
    weights = make_weights()

    def automatically() -> tuple[Any, Any]:
        with rune.configure(symbolic="auto"):
            return decode(automatic, weights, count)

    ways: dict[str, Callable[[], tuple[Any, Any]]] = {
        "declared": lambda: decode(declared, weights, count),
        "automatic": automatically,
        "whole": lambda: decode_by_scan(weights, PROMPT, count=count),
    }
    for name, way in ways.items():
        with rune.counting() as counts:
            tokens, _ = way()
        shown = " ".join(map(str, np.asarray(tokens)[:12]))
        print(f"{name:10} {counts.compiles} compiled, {counts.runs} runs: {shown} ...")


if __name__ == "__main__":
    main()
