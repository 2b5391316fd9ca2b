"""The decoder in NumPy, float64, written from its formulas, one position after another.

Parameters are those of a checkpoint by name. It shares no code with the example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The settings that shapes do not determine."""

    layers: int
    heads: int
    groups: int
    epsilon: float
    theta: float
    origin: float = 0.0  # norms multiply by this plus their weights
    embedding: float = 1.0  # what embeddings are multiplied by
    curved: bool = False  # the gate is a GELU in its tanh form, and no SiLU
    scale: float | None = None  # of scores; one over the root of a head's size if None
    cap: float | None = None  # of scores
    final_cap: float | None = None  # of logits
    windows: Sequence[int | None] | None = None  # of each layer: how many positions are attended to
    frequencies: Sequence[np.ndarray] | None = None  # of each layer, radians a place


def arrays(vocabulary: int, width: int, hidden: int, head: int, sizes: Sizes, tied: bool) -> dict[str, np.ndarray]:
    """Parameters drawn from a fixed seed, by the names of a checkpoint."""
    random = np.random.default_rng(7)
    shapes = {"model.embed_tokens": (vocabulary, width), "model.norm": (width,)}
    for n in range(sizes.layers):
        for name, shape in {
            "input_layernorm": (width,),
            "post_attention_layernorm": (width,),
            "self_attn.q_proj": (sizes.heads * head, width),
            "self_attn.k_proj": (sizes.groups * head, width),
            "self_attn.v_proj": (sizes.groups * head, width),
            "self_attn.o_proj": (width, sizes.heads * head),
            "mlp.gate_proj": (hidden, width),
            "mlp.up_proj": (hidden, width),
            "mlp.down_proj": (width, hidden),
        }.items():
            shapes[f"model.layers.{n}.{name}"] = shape
    if not tied:
        shapes["lm_head"] = (vocabulary, width)
    numbers = {
        n: random.normal(1 if len(s) == 1 else 0, 0.1 if len(s) == 1 else s[-1] ** -0.5, s) for n, s in shapes.items()
    }
    return {f"{name}.weight": array.astype(np.float32) for name, array in numbers.items()}


def normalised(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x) + epsilon) * weight


def turned(head: np.ndarray, place: int, frequencies: np.ndarray) -> np.ndarray:
    """A head's numbers as complex ones, first half and second, each turned by its angle."""
    half = len(head) // 2
    numbers = head[:half] + 1j * head[half:]
    numbers = numbers * np.exp(1j * place * frequencies)
    return np.concatenate([numbers.real, numbers.imag])


def capped(x: np.ndarray, cap: float | None) -> np.ndarray:
    return x if cap is None else cap * np.tanh(x / cap)


def let_through(gate: np.ndarray, sizes: Sizes) -> np.ndarray:
    if sizes.curved:
        return gate / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
    return gate / (1 + np.exp(-gate))


def matrices(layer: Mapping[str, np.ndarray], head: int, sizes: Sizes) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Those of queries, keys and values, and those of gate and up."""
    if "self_attn.qkv_proj" not in layer:
        return [layer[f"self_attn.{x}_proj"] for x in "qkv"], [layer[f"mlp.{x}_proj"] for x in ("gate", "up")]
    queries, groups = sizes.heads * head, sizes.groups * head
    joint, gate_and_up = layer["self_attn.qkv_proj"], layer["mlp.gate_up_proj"]
    parts = [joint[:queries], joint[queries : queries + groups], joint[queries + groups :]]
    return parts, [gate_and_up[: len(gate_and_up) // 2], gate_and_up[len(gate_and_up) // 2 :]]


def logits(arrays: Arrays, tokens: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Logits after each position of one text. Shapes: tokens [T] -> [T, vocabulary]."""
    p = {name.removesuffix(".weight"): array.astype(np.float64) for name, array in arrays.items()}
    norms = {name: p[name] + sizes.origin for name in p if p[name].ndim == 1}
    xs = [p["model.embed_tokens"][token] * sizes.embedding for token in tokens]
    for n in range(sizes.layers):
        prefix = f"model.layers.{n}."
        layer = {k.removeprefix(prefix): v for k, v in {**p, **norms}.items() if k.startswith(prefix)}
        xs = one_layer(layer, xs, n, sizes)
    head = p.get("lm_head", p["model.embed_tokens"])
    return np.stack([capped(head @ normalised(x, norms["model.norm"], sizes.epsilon), sizes.final_cap) for x in xs])


def one_layer(layer: Mapping[str, np.ndarray], xs: list[np.ndarray], n: int, sizes: Sizes) -> list[np.ndarray]:
    """Layer n at all positions."""
    head = layer["self_attn.o_proj"].shape[1] // sizes.heads
    frequencies = sizes.theta ** (-np.arange(head // 2) / (head // 2))
    frequencies = frequencies if sizes.frequencies is None else sizes.frequencies[n]
    window = None if sizes.windows is None else sizes.windows[n]
    (wq, wk, wv), (w_gate, w_up) = matrices(layer, head, sizes)
    results = "pre_feedforward_layernorm" in layer

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return normalised(x, layer[name], sizes.epsilon) if name in layer else x

    def after(y: np.ndarray, name: str) -> np.ndarray:
        return norm(y, name) if results else y

    keys, values, ys = [], [], []
    for place, x in enumerate(xs):
        unit = norm(x, "input_layernorm")
        group_keys = [norm(k, "self_attn.k_norm") for k in (wk @ unit).reshape(sizes.groups, -1)]
        keys.append([turned(k, place, frequencies) for k in group_keys])
        values.append((wv @ unit).reshape(sizes.groups, -1))
        first = 0 if window is None else max(0, place + 1 - window)
        contexts = []
        for number, query in enumerate((wq @ unit).reshape(sizes.heads, -1)):
            group = number * sizes.groups // sizes.heads
            query = turned(norm(query, "self_attn.q_norm"), place, frequencies)
            scores = np.array([query @ k[group] for k in keys[first:]]) * (sizes.scale or head**-0.5)
            scores = capped(scores, sizes.cap)
            shares = np.exp(scores - scores.max())
            contexts.append(sum(s * v[group] for s, v in zip(shares / shares.sum(), values[first:])))
        x = x + after(layer["self_attn.o_proj"] @ np.concatenate(contexts), "post_attention_layernorm")
        unit = norm(x, "pre_feedforward_layernorm" if results else "post_attention_layernorm")
        y = layer["mlp.down_proj"] @ (let_through(w_gate @ unit, sizes) * (w_up @ unit))
        ys.append(x + after(y, "post_feedforward_layernorm"))
    return ys
