"""Random programs with jax's answers, stored for machines without jax.

python -m rune.as_jax -m tests.as_jax.random_programs.stored PYTHON      an interpreter with jax
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tests.as_jax.random_programs.beside import peer, ways
from tests.as_jax.random_programs.dialect import Answer, Question
from tests.as_jax.random_programs.ways import FORMS, question
from tests.fuzzing.program import dtype_named
from tests.fuzzing.trial import way_of

ANSWERS = Path(__file__).parent / "jax_0_10_2.npz"
SEEDS = range(500_000, 500_070)


def store(python: str) -> None:
    """Store the programs of SEEDS that jax answers, and its answers."""
    entries: dict[str, np.ndarray] = {}
    with peer(python) as jax_process:
        forms = [way for way in ways(jax_process) if way.name in FORMS]
        for seed in SEEDS:
            way = way_of(seed, forms)
            query = question(way.draw(seed), seed, FORMS[way.name][1])
            reply = jax_process.answer(query)
            if not reply.error:
                entries |= _entries(str(seed), query, reply)
    np.savez_compressed(ANSWERS, **entries)  # type: ignore[arg-type]
    print(f"{len(stored())} programs, {ANSWERS.stat().st_size} bytes")


def _entries(name: str, query: Question, reply: Answer) -> dict[str, np.ndarray]:
    arrays = {"a": query.arguments, "r": reply.values}
    arrays_in_bits = {f"{name}|{kind}{k}": _packed(x) for kind, xs in arrays.items() for k, x in enumerate(xs)}
    names = {f"{name}|{kind}": np.array([x.dtype.name for x in xs]) for kind, xs in arrays.items()}
    return {f"{name}|source": np.array(query.source), f"{name}|x64": np.array(query.x64), **arrays_in_bits, **names} | {
        f"{name}|weak": np.array(reply.weak, bool)
    }


def _packed(x: np.ndarray) -> np.ndarray:
    """Numbers as a NumPy file can hold them: bfloat16 as its bits."""
    return x.view(np.uint16) if x.dtype.name == "bfloat16" else x


def stored() -> dict[str, tuple[Question, Answer]]:
    """Each program and its answer, by its seed."""
    with np.load(ANSWERS) as file:
        entries = {key: file[key] for key in file.files}
    return {k.partition("|")[0]: _read(entries, k.partition("|")[0]) for k in entries if k.endswith("|source")}


def _read(entries: dict[str, np.ndarray], name: str) -> tuple[Question, Answer]:
    def arrays(kind: str) -> list[np.ndarray]:
        dtypes = entries[f"{name}|{kind}"].tolist()
        return [_unpacked(entries[f"{name}|{kind}{k}"], dtype) for k, dtype in enumerate(dtypes)]

    query = Question(str(entries[f"{name}|source"]), arrays("a"), bool(entries[f"{name}|x64"]))
    return query, Answer(arrays("r"), entries[f"{name}|weak"].tolist())


def _unpacked(x: np.ndarray, dtype: str) -> np.ndarray:
    return x.view(dtype_named(dtype)) if dtype == "bfloat16" else x


if __name__ == "__main__":
    store(sys.argv[1])
