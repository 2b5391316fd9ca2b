"""What a model is: the family it belongs to, its sizes, and config.json.

Families differ in few points, which FAMILIES lists; a model differs from others of its family in
numbers, which Config has by the names of config.json. What neither says is refused by name.

Source: the model cards and technical reports of Llama 3 (arXiv:2407.21783), Gemma
(arXiv:2403.08295), Gemma 2 (arXiv:2408.00118), Gemma 3 (arXiv:2503.19786), Phi-3
(arXiv:2404.14219) and Mistral 7B (arXiv:2310.06825).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, slots=True)
class Family:
    """What sets the models of one model_type apart.

    activations: names of the MLP's activation in config.json, all for one function
    full_every:  every so manieth layer sees all places, the others a window; 0: all see a window
    """

    activations: tuple[str, ...] = ("silu",)
    norm_origin: float = 0.0  # a norm multiplies by this plus its weight
    scales_embeddings: bool = False  # by √hidden_size
    joins_matrices: bool = False  # q, k and v in one matrix, gate and up in another
    norms_results: bool = False  # also norms of the results of attention and MLP, before they are added
    norms_heads: bool = False  # also norms of each query and each key
    full_every: int = 1
    ties_embeddings: bool = False  # where config.json says nothing


# Gemma's first files said "gelu" of models that were trained with its tanh form.
_GELU = ("gelu_pytorch_tanh", "gelu")
_GEMMA = Family(_GELU, norm_origin=1.0, scales_embeddings=True, ties_embeddings=True)
FAMILIES = {
    "llama": Family(),
    "mistral": Family(full_every=0),
    "phi3": Family(joins_matrices=True, full_every=0),
    "gemma": _GEMMA,
    "gemma2": dataclasses.replace(_GEMMA, norms_results=True, full_every=2),
    "gemma3_text": dataclasses.replace(_GEMMA, norms_results=True, norms_heads=True, full_every=6),
}


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How angles of places are changed for texts longer than those of the first training.

    rope_type: linear divides all frequencies by `factor`; llama3 those of waves that are longer
               than original_max_position_embeddings / low_freq_factor, in part those between that
               and the same / high_freq_factor, and no others
    """

    rope_type: str
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192


@dataclass(frozen=True, slots=True)
class Config:
    """The numbers of a model, by the names that config.json has for them."""

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
    model_type: str = "llama"
    rope_scaling: RopeScaling | None = None
    rope_local_base_freq: float | None = None  # instead of rope_theta, in layers with a window
    sliding_window: int | None = None  # how many places a place sees, itself among them
    layer_types: tuple[str, ...] = ()  # FULL or SLIDING; all FULL if empty
    query_pre_attn_scalar: float | None = None  # scores are divided by its root; head_dim if None
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None

    @property
    def family(self) -> Family:
        """What it shares with its kind."""
        return FAMILIES[self.model_type]

    @property
    def score_scale(self) -> float:
        """What products of queries and keys are multiplied by."""
        return (self.query_pre_attn_scalar or self.head_dim) ** -0.5

    def window(self, layer: int) -> int | None:
        """How many places a layer sees; None for all."""
        return self.sliding_window if self.layer_types and self.layer_types[layer] == SLIDING else None

    def frequencies(self, layer: int) -> np.ndarray:
        """By how much each pair of numbers of a head turns from a place to the next, in radians.

        Shapes: f32[head_dim / 2].
        """
        local = self.rope_local_base_freq if self.window(layer) is not None else None
        half = self.head_dim // 2
        plain = (local or self.rope_theta) ** (-np.arange(half) / half)
        return (plain if local else scaled(plain, self.rope_scaling)).astype(np.float32)


def scaled(frequencies: np.ndarray, scaling: RopeScaling | None) -> np.ndarray:
    """The frequencies for longer texts."""
    if scaling is None:
        return frequencies
    slow = frequencies / scaling.factor
    if scaling.rope_type == "linear":
        return slow
    waves = scaling.original_max_position_embeddings * frequencies / (2 * math.pi)  # in the first length
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    share = np.clip((waves - low) / (high - low), 0, 1)
    return share * frequencies + (1 - share) * slow


# --- config.json --------------------------------------------------------------------------------

# What this decoder does not do: with other values of these a model is another one.
ABSENT = {
    "attention_bias": (None, False),
    "mlp_bias": (None, False),
    "partial_rotary_factor": (None, 1, 1.0),
    "use_bidirectional_attention": (None, False),
    "quantization_config": (None,),
}
ROPE_TYPES = ("linear", "llama3")


class UnknownModel(ValueError):
    """A checkpoint of a model that this decoder is not."""


def read(folder: Path) -> Config:
    """The numbers of a checkpoint. Errors: UnknownModel for one of another kind."""
    said = json.loads((folder / "config.json").read_text())
    _require(folder, "model_type", said.get("model_type", "llama"), tuple(FAMILIES))
    family = FAMILIES[said.get("model_type", "llama")]
    said = _with_rope(folder, said, family)
    for name, values in ABSENT.items():
        _require(folder, name, said.get(name), values)
    activation = said.get("hidden_activation") or said.get("hidden_act") or family.activations[0]
    _require(folder, "hidden_act", activation, family.activations)
    if family.full_every == 1:
        _require(folder, "sliding_window", said.get("sliding_window"), (None,))
    heads = said["num_attention_heads"]
    said = {
        "num_key_value_heads": heads,
        "head_dim": said["hidden_size"] // heads,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": family.ties_embeddings,
        **{name: value for name, value in said.items() if value is not None},
    }
    names = [field.name for field in dataclasses.fields(Config)]
    return Config(**{**{n: v for n, v in said.items() if n in names}, "layer_types": _layer_types(said, family)})


def _require(folder: Path, name: str, value: Any, values: tuple[Any, ...]) -> None:
    """Errors: UnknownModel for any other value."""
    if value not in values:
        raise UnknownModel(f"{folder}: {name} is {value!r}, and this decoder is for {' or '.join(map(repr, values))}")


def _layer_types(said: Mapping[str, Any], family: Family) -> tuple[str, ...]:
    """What each layer sees: as the file says, or as its family has it."""
    if said.get("sliding_window") is None:
        return ()
    if said.get("layer_types"):
        return tuple(said["layer_types"])
    every = said.get("sliding_window_pattern", family.full_every)
    numbers = range(1, said["num_hidden_layers"] + 1)
    return tuple(FULL if every and number % every == 0 else SLIDING for number in numbers)


def _with_rope(folder: Path, said: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """With rope_theta and rope_scaling, which newer files have together in rope_parameters."""
    together = said.get("rope_parameters") or {}
    local = together.get(SLIDING)
    if local is not None:
        _require(folder, "rope_type", local.get("rope_type"), ("default",))
        together = {**together[FULL]}
    scaling = {**(said.get("rope_scaling") or {}), **together}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    _require(folder, "rope_type", kind, ("default", *ROPE_TYPES))
    names = [field.name for field in dataclasses.fields(RopeScaling)]
    numbers = {n: v for n, v in {**scaling, "rope_type": kind}.items() if n in names}
    result = {**said, **{n: together[n] for n in ("rope_theta", "partial_rotary_factor") if n in together}}
    if local is not None:
        result["rope_local_base_freq"] = local["rope_theta"]
    elif family.norms_heads:
        # Gemma 3's first files leave out what all its models share.
        result = {"rope_local_base_freq": 10000.0, "rope_theta": 1000000.0, **result}
    return {**result, "rope_scaling": None if kind == "default" else RopeScaling(**numbers)}


def write(folder: Path, config: Config) -> None:
    """Write config.json, with the fields that other programs expect."""
    said = {k: v for k, v in dataclasses.asdict(config).items() if v not in (None, ())}
    activation = config.family.activations[0]
    said |= {"hidden_act": activation, "hidden_activation": activation, "attention_bias": False}
    (folder / "config.json").write_text(json.dumps({**said, "torch_dtype": "float32"}, indent=2))
