"""Byte-level BPE: texts to numbers and back, from tokenizer.json or trained on a text.

A text is cut into words by a pattern; the bytes of a word are written as letters, one for each
byte, and pairs of neighbours are merged in the order in which the merges were learned. Any text
comes back as it was. The file is that of the `tokenizers` package, of which this reads models of
BPE with a ByteLevel pre-tokenizer; other files are an error, and that package reads them.

Source: Sennrich et al. 2016, arXiv:1508.07909; byte letters, Radford et al. 2019 (GPT-2).
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

Pair = tuple[str, str]
# GPT-2's, in the words of `re`: an apostrophe's ending, letters, digits, other signs, white space.
WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s+")


def byte_letters() -> dict[int, str]:
    """A printable letter for each byte: itself if it is one, else one from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [n for n in range(256) if n not in plain]
    return {**{n: chr(n) for n in plain}, **{n: chr(256 + k) for k, n in enumerate(others)}}


LETTERS = byte_letters()
BYTES = {letter: number for number, letter in LETTERS.items()}


def as_letters(word: str) -> tuple[str, ...]:
    """The bytes of a word as letters."""
    return tuple(LETTERS[b] for b in word.encode())


class UnknownTokenizer(ValueError):
    """A tokenizer.json that this reader does not support; `pip install tokenizers` reads it."""


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """The number of each piece, and the merges with their order."""

    numbers: dict[str, int]
    ranks: dict[Pair, int]
    begin: ClassVar[tuple[int, ...]] = ()  # the numbers before every text

    @functools.cached_property
    def pieces(self) -> dict[int, str]:
        """The piece of each number."""
        return {number: piece for piece, number in self.numbers.items()}

    def encode(self, text: str) -> list[int]:
        """The numbers of a text."""
        return [self.numbers[piece] for word in WORDS.findall(text) for piece in self._merged(word)]

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of numbers; bytes that do not make up a character become �."""
        letters = "".join(self.pieces[int(n)] for n in numbers)
        return bytes(BYTES[letter] for letter in letters).decode(errors="replace")

    @functools.cache  # noqa: B019  (tokenizers are few, and words come again and again)
    def _merged(self, word: str) -> tuple[str, ...]:
        pieces = as_letters(word)
        while len(pieces) > 1:
            first = min(pairwise(pieces), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if first not in self.ranks:
                break
            pieces = joined(pieces, first)
        return pieces

    # --- files ------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """That of a tokenizer.json. Errors: UnknownTokenizer."""
        said = json.loads(path.read_text())
        model, before = said["model"], said.get("pre_tokenizer") or {}
        if model.get("type") != "BPE" or before.get("type") != "ByteLevel" or said.get("normalizer"):
            kinds = f"{model.get('type')}, {before.get('type')}"
            raise UnknownTokenizer(f"{path}: it is of another kind ({kinds}); pip install tokenizers reads it")
        merges = (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
        return cls(model["vocab"], {(a, b): rank for rank, (a, b) in enumerate(merges)})

    def save(self, path: Path) -> None:
        """Write a tokenizer.json."""
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        model = {"type": "BPE", "vocab": self.numbers, "merges": [list(pair) for pair in self.ranks]}
        said = {"version": "1.0", "pre_tokenizer": level, "decoder": level, "model": model}
        path.write_text(json.dumps(said, ensure_ascii=False))


def joined(pieces: Sequence[str], pair: Pair) -> tuple[str, ...]:
    """The pieces with this pair of neighbours as one, from the left."""
    merged: list[str] = []
    for piece in pieces:
        if merged and (merged[-1], piece) == pair:
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)


def train(text: str, size: int) -> Tokenizer:
    """A tokenizer of that many pieces: 256 bytes, and the commonest pairs one after the other."""
    words = Counter(WORDS.findall(text))
    pieces = {word: as_letters(word) for word in words}
    counts, users = Counter[Pair](), defaultdict[Pair, set[str]](set)

    def count(word: str, sign: int) -> None:
        for pair in pairwise(pieces[word]):
            counts[pair] += sign * words[word]
            users[pair].add(word)

    for word in words:
        count(word, 1)
    merges: list[Pair] = []
    while len(LETTERS) + len(merges) < size and counts:
        pair = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(pair)
        for word in users.pop(pair):
            count(word, -1)
            pieces[word] = joined(pieces[word], pair)
            count(word, 1)
        del counts[pair]
    alphabet = [LETTERS[n] for n in range(256)] + [a + b for a, b in merges]
    return Tokenizer({piece: n for n, piece in enumerate(alphabet)}, {pair: n for n, pair in enumerate(merges)})
