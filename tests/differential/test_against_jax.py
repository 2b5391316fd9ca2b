"""Every name of lax and nn against stored answers of jax 0.10.2.

Values, dtypes, weak types, tangents and cotangents, on drawn and on hard operands, in every dtype.
A run of the tests takes some of the answers, chosen by their names; RUNE_TEST_WHOLE=1 takes all.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from tests.differential.answers import WAYS, Answer, Library, answer, load
from tests.differential.calls import CASES, key, tried
from tests.differential.compare import difference
from tests.differential.differences import DIFFERENCES, reason
from tests.numpy.spelling import Case
from tests.support.sampling import IS_WHOLE

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent.parent / "docs" / "guide" / "from-jax.md"
SHARE = 1 if IS_WHOLE else 50  # one in this many answers is compared
COMPILED = 1 if IS_WHOLE else 700
RUNE = Library(
    array=lambda x: x if isinstance(x, float) else rnp.asarray(x),
    leaves=tree.leaves,
    jvp=rune.jvp,
    vjp=rune.vjp,
    is_weak=lambda x: bool(getattr(x, "weak_type", False)),
)


@cache
def _stored(module: str) -> dict[str, Answer]:
    return load(FOLDER / f"jax_{module}_0_10_2.npz")


def _is_taken(name: str, share: int) -> bool:
    return zlib.crc32(name.encode()) % share == 0


def _call(case: Case) -> Callable[..., Any]:
    return lambda *operands: case.call(case.ours, *operands)


def _sampled_answers(case: Case, share: int) -> Iterator[tuple[str, Answer, Sequence[Any], str]]:
    """The names of stored answers, the answers, the operands, and the way of calling."""
    answers_of_jax = _stored(case.module)
    for variant, operands, way in tried(case):
        name = key(case, variant, way)
        if name in answers_of_jax and _is_taken(f"{case.module}: {name}", share):
            yield name, answers_of_jax[name], operands, way


def _differences(case: Case) -> list[str]:
    """How eager calls differ from JAX."""
    call, lines = _call(case), []
    for name, expected, operands, way in _sampled_answers(case, SHARE):
        actual = _ask(WAYS[way], call, operands)
        how = difference(expected, actual, case.slack, _unit(name))
        if how:
            lines.append(f"{case.module}: {name}: {how}")
    return lines


def _unit(name: str) -> float:
    """The magnitude of terms that may cancel, as in derivatives along weights of about 1."""
    return 0.0 if name.endswith("value") else 1.0


def _ask(way: Callable[..., Any], call: Callable[..., Any], operands: Sequence[Any]) -> Answer:
    return answer(RUNE, lambda: way(RUNE, call, operands))


@pytest.mark.parametrize("module", CASES)
@pytest.mark.filterwarnings("ignore")
def test_answers_are_those_of_jax(module: str):
    lines = [line for case in CASES[module] for line in _differences(case)]
    assert [line for line in lines if not reason(line)] == []


@pytest.mark.parametrize("module", CASES)
@pytest.mark.filterwarnings("ignore")
def test_compiled_answers_are_those_of_jax(module: str):
    lines = []
    for case in CASES[module]:
        if case.static:
            continue
        program = rune.jit(_call(case))
        for name, expected, operands, way in _sampled_answers(case, COMPILED):
            actual = _ask(WAYS[way], program, operands)
            how = difference(expected, actual, case.slack, _unit(name))
            if how and not reason(f"{case.module}: {name}: {how}"):
                lines.append(f"{name}: {how}")
    assert lines == []


@pytest.mark.parametrize("module", CASES)
@pytest.mark.filterwarnings("ignore")
def test_lanes_of_a_batch_have_the_answers_of_jax(module: str):
    lines = []
    for case in CASES[module]:
        if not case.static and case.specs and _is_taken(case.name, COMPILED):
            lines += _batched_differences(case)
    assert lines == []


def _batched_differences(case: Case) -> list[str]:
    """Drawn and hard operands are the lanes of one batch."""
    answers_of_jax = _stored(case.module)
    lanes = [(v, o) for v, o, w in tried(case) if w == "value" and v in ("f32", "hard 1", "hard 2")]
    names = [key(case, variant, "value") for variant, _ in lanes]
    if any(name not in answers_of_jax or answers_of_jax[name].error for name in names):
        return []
    columns = [np.stack(column) for column in zip(*(operands for _, operands in lanes))]
    results = [np.asarray(x) for x in tree.leaves(rune.vmap(_call(case))(*columns))]
    lines = []
    for lane, name in enumerate(names):
        leaves = tuple(rnp.asarray(x[lane]) for x in results)
        expected = answers_of_jax[name]
        actual = answer(RUNE, lambda leaves=leaves: leaves)
        how = difference(_strong(expected), _strong(actual), case.slack)
        if how and not reason(f"{case.module}: {name}: {how}"):
            lines.append(f"{name}: {how}")
    return lines


def _strong(original: Answer) -> Answer:
    """The answer without its weak types, which a stack of lanes does not show."""
    return Answer(tuple(type(leaf)(leaf.value, False) for leaf in original.leaves), original.error)


@pytest.mark.skipif(not IS_WHOLE, reason="every answer has to be looked at (RUNE_TEST_WHOLE=1)")
@pytest.mark.filterwarnings("ignore")
def test_every_listed_difference_still_exists():
    lines = [line for cases in CASES.values() for case in cases for line in _differences(case)]
    assert _unneeded(lines) == []


def _unneeded(lines: Sequence[str]) -> list[str]:
    from fnmatch import fnmatchcase

    patterns = [pattern for group in DIFFERENCES.values() for pattern in group]
    return [p for p in patterns if not any(fnmatchcase(line, p) for line in lines)]


def test_the_guide_has_every_reason():
    guide = " ".join(PAGE.read_text().split())
    assert [why for why in DIFFERENCES if " ".join(why.split()) not in guide] == []
