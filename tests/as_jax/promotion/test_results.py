"""Results have the dtypes of jax 0.10.2, weak or not, for arguments of every dtype.

A run tries a share of the calls; RUNE_TEST_WHOLE=1 tries all. results_differences.txt lists the
differences under their reasons: `how: call`, where `how` is "dtype", "weak" (equal except for
weakness) or "refused", and the call is a pattern.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from fnmatch import fnmatchcase

import jax
import pytest

from tests.as_jax.promotion.results import CALLS, HERE, NAMES, answers, result, stored
from tests.support.sampling import IS_WHOLE

SHARE = 1 if IS_WHOLE else 144
LINES = (HERE / "results_differences.txt").read_text().splitlines()
DIFFERENCES = [tuple(line.split(": ", 1)) for line in LINES if line and line[0] != "#"]


def differences() -> Iterator[tuple[str, str, str]]:
    """For each difference: its kind, the call, and the operand with both answers."""
    for is_wide in (False, True):
        with jax.enable_x64(is_wide):
            for call, width, operand, reference in stored():
                if width == is_wide and zlib.crc32(call.encode()) % SHARE == 0:
                    actual = result(eval(f"lambda x: {call}", NAMES), operand)
                    if _plain(actual) != _plain(reference):
                        yield _how(actual, reference), call, f"{operand} (64 bits: {width}): {actual} for {reference}"


def _plain(answer: str | None) -> str | None:
    """The answer without the weakness of bools, which has no meaning."""
    return answer and answer.replace("bool*", "bool")


def _how(actual: str | None, reference: str) -> str:
    if actual is None:
        return "refused"
    return "weak" if actual.replace("*", "") == reference.replace("*", "") else "dtype"


@pytest.mark.filterwarnings("ignore")
def test_results_have_the_dtypes_of_jax_but_for_the_table():
    unlike = [*differences()]

    table_lines = {
        (how, call) for how, call, _ in unlike if any(how == h and fnmatchcase(call, c) for h, c in DIFFERENCES)
    }
    assert [line for line in unlike if line[:2] not in table_lines] == []
    if IS_WHOLE:
        calls = {(how, call) for how, call, _ in unlike}
        assert [
            (h, c) for h, c in DIFFERENCES if not any(h == how and fnmatchcase(call, c) for how, call in calls)
        ] == []


def test_every_answer_is_of_a_call():
    assert {call for call, *_ in stored()} <= set(CALLS)


@pytest.mark.filterwarnings("ignore")
def test_a_call_answers_by_results():
    off, on = answers("jnp.sin(x)")

    assert off.startswith("off: float32=bool int8 int16")
    assert "float64*=int* float* int float" in on
