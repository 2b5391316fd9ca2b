"""Programs of a hunt with jax's answers, stored for machines without jax.

    python -m rune.as_jax -m tests.as_jax.hunt.stored PYTHON      an interpreter with jax

One NumPy file has the texts as JSON, and all numbers as one row of bytes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.as_jax.hunt.answers import Answered, Leaf
from tests.as_jax.hunt.beside import differences, drawn_by
from tests.as_jax.hunt.text import Program, Statement

ANSWERS = Path(__file__).parent / "jax_0_10_2.npz"
FIRST, BATCH, WANTED = 500_000, 60, 200
LARGEST_BYTES = 12_000  # of a program's arguments and answers
SHARE = 0.25  # of the tolerance, as another processor rounds otherwise


def store(python: str) -> None:
    """Store small programs that rune answers as jax does."""
    selection: list[Answered] = []
    first = FIRST
    while len(selection) < WANTED:
        small = [a for a in drawn_by(python, first, BATCH) if size_bytes(a) <= LARGEST_BYTES]
        selection += [a for a in small if not differences(a, SHARE)]
        first += BATCH
        _save(selection[:WANTED])


def _save(selection: Sequence[Answered]) -> None:
    texts, rows = zip(*map(_entry, selection))
    np.savez_compressed(ANSWERS, texts=np.array(json.dumps(texts)), numbers=np.frombuffer(b"".join(rows), np.uint8))
    print(f"{len(texts)} programs, {ANSWERS.stat().st_size} bytes")


def size_bytes(answer: Answered) -> int:
    """The bytes of a program's numbers."""
    return sum(x.nbytes for x in _arrays(answer))


def _arrays(answer: Answered) -> list[np.ndarray]:
    return [*answer.program.arguments.values(), *(x.bits for x in answer.leaves.values())]


def _entry(answer: Answered) -> tuple[list[object], bytes]:
    program = answer.program
    types = [[x.dtype.name, list(x.shape)] for x in _arrays(answer)]
    names = [list(program.arguments), [[n, x.weak] for n, x in answer.leaves.items()]]
    statements = [[list(s.names), s.text, s.kind] for s in program.statements]
    row = b"".join(np.ascontiguousarray(x).tobytes() for x in _arrays(answer))
    return [program.seed, program.x64, statements, *names, types], row


def stored() -> list[Answered]:
    """Every stored program, with its answers."""
    with np.load(ANSWERS) as file:
        texts, numbers = json.loads(str(file["texts"])), file["numbers"].tobytes()
    return list(_programs(texts, numbers))


def _programs(texts: Iterable[list], numbers: bytes) -> Iterator[Answered]:
    at = 0
    for seed, x64, statements, arguments, leaves, types in texts:
        arrays = []
        for name, shape in types:
            dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
            count = int(np.prod(shape))
            arrays.append(np.frombuffer(numbers, dtype, count, at).reshape(shape))
            at += count * dtype.itemsize
        lines = tuple(Statement(tuple(names), text, kind) for names, text, kind in statements)
        program = Program(seed, dict(zip(arguments, arrays)), lines, x64)
        results = zip(leaves, arrays[len(arguments) :], strict=True)
        yield Answered(program, {name: Leaf(bits, weak) for (name, weak), bits in results})


if __name__ == "__main__":
    store(sys.argv[1])
