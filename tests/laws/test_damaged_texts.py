"""Damaged texts of programs, kernels, kernel code and plans: parsed, or a CheckError, and quickly.

Characters and lines are deleted, repeated, moved, or replaced by others of the language; texts are
truncated, or repeated many times. RUNE_TEST_WHOLE=1 tries thousands of each.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.control.text import parse_program
from rune.errors import CheckError
from rune.lowering import kernels_parse, plan_text
from rune.lowering.kernel import parse as code_parse
from rune.lowering.kernel import text as code_text
from tests.support.sampling import IS_WHOLE, each_value

LONGEST = 60  # more seconds than any text of a page takes, so that a slow machine is not taken for a hang
TRIES = 4000 if IS_WHOLE else 120
SIGNS = "()[]{}<>=:,.%*+-/#_'\"\n 019anifx\0é"


def _softmax(x: Any) -> Any:
    x = x * (x > 2.0)
    return rnp.exp(x - x.max(1, keepdims=True)) / rnp.exp(x).sum(1, keepdims=True)


def _loop(x: Any, i: Any) -> Any:
    carry, rows = rune.scan(lambda c, r: (c + r, c.sum()), x[0], x)
    return rune.cond(i > 2, rnp.sin, lambda v: v.at[i].set(1.0), carry), rows


@rune.custom_jvp
def _ruled(x: Any) -> Any:
    return rnp.cumsum(x.T, axis=0) + rnp.complex64(2j)


_ruled.defjvp(lambda primals, tangents: (_ruled(*primals), tangents[0].T + 0j))
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (_softmax, (rnp.ones((3, 5)),)),
    (_loop, (rnp.ones((4, 3)), 1)),
    (_ruled, (rnp.ones((2, 2)),)),
]


PARSERS: dict[str, Callable[[str], Any]] = {
    "program": parse_program,
    "kernels": kernels_parse.parse_program,
    "code": code_parse.parse,
    "plan": plan_text.parse,
}


def texts() -> Iterator[tuple[str, str]]:
    """A parser's name, and a text that it reads."""
    for function, args in CALLS:
        stages = rune.explain(rune.jit(function))(*args)
        yield "program", stages["program"]
        yield "kernels", stages["kernels"]
        yield "plan", plan_text.to_text(stages.plan)
        for code in stages.plan.kernels.values():
            yield "code", code_text.to_text(code)


@pytest.fixture(scope="module")
def sound() -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = {}
    for name, text in texts():
        by_name.setdefault(name, []).append(text)
    return by_name


@contextmanager
def no_hang() -> Iterator[None]:
    """Errors: TimeoutError where the block does not end."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"did not end in {LONGEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def damaged(text: str, draw: random.Random) -> str:
    """The text with one to three injuries."""
    for _ in range(draw.randint(1, 3)):
        a, b = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        near = min(b, a + draw.randint(0, 12))
        match draw.randrange(7):
            case 0:
                text = text[:a] + text[near:]
            case 1:
                text = text[:near] + text[a:]
            case 2:
                text = text[:a] + draw.choice(SIGNS) + text[near:]
            case 3:
                text = text[:a]
            case 4:
                lines = text.splitlines(keepends=True)
                draw.shuffle(lines)
                text = "".join(lines)
            case 5:
                lines = text.splitlines(keepends=True) or [""]
                k = draw.randrange(len(lines))
                text = "".join(lines[:k] + lines[k : k + 1] * draw.choice((0, 2, 3)) + lines[k + 1 :])
            case _:
                text = text[:a] + text[a:near] * draw.choice((2, 9)) + text[near:]
    return text


def read(name: str, text: str) -> None:
    """Parse, and let CheckError pass."""
    try:
        with no_hang():
            PARSERS[name](text)
    except CheckError:
        pass
    except BaseException as error:
        pytest.fail(f"{name}: {type(error).__name__}: {error}\n{text!r}")


@pytest.mark.parametrize("name", PARSERS)
def test_sound_texts_are_read(name: str, sound: dict[str, list[str]]):
    for text in sound[name]:
        PARSERS[name](text)


@pytest.mark.parametrize("name", PARSERS)
def test_a_damaged_text_is_read_or_refused(name: str, sound: dict[str, list[str]]):
    draw = random.Random(name)

    for _ in range(TRIES):
        read(name, damaged(draw.choice(sound[name]), draw))


@pytest.mark.parametrize("name", PARSERS)
def test_a_text_cut_anywhere_is_refused_or_read(name: str, sound: dict[str, list[str]]):
    text = min(sound[name], key=len)

    for end in range(0, len(text), 1 if TRIES > 1000 else 7):
        read(name, text[:end])


@each_value()
@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize("nest", ["(", "[", "{", "-", "1+", "f(", "x[", "program f(", "index(", "if x {"])
def test_nests_without_end_are_refused(name: str, nest: str, sound: dict[str, list[str]]):
    head, _, tail = sound[name][0].rpartition(" = ")
    for text in (nest * 20_000, f"{head} = {nest * 20_000}{tail}"):
        with no_hang(), pytest.raises(CheckError):
            PARSERS[name](text)
