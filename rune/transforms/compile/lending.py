"""Runs that may write to the memory of donated arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rune.array import Array
from rune.core.values import Value
from rune.errors import DimensionError, LayoutError, OutOfMemory, ShapeError

# Errors that are raised before the first step of a plan, when all memory is still unchanged.
_BEFORE_A_RUN = (DimensionError, LayoutError, OutOfMemory, ShapeError)


@contextmanager
def lending(args: Sequence[Value], lender_numbers: Sequence[int]) -> Iterator[None]:
    """A run that may write to the memory of some arguments, which are deleted before it.

    So no other thread reads memory while it is written, and no code reads the partial results of an
    interrupted run. If nothing has run, the arguments get their memory back.
    """
    lenders = [x for x in (args[n] for n in lender_numbers) if type(x) is Array]
    buffers = [x.buffer for x in lenders]
    for lender in lenders:
        lender.delete()
    try:
        yield
    except _BEFORE_A_RUN:
        for lender, buffer in zip(lenders, buffers, strict=True):
            lender._buffer = buffer
        raise
