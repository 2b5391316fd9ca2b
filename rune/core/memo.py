"""Memos of rewritten programs, which live as long as the program (decision 0004).

The result of rewriting a program depends only on the program and a hashable key, so a second
`grad(jit(f))` gets the same rewritten programs, and their compiled code with them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rune.core.program import Program

R = TypeVar("R")


def per_program(rewrite: Callable[..., R]) -> Callable[..., R]:
    """Memoise `rewrite(program, *key)` by the program's identity and the key."""

    @functools.wraps(rewrite)
    def remembered(program: Program, *key: Hashable) -> R:
        # Stored on the program, because a global table would keep every program alive.
        known = program.derived.setdefault(rewrite, {})
        if key not in known:
            known[key] = rewrite(program, *key)
        return known[key]

    return remembered


def per_programs(rewrite: Callable[..., R]) -> Callable[..., R]:
    """Memoise `rewrite(programs, *key)` for several programs; it lives as long as the first."""
    of_first = per_program(lambda first, others, *key: rewrite((first, *others), *key))

    @functools.wraps(rewrite)
    def remembered(programs: tuple[Program, ...], *key: Hashable) -> R:
        return of_first(programs[0], programs[1:], *key)

    return remembered
