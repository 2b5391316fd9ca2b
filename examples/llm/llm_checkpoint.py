"""Checkpoints in the layout of real ones.

    config.json                        sizes
    tokenizer.json                     llm_tokenizer.py reads it
    model.safetensors                  all parameters; or several files, and
    model.safetensors.index.json       {"weight_map": {name: file}}

Leaves of the parameters are named as the arrays of the files, so nothing is renamed. Arrays are
mapped, and brought to float32 one after the other.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import llm_model as model
from llm_model import Config, Params

import rune

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
# What this decoder is: other values of these mean another model.
MEANING = {
    "model_type": "llama",
    "hidden_act": "silu",
    "rope_scaling": None,
    "attention_bias": False,
    "mlp_bias": False,
    "sliding_window": None,
}
NOT_PARAMETERS = "rotary_emb.inv_freq"  # which older files have, and rotary angles are made of theta


class UnknownModel(ValueError):
    """A checkpoint of a model that this decoder is not."""


def read_config(folder: Path) -> Config:
    """The sizes of a checkpoint. Errors: UnknownModel for one of another kind."""
    said = json.loads((folder / "config.json").read_text())
    for name, value in MEANING.items():
        if said.get(name, value) != value:
            raise UnknownModel(f"{folder}: {name} is {said[name]!r}, and this decoder is for {value!r}")
    heads = said["num_attention_heads"]
    said = {"num_key_value_heads": heads, "head_dim": said["hidden_size"] // heads, **said}
    defaults = {"rms_norm_eps": 1e-6, "tie_word_embeddings": False}  # of config.json, where it says nothing
    names = [f.name for f in dataclasses.fields(Config)]
    return Config(**{name: value for name, value in {**defaults, **said}.items() if name in names})


def load(folder: Path, device: Any = None) -> tuple[Config, Params]:
    """The sizes and the parameters of a checkpoint, in float32 on a device or cut by a sharding.

    Errors: UnknownModel; KeyError for a parameter that no file has; ValueError for another shape.
    """
    config = read_config(folder)
    places = _weight_map(folder)
    files = {name: rune.files.open(folder / name) for name in sorted({*places.values()})}

    def read(path: Any, shape: Any) -> Any:
        name = rune.tree.keystr(path, simple=True, separator=".")
        array = files[places[name]].read(name, device)
        if array.shape != shape.shape:
            raise ValueError(f"{folder}: {name} is {array.type}, and config.json says {shape.shape}")
        return array.astype("float32")

    params = rune.tree.map_with_path(read, model.shapes(config))
    unknown = sorted({*places} - {*names(params)})
    if any(not name.endswith(NOT_PARAMETERS) for name in unknown):
        raise UnknownModel(f"{folder}: it has parameters that this decoder lacks: {', '.join(unknown[:3])}")
    return config, params


def _weight_map(folder: Path) -> Mapping[str, str]:
    """The file of each parameter."""
    if (folder / INDEX).exists():
        return json.loads((folder / INDEX).read_text())["weight_map"]
    return dict.fromkeys(rune.files.open(folder / SINGLE), SINGLE)


def names(params: Params) -> list[str]:
    """The names of all parameters."""
    return [rune.tree.keystr(path, simple=True, separator=".") for path, _ in rune.tree.leaves_with_path(params)]


def save(folder: Path, config: Config, params: Params, files: int = 1) -> None:
    """Write a checkpoint, with the parameters in that many files."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {**MEANING, **dataclasses.asdict(config), "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(said, indent=2))
    arrays = dict(zip(names(params), rune.tree.leaves(params)))
    if files == 1:
        rune.tree.save(folder / SINGLE, arrays, metadata={"format": "pt"})
        return
    places = {name: f"model-{n % files + 1:05}-of-{files:05}.safetensors" for n, name in enumerate(arrays)}
    for file in sorted({*places.values()}):
        part = {name: array for name, array in arrays.items() if places[name] == file}
        rune.tree.save(folder / file, part, metadata={"format": "pt"})
    sizes = {"total_size": sum(array.nbytes for array in arrays.values())}
    (folder / INDEX).write_text(json.dumps({"metadata": sizes, "weight_map": places}, indent=2))
