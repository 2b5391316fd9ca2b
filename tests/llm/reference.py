"""The decoder in NumPy, float64, written from its formulas, one place after the other.

Parameters are those of a checkpoint by name. Nothing of the example is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What shapes do not say."""

    layers: int
    heads: int
    groups: int
    epsilon: float
    theta: float


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
    drawn = {
        n: random.normal(1 if len(s) == 1 else 0, 0.1 if len(s) == 1 else s[-1] ** -0.5, s) for n, s in shapes.items()
    }
    return {f"{name}.weight": array.astype(np.float32) for name, array in drawn.items()}


def normalised(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x) + epsilon) * weight


def turned(head: np.ndarray, place: int, theta: float) -> np.ndarray:
    """A head's numbers as complex ones, first half and second, each turned by its angle."""
    half = len(head) // 2
    numbers = head[:half] + 1j * head[half:]
    numbers = numbers * np.exp(1j * place * theta ** (-np.arange(half) / half))
    return np.concatenate([numbers.real, numbers.imag])


def logits(arrays: Arrays, tokens: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Logits after each place of one text. Shapes: tokens [T] -> [T, vocabulary]."""
    p = {name.removesuffix(".weight"): array.astype(np.float64) for name, array in arrays.items()}
    xs = [p["model.embed_tokens"][token] for token in tokens]
    for n in range(sizes.layers):
        layer = {k.removeprefix(f"model.layers.{n}."): v for k, v in p.items() if k.startswith(f"model.layers.{n}.")}
        keys, values = [], []
        for place, x in enumerate(xs):
            normed = normalised(x, layer["input_layernorm"], sizes.epsilon)
            queries = (layer["self_attn.q_proj"] @ normed).reshape(sizes.heads, -1)
            keys.append(
                [turned(k, place, sizes.theta) for k in (layer["self_attn.k_proj"] @ normed).reshape(sizes.groups, -1)]
            )
            values.append((layer["self_attn.v_proj"] @ normed).reshape(sizes.groups, -1))
            gathered = []
            for number, query in enumerate(queries):
                group = number * sizes.groups // sizes.heads
                query = turned(query, place, sizes.theta)
                scores = np.array([query @ k[group] for k in keys]) / np.sqrt(len(query))
                shares = np.exp(scores - scores.max())
                gathered.append(sum(s * v[group] for s, v in zip(shares / shares.sum(), values)))
            x = x + layer["self_attn.o_proj"] @ np.concatenate(gathered)
            normed = normalised(x, layer["post_attention_layernorm"], sizes.epsilon)
            gate = layer["mlp.gate_proj"] @ normed
            xs[place] = x + layer["mlp.down_proj"] @ (gate / (1 + np.exp(-gate)) * (layer["mlp.up_proj"] @ normed))
    head = p.get("lm_head", p["model.embed_tokens"])
    return np.stack([head @ normalised(x, p["model.norm"], sizes.epsilon) for x in xs])
