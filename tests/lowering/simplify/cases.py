"""Text cases of program passes: a title, a program, the pass, and the result of the pass.

== title
program f(...) { ... }
-- pass-name
program f(...) { ... }
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rune.core.program import Program
from rune.lowering.passes import Pass
from rune.lowering.simplify import (
    chosen_writes,
    eliminate_common,
    eliminate_dead,
    fold_constants,
    narrow,
    repeated_products,
    simplify_algebra,
    single_writes,
    summed_products,
)
from rune.transforms.programs.make_program import parse_program

PASSES: dict[str, Pass[Program]] = {
    module.PASS.name: module.PASS
    for module in (
        eliminate_dead,
        eliminate_common,
        fold_constants,
        simplify_algebra,
        narrow,
        repeated_products,
        summed_products,
        chosen_writes,
        single_writes,
    )
}


@dataclass(frozen=True, slots=True)
class Case:
    """One case."""

    title: str
    before: str
    rewrite: Pass[Program]
    after: str


def read_cases(name: str) -> list[Case]:
    """The cases of a file in this folder."""
    all_cases = []
    for block in re.split(r"^== ", (Path(__file__).parent / name).read_text(), flags=re.M)[1:]:
        title, _, text = block.partition("\n")
        before, pass_name, after = re.split(r"^-- ([\w-]+)\n", text, flags=re.M)
        all_cases.append(Case(title, before.strip(), PASSES[pass_name], after.strip()))
    return all_cases


def normal(text: str) -> str:
    """A program's text with its variables numbered from 0."""
    return str(parse_program(text))
