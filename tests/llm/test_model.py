"""The language model of examples/llm: its logits, its cache, its bits, its files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import numpy as package

import rune
import rune.numpy as rnp
from tests.llm import make_torch_logits as torch_side
from tests.llm import reference
from tests.llm.reference import Sizes
from tests.support.close import near, same

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "llm"))

import llm_checkpoint as checkpoint
import llm_model as model
from llm_config import Config

TORCH = np.load(Path(__file__).parent / "torch_logits_2_13.npz")


def config_of(sizes: Sizes, *, tied: bool, vocabulary: int, width: int, hidden: int, head: int) -> Config:
    counts = (sizes.layers, sizes.heads, sizes.groups)
    return Config(vocabulary, width, hidden, *counts, head, 64, sizes.epsilon, sizes.theta, tied)


def params_of(arrays: dict[str, np.ndarray], config: Config) -> Any:
    """The tree of these arrays."""
    treedef = rune.tree.structure(model.shapes(config))
    return rune.tree.unflatten(treedef, [rnp.asarray(arrays[n]) for n in checkpoint.names(model.shapes(config))])


ARRAYS = torch_side.drawn(tied=True)
CONFIG = config_of(torch_side.SIZES, tied=True, **torch_side.SHAPE)
PARAMS = params_of(ARRAYS, CONFIG)
READY = model.decoder(PARAMS, CONFIG)
KEY = rune.random.key(3)
TOKENS = torch_side.TOKENS[0].astype(np.int32)


# --- logits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_torch(tied: bool):
    config = config_of(torch_side.SIZES, tied=tied, **torch_side.SHAPE)
    params = params_of(torch_side.drawn(tied), config)

    actual = rune.jit(lambda p, t: model.logits(p, t, config))(params, torch_side.TOKENS.astype(np.int32))

    near(TORCH["tied" if tied else "apart"], actual, relative=1e-4, why="three layers in f32")


@pytest.mark.parametrize(("heads", "groups", "head"), [(1, 1, 2), (4, 4, 8), (6, 3, 4), (5, 1, 6)])
def test_logits_are_those_of_the_formulas(heads: int, groups: int, head: int):
    sizes, shape = Sizes(2, heads, groups, 1e-5, 1e4), {"vocabulary": 31, "width": 17, "hidden": 23, "head": head}
    arrays = reference.arrays(**shape, sizes=sizes, tied=True)
    config = config_of(sizes, tied=True, **shape)

    actual = model.logits(params_of(arrays, config), TOKENS[None] % 31, config)

    near(reference.logits(arrays, TOKENS % 31, sizes)[None], actual, relative=1e-4, why="two layers in f32")


def test_a_position_does_not_depend_on_later_ones():
    others = TOKENS.copy()
    others[11:] = 3

    first, second = (model.logits(PARAMS, t[None], CONFIG)[0] for t in (TOKENS, others))

    near(np.asarray(first[:11]), second[:11], relative=1e-5, why="the same sums")


# --- the cache ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [1, 5, 18])
def test_a_cache_gives_the_logits_of_the_whole_text(prompt: int):
    expected = np.asarray(model.logits(PARAMS, TOKENS[None], CONFIG)[0])

    cache, logits = READY.prefill(model.empty_cache(CONFIG), TOKENS[:prompt])
    near(expected[prompt - 1], logits, relative=1e-4, why="three layers in f32")
    step = rune.jit(lambda cache, token, t: model.extended(PARAMS, cache, token, t, 64, CONFIG))
    for t in range(prompt, len(TOKENS)):
        cache, logits = step(cache, TOKENS[t], t)
        near(expected[t], logits, relative=1e-4, why="three layers in f32")


def test_one_program_covers_all_prompts_and_one_covers_all_blocks():
    ready, cache = model.decoder(PARAMS, CONFIG), model.empty_cache(CONFIG)

    with rune.counting() as counts:
        for p in (1, 2, 19, 64):
            ready.prefill(model.empty_cache(CONFIG), np.zeros(p, np.int32))
        for t in range(1, 65, 9):
            cache, _ = ready.continued(cache, np.zeros(t, np.int32), KEY, np.float32(0.7))
    assert counts.compiles == 2


def test_a_text_longer_than_the_places_is_refused():
    with pytest.raises(rune.errors.DimensionError, match=r"t = 65"):
        READY.prefill(model.empty_cache(CONFIG), np.zeros(65, np.int32))


# --- few bits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "group"), [(8, None), (4, 4)])
def test_a_quantised_model_equals_the_model_of_its_dequantised_weights(bits: int, group: int | None):
    shape = {**torch_side.SHAPE, "hidden": 100, "head": 8}  # sides that groups divide
    config = config_of(torch_side.SIZES, tied=True, **shape)
    params = params_of(reference.arrays(**shape, sizes=torch_side.SIZES, tied=True), config)
    few = model.quantized(params, bits, group)
    plain = rune.tree.map(
        lambda x: rune.dequantize(x) if isinstance(x, rune.Quantized) else x,
        few,
        is_leaf=lambda x: isinstance(x, rune.Quantized),
    )

    expected = model.logits(plain, TOKENS[None], config)

    near(np.asarray(expected), model.logits(few, TOKENS[None], config), relative=1e-4, why="scales after sums")
    ready = model.decoder(few, config)
    _, logits = ready.prefill(model.empty_cache(config), TOKENS)
    near(np.asarray(expected[0, -1]), logits, relative=1e-4, why="scales after sums")


def test_eight_bits_change_logits_by_less_than_a_twentieth_of_their_spread():
    exact, few = (np.asarray(model.logits(p, TOKENS[None], CONFIG)) for p in (PARAMS, model.quantized(PARAMS, 8)))

    assert np.sqrt(np.mean((few - exact) ** 2)) < 0.05 * exact.std()


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [1, 3])
def test_a_checkpoint_is_restored(tmp_path: Path, files: int):
    checkpoint.save(tmp_path, CONFIG, PARAMS, files)

    config, params = checkpoint.load(tmp_path)

    assert config == CONFIG
    assert len([*tmp_path.glob("*.safetensors")]) == files
    for name, array in zip(checkpoint.names(params), rune.tree.leaves(params), strict=True):
        same(ARRAYS[name], array)


def written_by_the_package(folder: Path, **changes: Any) -> Path:
    """A checkpoint as libraries for torch write them: two files and an index, in bfloat16."""
    names = [*ARRAYS]
    for number, part in enumerate((names[::2], names[1::2]), 1):
        halves = {name: ARRAYS[name].astype(ml_dtypes.bfloat16) for name in part}
        package.save_file(halves, folder / f"model-0000{number}-of-00002.safetensors", {"format": "pt"})
    places = {name: f"model-0000{n % 2 + 1}-of-00002.safetensors" for n, name in enumerate(names)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    settings = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "vocab_size": 67,
        "hidden_size": 48,
        "intermediate_size": 101,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 10,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "rope_theta": 5e5,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def test_a_checkpoint_that_others_wrote_in_bfloat16_is_read(tmp_path: Path):
    config, params = checkpoint.load(written_by_the_package(tmp_path))

    assert config == CONFIG
    halves = {n: x.astype(ml_dtypes.bfloat16).astype(np.float32) for n, x in ARRAYS.items()}
    expected = reference.logits(halves, TOKENS, torch_side.SIZES)
    near(expected[None], model.logits(params, TOKENS[None], config), relative=1e-4, why="three layers in f32")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "qwen2"}, "model_type is 'qwen2'"),
        ({"rope_scaling": {"rope_type": "dynamic"}}, "rope_type is 'dynamic'"),
        ({"hidden_size": 50}, r"f32\[67,48\]|bf16\[67,48\]"),
        ({"num_hidden_layers": 2}, "parameters that this decoder lacks: model.layers.2"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path, changes: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words):
        checkpoint.load(written_by_the_package(tmp_path, **changes))
