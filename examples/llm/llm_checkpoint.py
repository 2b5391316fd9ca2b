"""Checkpoints in the layout of real ones.

    config.json                        sizes, llm_config.py reads it
    tokenizer.json                     llm_tokenizer.py reads it
    tokenizer.model                    or else llm_sentencepiece.py
    model.safetensors                  all parameters; or several files, and
    model.safetensors.index.json       {"weight_map": {name: file}}

Leaves of the parameters are named as the arrays of the files, so nothing is renamed. Arrays are
mapped, and brought to float32 one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import llm_config
import llm_model as model
from llm_config import Config, UnknownModel
from llm_model import Params
from llm_sentencepiece import SentencePiece
from llm_tokenizer import Tokenizer

import rune

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
NOT_PARAMETERS = "rotary_emb.inv_freq"  # which older files have, and rotary angles are made of theta


def load(folder: Path, device: Any = None) -> tuple[Config, Params]:
    """The sizes and the parameters of a checkpoint, in float32 on a device or cut by a sharding.

    Errors: UnknownModel; KeyError for a parameter that no file has; ValueError for another shape.
    """
    config = llm_config.read(folder)
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


def tokenizer(folder: Path) -> Tokenizer | SentencePiece:
    """What makes numbers of texts. Errors: UnknownTokenizer."""
    path = folder / "tokenizer.json"
    return Tokenizer.load(path) if path.exists() else SentencePiece.load(folder / "tokenizer.model")


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
    llm_config.write(folder, config)
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
