"""Kernel code passes: any sequence of them leaves results bit-identical.

Then what holds for all of them: each applies somewhere, none changes code without need, all take
linear time; and the machinery that runs and checks them.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import CheckError
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import to_text
from rune.lowering.passes import Pass, fixpoint, run_passes
from tests.lowering.kernel.random_code import random_code, random_inputs
from tests.lowering.optimize.bodies import PASSES, code
from tests.support.close import same


@given(st.integers(0, 10**6))
def test_any_sequence_of_passes_keeps_the_answer_bit_for_bit(seed):
    passes = random.Random(seed).choices(PASSES, k=6)
    before, after = random_inputs(seed), random_inputs(seed)
    interpret(random_code(seed), before)

    interpret(run_passes(passes, random_code(seed), check, to_text), after)

    same(before[2], after[2])


@given(st.integers(0, 10**6))
def test_rewrites_together_reach_a_fixpoint(seed):
    together = fixpoint(*PASSES[:-2])
    once = together.run(random_code(seed))

    assert together.run(once) == once


def test_every_pass_fires_on_some_random_code():
    for p in PASSES:
        assert any(p.run(random_code(seed)) is not random_code(seed) for seed in range(5)), p.name


def test_a_pass_without_effect_returns_its_argument():
    plain = code("for i in 64 grid { store y[i] = x[i] }")

    for p in PASSES:
        assert p.run(plain) is plain, p.name


@pytest.mark.parametrize("p", PASSES, ids=lambda p: p.name)
def test_passes_are_linear_in_straight_line_code(p):
    lets = "".join(f"t{n}: f32 = t{n - 1} * x[{n % 64}] " for n in range(1, 3000))

    run_passes([p], code(f"t0: f32 = x[0] {lets} store y[0] = t2999"), check, to_text)


# --- passes themselves ------------------------------------------------------------------------


def test_a_pass_that_breaks_a_rule_is_named_and_both_sides_are_shown():
    plain = code("for i in 64 grid { store y[i] = x[i] }")
    broken = Pass("break", "", lambda c: replace(c, params=()))

    with pytest.raises(CheckError, match="pass break: cannot keep the rules") as error:
        run_passes([broken], plain, check, to_text)

    message = str(error.value)
    assert "before:\ncode f(x: read" in message
    assert "after:\ncode f() sizes" in message


def test_fixpoint_repeats_until_nothing_changes_and_refuses_cycles():
    assert fixpoint(Pass("halve", "", lambda n: n // 2)).run(100) == 0
    with pytest.raises(CheckError, match=r"fixpoint: cannot finish \(flip"):
        fixpoint(Pass("flip", "", lambda n: -n)).run(1)


def test_a_fixpoint_ends_once_each_pass_has_changed_nothing_since_the_last_change():
    runs: list[str] = []

    def halve(n: int) -> int:
        runs.append("halve")
        return n // 2 if n > 1 else n

    def idle(n: int) -> int:
        runs.append("idle")
        return n

    assert fixpoint(Pass("halve", "", halve), Pass("idle", "", idle)).run(2) == 1
    assert runs == ["halve", "idle", "halve"]
