"""The code of routines of eager calls that is written with a `Maker` of vectors."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.gemm.tile import Maker
from rune.lowering.codegen.llvm.ir.text import Value

PARAMETERS = "words source target memory"  # all pointers (routine_calls.py); two sizes are behind them


def public(text: str) -> str:
    """A function that other modules can call."""
    return text.replace("define internal", "define", 1)


def routine(make: Maker, name: str, unit: Callable[[Value], None]) -> str:
    """A routine that does each unit of its work from `first` to `last`."""
    first, last = make.sizes("first last")
    make.each(last - first, lambda number: unit(first + number))
    return make.text(f"{name}({', '.join(f'ptr %{p}' for p in PARAMETERS.split())}, i64 %first, i64 %last)")
