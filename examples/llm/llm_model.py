"""A decoder in plain rune: RMS norm, rotary places, grouped heads, a gated MLP.

It is that of Llama, Mistral, Gemma 1 to 3 and Phi-3, which differ in what llm_config.py lists.
Parameters are a tree whose keys are the names that checkpoints of such models have,
`model.layers.0.self_attn.q_proj.weight`, so that a file's arrays and the tree's leaves are named
alike. A matrix is [out, in], as there, and may be quantised: `linear` is the same for both.

logits      all places of a batch of texts, for training
prefill     a prompt of p tokens: its keys and values into a cache, and the logits of what follows
continued   BLOCK tokens more after a prefix of t, drawn where they are computed, in one call

Source: Touvron et al. 2023, arXiv:2302.13971; Su et al. 2021, arXiv:2104.09864 (places); Ainslie et
al. 2023, arXiv:2305.13245 (groups).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llm_config import Config

import rune
import rune.numpy as rnp
from rune import nn

Params = dict[str, Any]
Turn = tuple[Any, Any]  # cosines and sines of the angles of places, f32[T, 1, head_dim / 2] each
Attend = Callable[[int, Any, Any, Any], Any]  # layer, queries, keys, values of new places -> [..., T, heads, D]
Cache = list[dict[str, Any]]  # of each layer: keys and values f32[capacity, kv_heads, head_dim]
UNSEEN = -1e30  # the score of a position that is masked
BLOCK = 16  # tokens of one call of `continued`
LEAST = 0.05  # of the likeliest token's probability, for one to be drawn


# --- parameters ---------------------------------------------------------------------------------


def shapes(config: Config) -> Params:
    """A tree of the shapes of all parameters, f32."""
    width, embeddings = config.hidden_size, {"embed_tokens": _weight(config.vocab_size, config.hidden_size)}
    layers = [layer_shapes(config) for _ in range(config.num_hidden_layers)]
    params: Params = {"model": {**embeddings, "layers": layers, "norm": _weight(width)}}
    return params if config.tie_word_embeddings else {**params, "lm_head": _weight(config.vocab_size, width)}


def _weight(*shape: int) -> dict[str, Any]:
    return {"weight": rune.ShapeDtypeStruct(shape, "float32")}


def layer_shapes(config: Config) -> Params:
    """Those of one layer."""
    width, hidden, head, family = config.hidden_size, config.intermediate_size, config.head_dim, config.family
    queries, groups = config.num_attention_heads * head, config.num_key_value_heads * head
    attention = {"o_proj": _weight(width, queries)}
    mlp = {"down_proj": _weight(width, hidden)}
    if family.joins_matrices:
        attention["qkv_proj"] = _weight(queries + 2 * groups, width)
        mlp["gate_up_proj"] = _weight(2 * hidden, width)
    else:
        attention |= {f"{x}_proj": _weight(rows, width) for x, rows in zip("qkv", (queries, groups, groups))}
        mlp |= {"gate_proj": _weight(hidden, width), "up_proj": _weight(hidden, width)}
    if family.norms_heads:
        attention |= {"q_norm": _weight(head), "k_norm": _weight(head)}
    names = ["input_layernorm", "post_attention_layernorm"]
    names += ["pre_feedforward_layernorm", "post_feedforward_layernorm"] if family.norms_results else []
    return {**{name: _weight(width) for name in names}, "self_attn": attention, "mlp": mlp}


def init(config: Config, key: Any) -> Params:
    """Parameters to begin with: norms of 1, matrices that keep the scale of what they meet."""
    leaves, treedef = rune.tree.flatten(shapes(config))
    keys = rune.random.split(key, len(leaves))

    def draw(key: Any, shape: tuple[int, ...]) -> Any:
        if len(shape) == 1:
            return rnp.full(shape, 1 - config.family.norm_origin, "float32")
        return rune.random.normal(key, shape) * shape[1] ** -0.5

    return rune.tree.unflatten(treedef, [draw(k, leaf.shape) for k, leaf in zip(keys, leaves)])


def quantized(params: Params, bits: int, group: int | None = None) -> Params:
    """The parameters with the layers' matrices in 8 or 4 bits, and scales of rows or groups."""

    def few(weight: Any) -> Any:
        return rune.quantize(weight, f"int{bits}", axis=1, group=group) if weight.ndim == 2 else weight

    model = params["model"]
    return {**params, "model": {**model, "layers": rune.tree.map(few, model["layers"])}}


# --- the pieces ---------------------------------------------------------------------------------


def linear(x: Any, matrix: Params) -> Any:
    """[..., in] by a matrix [out, in], quantised or not -> [..., out]."""
    return x @ matrix["weight"].mT


def norm(x: Any, weight: Params, config: Config) -> Any:
    """Rows of mean square 1, times a weight."""
    origin = config.family.norm_origin
    factor = weight["weight"] + origin if origin else weight["weight"]
    return nn.rms_norm(x, factor, epsilon=config.rms_norm_eps)


def turns(places: Any, config: Config) -> list[Turn]:
    """For each layer, how far its heads turn at places i32[T]; layers that turn alike share one."""
    several: dict[bytes, Turn] = {}
    for layer in range(config.num_hidden_layers):
        frequencies = config.frequencies(layer)
        if frequencies.tobytes() not in several:
            angles = places[:, None, None] * frequencies
            several[frequencies.tobytes()] = rnp.cos(angles), rnp.sin(angles)
    return [several[config.frequencies(layer).tobytes()] for layer in range(config.num_hidden_layers)]


def rotated(x: Any, turn: Turn) -> Any:
    """The first half of each head's numbers turned against the second, [..., T, heads, D]."""
    cos, sin = turn
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return rnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def queries_keys_values(part: Params, x: Any, config: Config) -> list[Any]:
    """Those of normalised inputs [..., T, width], each [..., T, heads, head_dim]."""
    if "qkv_proj" in part:
        counts = (config.num_attention_heads, config.num_key_value_heads)
        ends = [config.head_dim * counts[0], config.head_dim * (counts[0] + counts[1])]
        results = rnp.split(linear(x, part["qkv_proj"]), ends, axis=-1)
    else:
        results = [linear(x, part[f"{name}_proj"]) for name in "qkv"]
    heads = [y.reshape(*y.shape[:-1], -1, config.head_dim) for y in results]
    norms = [norm(y, part[name], config) for y, name in zip(heads, ("q_norm", "k_norm")) if name in part]
    return [*norms, *heads[len(norms) :]]


def gated(mlp: Params, x: Any, config: Config) -> Any:
    """The MLP of normalised inputs: one half of the first product, gated by the other."""
    if "gate_up_proj" in mlp:
        gate, up = rnp.split(linear(x, mlp["gate_up_proj"]), 2, axis=-1)
    else:
        gate, up = linear(x, mlp["gate_proj"]), linear(x, mlp["up_proj"])
    gate = nn.silu(gate) if "silu" in config.family.activations else nn.gelu(gate, approximate=True)
    return linear(gate * up, mlp["down_proj"])


def block(layer: Params, x: Any, turn: Turn, config: Config, attend: Callable[[Any, Any, Any], Any]) -> Any:
    """One layer. attend: queries, keys and values of the new places -> what the queries gather."""
    part, results = layer["self_attn"], config.family.norms_results
    q, k, v = queries_keys_values(part, norm(x, layer["input_layernorm"], config), config)
    y = attend(rotated(q, turn), rotated(k, turn), v)
    y = linear(y.reshape(*y.shape[:-2], -1), part["o_proj"])
    x = x + (norm(y, layer["post_attention_layernorm"], config) if results else y)
    before = layer["pre_feedforward_layernorm" if results else "post_attention_layernorm"]
    y = gated(layer["mlp"], norm(x, before, config), config)
    return x + (norm(y, layer["post_feedforward_layernorm"], config) if results else y)


def attention(queries: Any, keys: Any, values: Any, visible: Any, config: Config) -> Any:
    """What queries gather from the values of the keys that they see.

    Shapes: queries [*B, T, N, D], keys and values [*B, S, K, D], visible bool[T, S] -> as queries.
    """
    cap = config.attn_logit_softcapping
    if cap is None:
        return nn.dot_product_attention(queries, keys, values, mask=visible, scale=config.score_scale)
    grouped = queries.reshape(*queries.shape[:-2], keys.shape[-2], -1, queries.shape[-1])
    scores = rnp.einsum("...tkgd,...skd->...kgts", grouped, keys) * config.score_scale
    shares = nn.softmax(rnp.where(visible, cap * rnp.tanh(scores / cap), UNSEEN))
    return rnp.einsum("...kgts,...skd->...tkgd", shares, values).reshape(*queries.shape)


def visible(queries: Any, keys: Any, window: int | None) -> Any:
    """Whether the places of queries i32[T] see those of keys i32[S]: bool[T, S]."""
    ahead = queries[:, None] - keys[None, :]
    return ahead >= 0 if window is None else (ahead >= 0) & (ahead < window)


def decoded(params: Params, tokens: Any, places: Any, config: Config, attend: Attend) -> Any:
    """All layers. Shapes: tokens i32[*B, T], places i32[T] -> [*B, T, hidden_size]."""
    x = params["model"]["embed_tokens"]["weight"][tokens]
    if config.family.scales_embeddings:
        x = x * config.hidden_size**0.5
    for number, (layer, turn) in enumerate(zip(params["model"]["layers"], turns(places, config))):
        x = block(layer, x, turn, config, functools.partial(attend, number))
    return x


def read_out(params: Params, x: Any, config: Config) -> Any:
    """The logits of what follows each place."""
    head = params["model"]["embed_tokens"] if config.tie_word_embeddings else params["lm_head"]
    logits = linear(norm(x, params["model"]["norm"], config), head)
    cap = config.final_logit_softcapping
    return logits if cap is None else cap * rnp.tanh(logits / cap)


# --- running it ---------------------------------------------------------------------------------


def logits(params: Params, tokens: Any, config: Config) -> Any:
    """Logits of the token after each place. Shapes: tokens i32[B, T] -> [B, T, vocab_size]."""
    places = rnp.arange(tokens.shape[1])

    def attend(layer: int, queries: Any, keys: Any, values: Any) -> Any:
        return attention(queries, keys, values, visible(places, places, config.window(layer)), config)

    return read_out(params, decoded(params, tokens, places, config, attend), config)


def empty_cache(config: Config) -> Cache:
    """A cache with no token in it: in each layer for as many as it sees, all places or a window."""
    places = config.max_position_embeddings + BLOCK
    lengths = [min(config.window(layer) or places, places) for layer in range(config.num_hidden_layers)]
    shapes = [(length, config.num_key_value_heads, config.head_dim) for length in lengths]
    return [{"keys": rnp.zeros(shape), "values": rnp.zeros(shape)} for shape in shapes]


def places_in(last: Any, length: int) -> Any:
    """The places whose keys a window's cache has at place `last`, i32[length]; below 0 for none.

    Place p is in row p % length, until p + length takes it.
    """
    return last - (last - rnp.arange(length)) % length


def prefill(params: Params, cache: Cache, prompt: Any, config: Config) -> tuple[Cache, Any]:
    """A cache with a prompt i32[p] in it, and the logits of what follows."""
    places, filled = rnp.arange(prompt.shape[0]), list(cache)

    def attend(layer: int, queries: Any, keys: Any, values: Any) -> Any:
        window = config.window(layer)
        filled[layer] = {
            name: with_prompt(cache[layer][name], new, window) for name, new in (("keys", keys), ("values", values))
        }
        return attention(queries, keys, values, visible(places, places, window), config)

    x = decoded(params, prompt, places, config, attend)
    return filled, read_out(params, x[-1:], config)[0]


def with_prompt(cache: Any, new: Any, window: int | None) -> Any:
    """A layer's cache with the keys or values of a prompt, or as many of them as a window sees.

    Shapes: cache [L, K, D], new [p, K, D] -> [L, K, D].
    """
    if window is None:
        return rune.lax.dynamic_update_slice_in_dim(cache, new, 0, axis=0)
    places = places_in(rnp.asarray(new.shape[0] - 1), cache.shape[0])
    return rnp.where((places >= 0)[:, None, None], new[rnp.maximum(places, 0)], cache)


def extended(params: Params, cache: Cache, token: Any, place: Any, total: Any, config: Config) -> tuple[Cache, Any]:
    """The cache with a token i32[] at a place, and the logits after it.

    total: how many places are read of layers that see all, place + 1 at least
    """
    longer = list(cache)

    def attend(layer: int, queries: Any, keys: Any, values: Any) -> Any:
        window, length = config.window(layer), cache[layer]["keys"].shape[0]
        row = place if window is None else place % length
        longer[layer] = {
            name: rune.lax.dynamic_update_slice_in_dim(cache[layer][name], new, row, axis=0)
            for name, new in (("keys", keys), ("values", values))
        }
        places = rnp.arange(total) if window is None else places_in(place, length)
        keys, values = (longer[layer][name][: places.shape[0]] for name in ("keys", "values"))
        return attention(queries, keys, values, visible(place[None], places, window) & (places >= 0), config)

    x = decoded(params, token[None], place[None], config, attend)
    return longer, read_out(params, x[-1:], config)[0]


def sample(key: Any, logits: Any, temperature: Any) -> Any:
    """A token drawn from those that have a share LEAST of the likeliest's probability, i32[]."""
    scaled = logits / rnp.maximum(temperature, 1e-6)
    likely = rnp.where(scaled < rnp.max(scaled) + math.log(LEAST), -rnp.inf, scaled)
    drawn = rune.random.categorical(key, likely)
    return rnp.where(temperature > 0, drawn, rnp.argmax(logits)).astype("int32")


def continued(
    params: Params, cache: Cache, prefix: Any, key: Any, temperature: Any, config: Config
) -> tuple[Cache, Any]:
    """BLOCK tokens after a prefix i32[t]; the cache holds all of the prefix but its last token.

    Token number n is drawn by key folded with n, at temperature 0 it is the likeliest.
    """
    t = prefix.shape[0]

    def one(carry: tuple[Cache, Any], number: Any) -> tuple[tuple[Cache, Any], Any]:
        cache, token = carry
        # t + BLOCK is the same for all tokens of the block, so that they share one program.
        cache, logits = extended(params, cache, token, number - 1, t + BLOCK, config)
        token = sample(rune.random.fold_in(key, number), logits, temperature)
        return (cache, token), token

    (cache, _), tokens = rune.lax.scan(one, (cache, prefix[-1]), rnp.arange(BLOCK) + t)
    return cache, tokens


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model that is ready to be run, one compiled program for prompts and one for blocks.

    prefill, continued: those above, of a cache, which is donated
    """

    config: Config
    prefill: Callable[[Cache, Any], tuple[Cache, Any]]
    continued: Callable[[Cache, Any, Any, Any], tuple[Cache, Any]]


def decoder(params: Params, config: Config) -> Decoder:
    """The model with these parameters. A cache is changed in place."""

    def compiled(function: Callable[..., Any], *others: None) -> Callable[..., Any]:
        # Parameters that are not arguments need not be looked through in every call.
        return rune.jit(
            lambda cache, tokens, *operands: function(params, cache, tokens, *operands, config),
            donate_argnums=0,
            dims={"t": (1, config.max_position_embeddings)},
            in_dims=(None, "t", *others),
        )

    return Decoder(config, compiled(prefill), compiled(continued, None, None))
