"""The parser of programs with control flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rune.control.branch.primitive import cond
from rune.control.implicit.linear_solve import linear_solve
from rune.control.scan.primitive import scan
from rune.control.while_loop.checkpoints import Checkpoints, GrowingResiduals
from rune.control.while_loop.primitive import while_, while_linear
from rune.core.program import Program
from rune.transforms.programs import make_program as stage

CONTROL = (cond, linear_solve, scan, while_, while_linear)  # all primitives of this room
PRIMITIVES = {**stage.PRIMITIVES, **{p.name: p for p in CONTROL}}
RECORDS = {**stage.RECORDS, **{r.__name__: r for r in (Checkpoints, GrowingResiduals)}}


def parse_program(text: str, functions: Mapping[str, Callable[..., object]] | None = None) -> Program:
    """The program that prints as `text`; it may use every primitive of rune.

    functions: the Python functions that the text only names, as "<rule of f>". A program in which
               one is missing can be printed, and runs unless it calls that function.
    Errors: CheckError "parse: cannot read <what> (<why>)" with the line and its number.

    >>> print(parse_program("program f(%0: f32[n]) where n in 1..9 { return %0 }"))
    program f(%0: f32[n]) where n in 1..9 {
      return %0
    }
    """
    return stage.parse_program(text, PRIMITIVES, RECORDS, functions)
