"""Tokenizers of SentencePiece in the language model's example; the oracle is their package."""

from __future__ import annotations

import inspect
import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "llm"))

import sentencepiece as spm
from llm_sentencepiece import SentencePiece
from llm_tokenizer import UnknownTokenizer

TEXTS = [
    "", " ", "a", "  two  spaces ", "Return the sum.\n\tIndented", "naïve café, 東京 🙂", "x" * 40, "<mark>in<mark> it",
    "▁ itself", "the sum of " * 300, "numbers 12345 and _under_scores", "e\u0301 combining", "end ",
]  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "bpe", "byte_fallback": True, "remove_extra_whitespaces": False},
    "gemma": {
        "model_type": "bpe", "byte_fallback": True, "remove_extra_whitespaces": False, "add_dummy_prefix": False,
        "user_defined_symbols": ["<mark>", "\n\n"],
    },
    "unigram": {"model_type": "unigram", "byte_fallback": True},
    "unknowns": {"model_type": "unigram", "user_defined_symbols": ["<mark>"]},
    "bpe_unknowns": {"model_type": "bpe"},
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def both(request: Any, tmp_path_factory: Any) -> tuple[Any, Any]:
    """A model as the package reads it, and as the example does."""
    lines = [line for line in inspect.getsource(np.lib._function_base_impl).splitlines() if len(line) > 20][:600]
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=450, normalization_rule_name="identity",
        character_coverage=0.999, minloglevel=2, num_threads=1, **KINDS[request.param],
    )  # fmt: skip
    path = tmp_path_factory.mktemp(request.param) / "tokenizer.model"
    path.write_bytes(model.getvalue())
    return spm.SentencePieceProcessor(model_proto=model.getvalue()), SentencePiece.load(path)


def texts() -> list[str]:
    """Those above, and random ones of characters that models know and do not."""
    chance = random.Random(0)
    letters = "aeinorst  .,()_\n=é東🙂"
    return TEXTS + ["".join(chance.choices(letters, k=chance.randrange(1, 40))) for _ in range(200)]


def test_texts_have_the_numbers_that_the_package_gives(both: tuple[Any, Any]):
    package, ours = both
    assert {text: ours.encode(text) for text in texts()} == {text: package.encode(text) for text in texts()}


def test_numbers_give_the_texts_that_the_package_gives(both: tuple[Any, Any]):
    package, ours = both
    for text in texts():
        assert ours.decode(package.encode(text)) == package.decode(package.encode(text))


def test_the_mark_of_a_beginning_is_that_of_the_package(both: tuple[Any, Any]):
    package, ours = both
    assert ours.begin == (package.bos_id(),)


def test_a_model_that_rewrites_characters_is_refused(tmp_path: Path):
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(["some words here"] * 9), model_writer=model, vocab_size=13, minloglevel=2
    )
    (tmp_path / "tokenizer.model").write_bytes(model.getvalue())

    with pytest.raises(ValueError, match="rewrites characters; pip install sentencepiece"):
        SentencePiece.load(tmp_path / "tokenizer.model")


@pytest.mark.parametrize("content", [b"\x0a", b"\xff\xff", b"\x0b\x00", b"\x0a\x05ab"])
def test_a_file_that_is_not_a_model_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "tokenizer.model").write_bytes(content)

    with pytest.raises(UnknownTokenizer, match=r"not a protocol buffer"):
        SentencePiece.load(tmp_path / "tokenizer.model")
