"""Models of each family: their files, and their logits by formulas and by transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import numpy as package

import rune
from tests.llm import make_transformers_logits as other
from tests.llm import reference
from tests.llm.reference import Sizes
from tests.support.close import near

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "llm"))

import llm_checkpoint as checkpoint
import llm_config
import llm_model as model
from llm_config import Config, RopeScaling

HERE = Path(__file__).parent
LOGITS = np.load(HERE / "transformers_logits_5_24.npz")
STORED = json.loads((HERE / "transformers_configs_5_24.json").read_text())
TOKENS = other.TOKENS.astype(np.int32)


def arrays_of(name: str) -> dict[str, np.ndarray]:
    return other.drawn(STORED[name]["shapes"], 1.0 if "gemma" in name else 0.0)


def written(folder: Path, name: str, **changes: Any) -> Path:
    """The checkpoint of a stored model, as transformers writes it."""
    package.save_file(arrays_of(name), folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**STORED[name]["config"], **changes}))
    return folder


@pytest.mark.parametrize("name", other.CASES)
def test_logits_are_those_of_transformers(name: str, tmp_path: Path):
    config, params = checkpoint.load(written(tmp_path, name))

    actual = model.logits(params, TOKENS[None], config)[0]

    near(LOGITS[name], actual, relative=1e-4, why="a few layers in f32")


@pytest.mark.parametrize("name", ["gemma2", "gemma3"])
def test_a_cache_gives_what_the_whole_text_gives(name: str, tmp_path: Path):
    config, params = checkpoint.load(written(tmp_path, name))
    ready = model.decoder(params, config)

    cache, logits = ready.prefill(model.empty_cache(config), TOKENS)
    _, block = ready.continued(cache, TOKENS, rune.random.key(0), np.float32(0))

    near(LOGITS[name][-1], logits, relative=1e-4, why="a few layers in f32")
    text = np.concatenate([TOKENS, np.asarray(block)])
    logits_of_all = np.asarray(model.logits(params, text[None], config))[0]
    assert logits_of_all[len(TOKENS) - 1 : -1].argmax(-1).tolist() == np.asarray(block).tolist()


@pytest.mark.parametrize("prompt", [1, 3, 9])
def test_caches_of_a_windows_length_serve_prompts_below_and_beyond_it(prompt: int, tmp_path: Path):
    config, params = checkpoint.load(written(tmp_path, "gemma2"))
    windows = [config.window(layer) for layer in range(config.num_hidden_layers)]
    cache = model.empty_cache(config)

    places = config.max_position_embeddings + model.BLOCK
    assert [layer["keys"].shape[0] for layer in cache] == [window or places for window in windows]
    assert None in windows
    assert min(filter(None, windows)) < 9 < len(TOKENS)
    expected = np.asarray(model.logits(params, TOKENS[None], config)[0])
    cache, logits = model.prefill(params, cache, TOKENS[:prompt], config)
    step = rune.jit(lambda cache, token, t: model.extended(params, cache, token, t, places, config))
    for t in range(prompt, len(TOKENS)):
        near(expected[t - 1], logits, relative=1e-4, why="a few layers in f32")
        cache, logits = step(cache, TOKENS[t], t)
    near(expected[-1], logits, relative=1e-4, why="a few layers in f32")


# --- formulas -----------------------------------------------------------------------------------

SHAPE: dict[str, Any] = {"vocab_size": 31, "hidden_size": 17, "intermediate_size": 23, "max_position_embeddings": 64}
FORMULAS: dict[str, dict[str, Any]] = {
    "llama": {"rope_scaling": RopeScaling("llama3", 4.0, 1.0, 4.0, 16)},
    "mistral": {"sliding_window": 4},
    "phi3": {"sliding_window": 3, "tie_word_embeddings": False},
    "gemma": {"rope_scaling": RopeScaling("linear", 3.0)},
    "gemma2": {"sliding_window": 3, "attn_logit_softcapping": 0.5, "final_logit_softcapping": 1.5},
    "gemma3_text": {"sliding_window": 2, "rope_local_base_freq": 100.0, "query_pre_attn_scalar": 3.0},
}


def frequencies_of(config: Config, layer: int) -> np.ndarray:
    """By the formula, one pair after another."""
    result, half, scaling = [], config.head_dim // 2, config.rope_scaling
    local = config.window(layer) is not None and config.rope_local_base_freq
    for pair in range(half):
        frequency = (local or config.rope_theta) ** (-pair / half)
        length = 2 * np.pi / frequency
        if scaling is None or local:
            result.append(frequency)
        elif scaling.rope_type == "linear" or length > scaling.original_max_position_embeddings:
            result.append(frequency / scaling.factor)
        elif length < scaling.original_max_position_embeddings / scaling.high_freq_factor:
            result.append(frequency)
        else:
            share = (scaling.original_max_position_embeddings / length - 1) / (scaling.high_freq_factor - 1)
            result.append((1 - share) * frequency / scaling.factor + share * frequency)
    return np.array(result)


def sizes_of(config: Config) -> Sizes:
    """The same model for the formulas."""
    gemma, layers = config.model_type.startswith("gemma"), range(config.num_hidden_layers)
    return Sizes(
        config.num_hidden_layers,
        config.num_attention_heads,
        config.num_key_value_heads,
        config.rms_norm_eps,
        config.rope_theta,
        origin=float(gemma),
        embedding=config.hidden_size**0.5 if gemma else 1.0,
        curved=gemma,
        scale=(config.query_pre_attn_scalar or config.head_dim) ** -0.5,
        cap=config.attn_logit_softcapping,
        final_cap=config.final_logit_softcapping,
        windows=[config.window(n) for n in layers],
        frequencies=[frequencies_of(config, n) for n in layers],
    )


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize(("heads", "groups", "head"), [(5, 1, 6), (6, 3, 10)])
def test_logits_are_those_of_the_formulas(kind: str, heads: int, groups: int, head: int):
    views = (llm_config.SLIDING, llm_config.FULL, llm_config.SLIDING)
    counts = {"num_hidden_layers": 3, "num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": head}
    config = Config(**SHAPE, **counts, model_type=kind, layer_types=views, **FORMULAS[kind])
    shapes = model.shapes(config)
    shapes_by_name = {n: [*leaf.shape] for n, leaf in zip(checkpoint.names(shapes), rune.tree.leaves(shapes))}
    arrays = other.drawn(shapes_by_name, config.family.norm_origin)
    params = rune.tree.unflatten(rune.tree.structure(shapes), [arrays[n] for n in checkpoint.names(shapes)])

    actual = model.logits(params, TOKENS[None] % 31, config)[0]

    near(reference.logits(arrays, TOKENS % 31, sizes_of(config)), actual, relative=1e-4, why="three layers in f32")


# --- config.json --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", other.CASES)
def test_numbers_that_are_written_are_read_again(name: str, tmp_path: Path):
    config = llm_config.read(written(tmp_path, name))

    llm_config.write(tmp_path, config)

    assert llm_config.read(tmp_path) == config


OLDER = {
    "llama, scaled by parts": {
        "rope_theta": 500000.0,
        "rope_scaling": {k: v for k, v in other.LLAMA3.items() if k != "rope_theta"},
    },
    "llama, scaled": {"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}},
    "phi3": {"rope_theta": 10000.0, "rope_scaling": None},
    "gemma": {"rope_theta": 10000.0, "hidden_act": "gelu", "hidden_activation": None},
    "gemma2": {"rope_theta": 10000.0, "layer_types": None},
    "gemma3": {
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "sliding_window_pattern": 6,
        "layer_types": None,
    },
}


@pytest.mark.parametrize("name", OLDER)
def test_older_files_describe_the_same_in_other_words(name: str, tmp_path: Path):
    config = llm_config.read(written(tmp_path, name))

    assert llm_config.read(written(tmp_path, name, rope_parameters=None, **OLDER[name])) == config


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("llama", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "rope_type is 'yarn'"),
        ("phi3", {"rope_parameters": None, "rope_scaling": {"type": "longrope"}}, "rope_type is 'longrope'"),
        ("phi3", {"partial_rotary_factor": 0.75, "rope_parameters": None}, "partial_rotary_factor is 0.75"),
        ("gemma", {"hidden_activation": "relu"}, "hidden_act is 'relu'"),
        ("llama", {"sliding_window": 5}, "sliding_window is 5"),
        ("llama", {"attention_bias": True}, "attention_bias is True"),
        ("gemma3", {"model_type": "gemma3"}, "model_type is 'gemma3'"),
    ],
)
def test_features_that_the_decoder_lacks_are_refused_by_name(
    name: str, changes: dict[str, Any], words: str, tmp_path: Path
):
    with pytest.raises(llm_config.UnknownModel, match=words):
        llm_config.read(written(tmp_path, name, **changes))
