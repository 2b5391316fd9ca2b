"""Program passes, case by case: the text files in this folder have before and after.

Every case runs the pass once. A pass that changes nothing returns the same program object, so that
fixpoints end.
"""

from __future__ import annotations

import pytest

from rune.core.check import check_program
from rune.transforms.programs.make_program import parse_program
from tests.lowering.simplify.cases import PASSES, Case, normal, read_cases

FILES = (
    "eliminate.txt",
    "fold.txt",
    "algebra.txt",
    "narrow.txt",
    "repeated.txt",
    "summed.txt",
    "chosen.txt",
    "single.txt",
)
CASES = [case for name in FILES for case in read_cases(name)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_case(case: Case):
    before = parse_program(case.before)

    after = case.rewrite.run(before)

    check_program(after)
    assert normal(str(after)) == normal(case.after)
    assert (after is before) == (normal(case.before) == normal(case.after))


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_fires_in_some_case(name: str):
    assert any(c.rewrite.name == name and normal(c.before) != normal(c.after) for c in CASES)
