"""Training the language model: it learns, resumes where it was stopped, and continues texts."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tokenizers

import rune
import rune.numpy as rnp
from rune.sharding import make_mesh

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "llm"))

import generate
import llm_model as model
import llm_text
import llm_training as training
import train
from llm_config import Config
from llm_tokenizer import Tokenizer, UnknownTokenizer
from llm_tokenizer import train as train_tokenizer
from llm_training import Plan

TINY = Config(300, 24, 40, 2, 4, 2, 6, 48)
PLAN = Plan(steps=12, batch=4, context=24, peak_rate=1e-2, warmup=3, save_every=3)
ONE = make_mesh((1,), ("data",))


@pytest.fixture(scope="module")
def text() -> str:
    return llm_text.documentation()


@pytest.fixture(scope="module")
def tokenizer(text: str) -> Tokenizer:
    return train_tokenizer(text[:60_000], TINY.vocab_size)


@pytest.fixture(scope="module")
def tokens(tokenizer: Tokenizer, text: str) -> np.ndarray:
    return np.array(tokenizer.encode(text[:20_000]), np.int32)


@pytest.fixture(scope="module")
def straight(tokens: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> training.State:
    """The state after all steps, which is on no device in particular."""
    folder = tmp_path_factory.mktemp("straight")
    assert [number for number, _ in training.train(tokens, TINY, PLAN, ONE, folder)] == [*range(1, 13)]
    return rune.checkpoints.Manager(folder).resume(training.initial(TINY, PLAN)).tree


# --- training -----------------------------------------------------------------------------------


def test_the_loss_falls(straight: training.State):
    losses = np.asarray(straight["losses"])

    assert losses[-3:].mean() < losses[:2].mean() - 0.4


def test_a_run_that_was_stopped_ends_with_the_same_bits(straight: training.State, tokens: np.ndarray, tmp_path: Path):
    first_run = [*islice(training.train(tokens, TINY, PLAN, ONE, tmp_path), 8)]  # saved after 3 and 6
    restart = [*training.train(tokens, TINY, PLAN, ONE, tmp_path)]

    assert ([n for n, _ in first_run][-1], restart[0][0]) == (8, 7)
    ends = [rune.tree.leaves(state) for state in (straight, restart[-1][1])]
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(*ends, strict=True))


def test_the_rate_grows_along_a_line_and_falls_to_a_tenth():
    at = training.rate(replace(PLAN, steps=100, warmup=10))

    assert [round(float(at(n)) / PLAN.peak_rate, 3) for n in (0, 4, 9, 50, 100)] == [0.1, 0.5, 0.982, 0.55, 0.1]


def test_a_batch_is_a_function_of_the_step_alone(tokens: np.ndarray):
    assert (training.batch(tokens, PLAN, 5) == training.batch(tokens, PLAN, 5)).all()
    assert (training.batch(tokens, PLAN, 5) != training.batch(tokens, PLAN, 6)).any()


def test_the_script_trains_a_checkpoint_that_the_other_script_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, text: str
):
    monkeypatch.setattr(train, "SMALL", Config(290, 32, 64, 1, 4, 2, 8, 140))
    monkeypatch.setattr(llm_text, "documentation", lambda: text[:20_000])

    train.main(["--out", str(tmp_path), "--steps", "2"])
    generate.main([str(tmp_path), "The following", "--tokens", "8", "--bits", "4"])

    text = capsys.readouterr().out
    assert "step 2: " in text
    assert "held out: " in text
    assert "in 4 bits\nThe following" in text
    assert "8 tokens, " in text
    assert (tmp_path / "loss.png").exists()
    assert len([*tmp_path.glob("model-*.safetensors")]) == 2


# --- sampling -----------------------------------------------------------------------------------


def test_the_likeliest_tokens_are_those_of_the_whole_text(straight: training.State):
    params, prompt = straight["params"], [5, 17, 200]
    ready = model.decoder(params, TINY)

    tokens = [*generate.continuation(ready, prompt, 10, seed=0, temperature=0)]

    logits = np.asarray(model.logits(params, np.array([prompt + tokens], np.int32), TINY))[0]
    assert tokens == logits[len(prompt) - 1 : -1].argmax(-1).tolist()


def test_a_seed_determines_the_text(straight: training.State):
    ready = model.decoder(straight["params"], TINY)

    texts = [[*generate.continuation(ready, [5], 20, seed, 1.0)] for seed in (1, 1, 2)]

    assert texts[0] == texts[1] != texts[2]


def test_tokens_that_are_unlikely_are_not_drawn():
    logits = rnp.log(rnp.array([0.5, 0.3, 0.19, 0.01]))

    tokens = {int(model.sample(rune.random.key(seed), logits, 1.0)) for seed in range(40)}

    assert tokens == {0, 1, 2}
    assert int(model.sample(rune.random.key(0), logits, 0.0)) == 0


def test_a_continuation_ends_at_the_last_position(straight: training.State):
    ready = model.decoder(straight["params"], TINY)

    assert len([*generate.continuation(ready, [1, 2, 3], 1000, 0, 0)]) == TINY.max_position_embeddings - 3


# --- the tokenizer ------------------------------------------------------------------------------

TEXTS = ["", "The following example", "naïve café — 東京 🙂\n\n\tx_1 = 'it''s'  # 100%  ", "\0\x7f  \r\n", " a  b   c"]


@pytest.mark.parametrize("sample", TEXTS)
def test_any_text_comes_back(tokenizer: Tokenizer, sample: str):
    assert tokenizer.decode(tokenizer.encode(sample)) == sample


@pytest.mark.parametrize("sample", [*TEXTS, None])
def test_the_tokenizers_package_gives_the_same_numbers(
    tokenizer: Tokenizer, tmp_path: Path, sample: str | None, text: str
):
    tokenizer.save(tmp_path / "tokenizer.json")
    sample = text[100_000:130_000] if sample is None else sample

    package = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))

    assert package.encode(sample).ids == tokenizer.encode(sample)


def test_a_tokenizer_that_the_package_trained_is_read(tmp_path: Path, text: str):
    package = tokenizers.ByteLevelBPETokenizer()
    package.train_from_iterator([text[:30_000]], vocab_size=290, show_progress=False)
    package.save(str(tmp_path / "tokenizer.json"))

    assert Tokenizer.load(tmp_path / "tokenizer.json").encode(text[:2000]) == package.encode(text[:2000]).ids


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path):
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "a")).save(str(tmp_path / "tokenizer.json"))

    with pytest.raises(UnknownTokenizer, match="pip install tokenizers"):
        Tokenizer.load(tmp_path / "tokenizer.json")
