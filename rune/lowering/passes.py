"""Passes: named functions from a value to a value of the same language, checked after each.

A pass never changes its argument. `run_passes` checks the value after every pass; if the check
fails, the error names the pass and shows the value before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from rune.core.higher import map_subprograms
from rune.core.program import Program
from rune.errors import CheckError
from rune.records import dataclass

A = TypeVar("A")

ROUNDS = 100  # of a fixpoint before it counts as a cycle


@dataclass(frozen=True, slots=True)
class Pass(Generic[A]):
    """A rewrite: its name in options and reports, one line about it, and the function."""

    name: str
    description: str
    run: Callable[[A], A]


def fixpoint(*passes: Pass[A]) -> Pass[A]:
    """The passes in turn, repeated until each of them has changed nothing since the last change.

    Errors: CheckError if that takes more than ROUNDS rounds: a cycle is an error, not a hang.
    """
    names = ", ".join(p.name for p in passes)

    def run(value: A) -> A:
        unchanged = 0  # passes in a row that left the value as it is
        for p in passes * ROUNDS:
            before, value = value, p.run(value)
            # Compared by value, because a pass may rebuild code that it does not change.
            unchanged = unchanged + 1 if value == before else 0
            if unchanged == len(passes):
                return value
        raise CheckError(f"fixpoint: cannot finish ({names}: still changing after {ROUNDS} rounds)")

    return Pass(f"fixpoint({names})", f"until nothing changes: {names}", run)


def nested(p: Pass[Program]) -> Pass[Program]:
    """The pass on the programs of equations, then on the program itself."""

    def run(program: Program) -> Program:
        return p.run(map_subprograms(program, run))

    return Pass(p.name, p.description, run)


def run_passes(passes: Iterable[Pass[A]], value: A, check: Callable[[A], object], show: Callable[[A], str] = str) -> A:
    """The value after all passes, checked after each that changed it.

    Errors: CheckError "pass unroll: cannot keep the rules of its language (...)", with the value
    before and after.
    """
    for p in passes:
        after = p.run(value)
        # Passes return their argument where nothing changes, so checking costs nothing then.
        if after is not value:
            try:
                check(after)
            except CheckError as error:
                # The first line says what is wrong; values follow in full below.
                reason = str(error).splitlines()[0]
                message = f"pass {p.name}: cannot keep the rules of its language ({reason})"
                both = f"before:\n{show(value)}\nafter:\n{show(after)}"
                raise CheckError(f"{message}\n{both}") from error
        value = after
    return value
