"""SentencePiece: texts to numbers and back by a tokenizer.model, as Llama 2 and Gemma have one.

Spaces are written as ▁, and a text is cut into pieces of a vocabulary with scores:

    unigram    the cut whose scores have the largest sum (Viterbi's algorithm)
    BPE        neighbours whose union has the largest score become one, until no union is a piece

What no piece has becomes its UTF-8 bytes, <0x0A>, if the model has those, else the unknown piece.
Models that rewrite characters first (NFKC, say) are an error; `pip install sentencepiece` reads
them.

Source: Kudo & Richardson 2018, arXiv:1808.06226; Kudo 2018, arXiv:1804.10959;
github.com/google/sentencepiece, sentencepiece_model.proto.
"""

from __future__ import annotations

import heapq
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from llm_tokenizer import UnknownTokenizer

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2
UNKNOWN_PENALTY = 10.0  # below the smallest score
Message = Mapping[int, list[bytes | int]]  # the values of each field


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the vocabulary."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True, eq=False)
class SentencePiece:
    """A vocabulary, and how texts are cut by it.

    adds_space:   whether a space is put in front of a text
    joins_spaces: whether several spaces are one, and none is at the ends
    begin:        the numbers before every text
    """

    pieces: tuple[Piece, ...]
    model: int
    has_bytes: bool
    adds_space: bool
    joins_spaces: bool
    begin: tuple[int, ...] = ()

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each piece that a text may have."""
        return {p.text: n for n, p in enumerate(self.pieces) if p.kind in (NORMAL, USER_DEFINED)}

    @cached_property
    def unknown(self) -> int:
        """The number of the token for unknown characters."""
        return next(n for n, piece in enumerate(self.pieces) if piece.kind == UNKNOWN)

    @cached_property
    def byte_numbers(self) -> dict[int, int]:
        """The number of each byte."""
        return {int(p.text[1:-1], 16): n for n, p in enumerate(self.pieces) if p.kind == BYTE}

    @cached_property
    def wholes(self) -> re.Pattern[str] | None:
        """The pieces that are never cut, the longest first."""
        texts = sorted((p.text for p in self.pieces if p.kind == USER_DEFINED), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, texts))})") if texts else None

    def encode(self, text: str) -> list[int]:
        """The numbers of a text, without those at its beginning."""
        if self.joins_spaces:
            text = re.sub(" +", " ", text).strip(" ")
        if not text:
            return []
        text = (f" {text}" if self.adds_space else text).replace(" ", SPACE)
        cut = self._likeliest(text) if self.model == UNIGRAM else self._merged(text)
        return [n for piece in self._joined_unknowns(cut) for n in self._numbers_of(piece)]

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of numbers; bytes that do not make up a character become �."""
        octets, mark, strips = b"", SPACE.encode(), self.adds_space or self.joins_spaces
        for piece in (self._octets(int(n)) for n in numbers):
            if strips and not octets and piece.startswith(mark):
                piece, strips = piece.removeprefix(mark), self.joins_spaces
            octets += piece
        return octets.decode(errors="replace").replace(SPACE, " ")

    def _octets(self, number: int) -> bytes:
        piece = self.pieces[number]
        if piece.kind == BYTE:
            return bytes([int(piece.text[1:-1], 16)])
        return {CONTROL: "", UNKNOWN: " \u2047 "}.get(piece.kind, piece.text).encode()

    def _joined_unknowns(self, cut: Iterable[str]) -> Iterator[str]:
        """Join neighbouring unknown characters: a model without bytes has one token for them."""
        for is_known, pieces in groupby(cut, key=self.numbers.__contains__):
            if is_known:
                yield from pieces
            else:
                yield "".join(pieces)

    def _numbers_of(self, piece: str) -> list[int]:
        if piece in self.numbers:
            return [self.numbers[piece]]
        return [self.byte_numbers[b] for b in piece.encode()] if self.has_bytes else [self.unknown]

    # --- cuts -------------------------------------------------------------------------------

    def _merged(self, text: str) -> list[str]:
        """BPE: the best pair becomes one, the first of equals."""
        parts = self.wholes.split(text) if self.wholes else [text]  # every second one is whole
        return [piece for n, part in enumerate(parts) for piece in ([part] if n % 2 else self._merged_part(part))]

    def _merged_part(self, text: str) -> list[str]:
        """The same of a text without a whole piece. Cost: n log n, a heap has the pairs."""
        pieces, before, after = [*text], [*range(-1, len(text) - 1)], [*range(1, len(text) + 1)]
        pairs: list[tuple[float, int, str]] = []

        def offer(n: int) -> None:
            if 0 <= n and after[n] < len(text) and (union := pieces[n] + pieces[after[n]]) in self.numbers:
                heapq.heappush(pairs, (-self._score(union), n, union))

        for n in range(len(text)):
            offer(n)
        while pairs:
            _, n, union = heapq.heappop(pairs)
            second = after[n]
            if not pieces[n] or second >= len(text) or pieces[n] + pieces[second] != union:
                continue  # one of the two has become part of another since
            pieces[n], pieces[second], after[n] = union, "", after[second]
            if after[n] < len(text):
                before[after[n]] = n
            offer(before[n])
            offer(n)
        return [piece for piece in pieces if piece]

    def _likeliest(self, text: str) -> list[str]:
        """Unigram: the cut of the largest score, by the best one of each beginning of the text."""
        best, starts = [0.0, *[-math.inf] * len(text)], [0] * (len(text) + 1)
        for start in range(len(text)):
            for end in range(start + 1, min(start + self._longest, len(text)) + 1):
                score = best[start] + self._score(text[start:end])
                if score > best[end]:
                    best[end], starts[end] = score, start
        cut, end = [], len(text)
        while end:
            cut.append(text[starts[end] : end])
            end = starts[end]
        return cut[::-1]

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.numbers), default=1)

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        scores = [piece.score for piece in self.pieces if piece.kind == NORMAL]
        return min(scores), max(scores)

    def _score(self, text: str) -> float:
        number = self.numbers.get(text)
        if number is None:
            return self._bounds[0] - UNKNOWN_PENALTY if len(text) == 1 else -math.inf
        if self.pieces[number].kind == USER_DEFINED and self.model == UNIGRAM:
            return len(text) * self._bounds[1] - 0.1
        return self.pieces[number].score

    # --- files ------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: Path) -> SentencePiece:
        """That of a tokenizer.model. Errors: UnknownTokenizer."""
        model = fields(path.read_bytes())
        training, normalizing = (fields(bytes(_one(model, field, b""))) for field in (2, 3))
        kind, pieces = _one(training, 3, UNIGRAM), tuple(map(_piece, model.get(1, [])))
        if kind not in (UNIGRAM, BPE) or _one(training, 24, 0) or any(p.kind == UNUSED for p in pieces):
            raise UnknownTokenizer(f"{path}: it is of another kind; pip install sentencepiece reads it")
        if _one(normalizing, 2, b""):
            raise UnknownTokenizer(f"{path}: it rewrites characters; pip install sentencepiece reads it")
        begin = tuple(n for n, piece in enumerate(pieces) if (piece.text, piece.kind) == ("<s>", CONTROL))
        begin = begin or tuple(n for n, piece in enumerate(pieces) if (piece.text, piece.kind) == ("<bos>", CONTROL))
        has_bytes, adds_space, joins_spaces = _one(training, 35, 0), _one(normalizing, 3, 1), _one(normalizing, 4, 1)
        return cls(pieces, int(kind), bool(has_bytes), bool(adds_space), bool(joins_spaces), begin)


# --- protocol buffers ---------------------------------------------------------------------------


def fields(message: bytes) -> Message:
    """The values of each field of a message: numbers, or the bytes of texts, floats and messages.

    Source: protobuf.dev/programming-guides/encoding. Errors: UnknownTokenizer.
    """
    values: dict[int, list[bytes | int]] = {}
    at = 0
    try:
        while at < len(message):
            key, at = _varint(message, at)
            if key & 7 == 0:
                value, at = _varint(message, at)
            else:
                length, at = _varint(message, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
                value, at = message[at : at + length], at + length
                _ = message[at - 1]  # or it ends before
            values.setdefault(key >> 3, []).append(value)
    except (IndexError, KeyError):
        raise UnknownTokenizer("a tokenizer.model that is not a protocol buffer") from None
    return values


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    number = shift = 0
    while True:
        number |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            return number, at


def _one(message: Message, field: int, default: bytes | int) -> bytes | int:
    """The last value of a field, which is the one that counts."""
    return message.get(field, [default])[-1]


def _piece(message: bytes | int) -> Piece:
    said = fields(bytes(message))
    (score,) = struct.unpack("<f", bytes(_one(said, 2, bytes(4))))
    return Piece(bytes(_one(said, 1, b"")).decode(), score, int(_one(said, 3, NORMAL)))
