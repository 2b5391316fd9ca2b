"""Memos of rewritten programs, which live as long as the program (decision 0004).

The result of rewriting a program depends only on the program and a hashable key, so a second
`grad(jit(f))` gets the same rewritten programs, and their compiled code with them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from rune.core.axes import own_axis
from rune.core.program import Program

R = TypeVar("R")


def per_program(rewrite: Callable[..., object]) -> Callable[..., Any]:
    """Memoise `rewrite(program, *key)` by the program's identity and the key."""

    @functools.wraps(rewrite)
    def remembered(program: Program, *key: object) -> Any:
        # Stored on the program, because a global table would keep every program alive.
        known = program.derived.setdefault(rewrite, {})
        if key not in known:
            known[key] = rewrite(program, *key)
        return known[key]

    return remembered


def per_program_and_lanes(rewrite: Callable[..., R]) -> Callable[..., R]:
    """The same for a rewrite that batches programs: the axis of the lanes is part of the key."""
    for_axis = per_program(lambda program, _, *key: rewrite(program, *key))

    @functools.wraps(rewrite)
    def remembered(program: Program, *key: object) -> R:
        return for_axis(program, own_axis(), *key)

    return remembered
