"""A decoder of Llama's kind in plain rune: RMS norm, rotary places, grouped heads, a gated MLP.

Parameters are a tree whose keys are the names that checkpoints of such models have,
`model.layers.0.self_attn.q_proj.weight`, so that a file's arrays and the tree's leaves are named
alike. A matrix is [out, in], as there, and may be quantised: `linear` is the same for both.

Three functions run it, all of them one compiled program each for every length:

logits    all places of a batch of texts, for training
prefill   a prompt of p tokens: its keys and values into a cache, and the logits of what follows
step      one token after a prefix of t - 1 tokens that the cache has

Source: Touvron et al. 2023, arXiv:2302.13971; Su et al. 2021, arXiv:2104.09864 (places); Ainslie et
al. 2023, arXiv:2305.13245 (groups).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rune
import rune.numpy as rnp
from rune import nn

Params = dict[str, Any]
Cache = list[dict[str, Any]]  # of each layer: keys and values f32[capacity, kv_heads, head_dim]
MATRICES = {"self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("gate_proj", "up_proj", "down_proj")}


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of a model, by the names that config.json has for them."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    tie_word_embeddings: bool = True


# --- parameters ---------------------------------------------------------------------------------


def shapes(config: Config) -> Params:
    """A tree of the shapes of all parameters, f32."""
    width, heads = config.hidden_size, config.num_attention_heads * config.head_dim
    groups, hidden = config.num_key_value_heads * config.head_dim, config.intermediate_size

    def weight(*shape: int) -> dict[str, Any]:
        return {"weight": rune.ShapeDtypeStruct(shape, "float32")}

    def layer() -> Params:
        return {
            "input_layernorm": weight(width),
            "self_attn": {
                "q_proj": weight(heads, width),
                "k_proj": weight(groups, width),
                "v_proj": weight(groups, width),
                "o_proj": weight(width, heads),
            },
            "post_attention_layernorm": weight(width),
            "mlp": {
                "gate_proj": weight(hidden, width),
                "up_proj": weight(hidden, width),
                "down_proj": weight(width, hidden),
            },
        }

    params = {
        "model": {
            "embed_tokens": weight(config.vocab_size, width),
            "layers": [layer() for _ in range(config.num_hidden_layers)],
            "norm": weight(width),
        }
    }
    return params if config.tie_word_embeddings else {**params, "lm_head": weight(config.vocab_size, width)}


def init(config: Config, key: Any) -> Params:
    """Parameters to begin with: norms of 1, matrices that keep the scale of what they meet."""
    leaves, treedef = rune.tree.flatten(shapes(config))
    keys = rune.random.split(key, len(leaves))

    def draw(key: Any, shape: tuple[int, ...]) -> Any:
        if len(shape) == 1:
            return rnp.ones(shape)
        return rune.random.normal(key, shape) * shape[1] ** -0.5

    return rune.tree.unflatten(treedef, [draw(k, leaf.shape) for k, leaf in zip(keys, leaves)])


def quantized(params: Params, bits: int, group: int | None = None) -> Params:
    """The parameters with the layers' matrices in 8 or 4 bits, and scales of rows or groups."""

    def layer(original: Params) -> Params:
        parts = {
            part: {
                name: {"weight": rune.quantize(original[part][name]["weight"], f"int{bits}", axis=1, group=group)}
                for name in names
            }
            for part, names in MATRICES.items()
        }
        return {**original, **parts}

    model = params["model"]
    return {**params, "model": {**model, "layers": [layer(x) for x in model["layers"]]}}


# --- the pieces ---------------------------------------------------------------------------------


def linear(x: Any, matrix: Params) -> Any:
    """[..., in] by a matrix [out, in], quantised or not -> [..., out]."""
    return x @ matrix["weight"].mT


def rotated(x: Any, places: Any, theta: float) -> Any:
    """Turn the first half of each head's numbers against the second, by angles of the places.

    Shapes: x [..., T, heads, D], places i32[T] -> as x.
    """
    half = x.shape[-1] // 2
    frequencies = theta ** (-rnp.arange(half) / half)
    angles = places[:, None, None] * frequencies
    cos, sin = rnp.cos(angles), rnp.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return rnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def heads_of(x: Any, matrix: Params, config: Config) -> Any:
    """[..., T, width] -> [..., T, heads, head_dim]."""
    y = linear(x, matrix)
    return y.reshape(*y.shape[:-1], -1, config.head_dim)


def keys_and_values(layer: Params, x: Any, places: Any, config: Config) -> tuple[Any, Any]:
    """Those of normalised inputs, [..., T, kv_heads, head_dim] each."""
    part = layer["self_attn"]
    keys = rotated(heads_of(x, part["k_proj"], config), places, config.rope_theta)
    return keys, heads_of(x, part["v_proj"], config)


def block(layer: Params, x: Any, places: Any, config: Config, attend: Callable[[Any, Any, Any], Any]) -> Any:
    """One layer. attend: queries, keys and values of the new places -> what the queries gather."""
    normed = norm(x, layer["input_layernorm"], config)
    queries = rotated(heads_of(normed, layer["self_attn"]["q_proj"], config), places, config.rope_theta)
    gathered = attend(queries, *keys_and_values(layer, normed, places, config))
    x = x + linear(gathered.reshape(*gathered.shape[:-2], -1), layer["self_attn"]["o_proj"])
    normed, mlp = norm(x, layer["post_attention_layernorm"], config), layer["mlp"]
    return x + linear(nn.silu(linear(normed, mlp["gate_proj"])) * linear(normed, mlp["up_proj"]), mlp["down_proj"])


def norm(x: Any, weight: Params, config: Config) -> Any:
    """Rows of mean square 1, times a weight."""
    return nn.rms_norm(x, weight["weight"], epsilon=config.rms_norm_eps)


def read_out(params: Params, x: Any, config: Config) -> Any:
    """The logits of what follows each place."""
    head = params["model"]["embed_tokens"] if config.tie_word_embeddings else params["lm_head"]
    return linear(norm(x, params["model"]["norm"], config), head)


# --- running it ---------------------------------------------------------------------------------


def logits(params: Params, tokens: Any, config: Config) -> Any:
    """Logits of the token after each place. Shapes: tokens i32[B, T] -> [B, T, vocab_size]."""
    places = rnp.arange(tokens.shape[1])

    def attend(queries: Any, keys: Any, values: Any) -> Any:
        return nn.dot_product_attention(queries, keys, values, is_causal=True)

    x = params["model"]["embed_tokens"]["weight"][tokens]
    for layer in params["model"]["layers"]:
        x = block(layer, x, places, config, attend)
    return read_out(params, x, config)


def empty_cache(config: Config) -> Cache:
    """A cache with no token in it, for as many as the model has places."""
    shape = (config.max_position_embeddings, config.num_key_value_heads, config.head_dim)
    return [{"keys": rnp.zeros(shape), "values": rnp.zeros(shape)} for _ in range(config.num_hidden_layers)]


def extended(params: Params, cache: Cache, tokens: Any, first: Any, config: Config) -> tuple[Cache, Any]:
    """The cache with tokens i32[n] at the places from `first` on, and the logits after the last.

    The new places attend over all first + n that are there then.
    """
    n = tokens.shape[0]
    total, places = first + n, rnp.arange(n) + first
    visible = rnp.arange(total)[None, :] <= places[:, None]
    longer: Cache = []
    x = params["model"]["embed_tokens"]["weight"][tokens]
    for layer, before in zip(params["model"]["layers"], cache):

        def attend(queries: Any, keys: Any, values: Any, before: dict[str, Any] = before) -> Any:
            after = {
                name: rune.lax.dynamic_update_slice_in_dim(before[name], new, first, axis=0)
                for name, new in (("keys", keys), ("values", values))
            }
            longer.append(after)
            return nn.dot_product_attention(queries, after["keys"][:total], after["values"][:total], mask=visible)

        x = block(layer, x, places, config, attend)
    return longer, read_out(params, x[-1:], config)[0]


def prefill(params: Params, cache: Cache, prompt: Any, config: Config) -> tuple[Cache, Any]:
    """A cache with a prompt i32[p] in it, and the logits of what follows."""
    return extended(params, cache, prompt, 0, config)


def step(params: Params, cache: Cache, prefix: Any, config: Config) -> tuple[Cache, Any]:
    """Take in the last token of a prefix i32[t], whose others are in the cache."""
    return extended(params, cache, prefix[-1:], prefix.shape[0] - 1, config)


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model that is ready to be run, one compiled program for prompts and one for steps.

    prefill, step: those above, of a cache, which is donated, and tokens
    """

    config: Config
    prefill: Callable[[Cache, Any], tuple[Cache, Any]]
    step: Callable[[Cache, Any], tuple[Cache, Any]]


def decoder(params: Params, config: Config) -> Decoder:
    """The model with these parameters. A step changes a row of each array of its cache in place."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        # Parameters that are not arguments need not be looked through in every call.
        return rune.jit(
            lambda cache, tokens: function(params, cache, tokens, config),
            donate_argnums=0,
            dims={"t": (1, config.max_position_embeddings)},
            in_dims=(None, "t"),
        )

    return Decoder(config, compiled(prefill), compiled(step))
