"""Concatenations of many pieces, as trees of concatenations of few pieces.

Before   %9 = concatenate %0 … %99            After   %5 = concatenate %0 … %23
                                                      …
                                                      %9 = concatenate %5 … %8 %96 … %99

A single kernel would have a buffer for each piece, and choose between all pieces for each element.

Cost: log n copies of each element, to the base MOST, in place of n comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.core.values import Value
from rune.lowering.kernelize.cost import MAX_BUFFERS
from rune.ops.movement import concatenate

MOST = MAX_BUFFERS  # pieces of one concatenation


def join_many(pieces: Sequence[Value], axis: int) -> Value:
    """All pieces one after another, with at most MOST in any concatenation."""
    while len(pieces) > MOST:
        runs = [pieces[i : i + MOST] for i in range(0, len(pieces), MOST)]
        pieces = [run[0] if len(run) == 1 else concatenate(*run, axis=axis) for run in runs]
    return concatenate(*pieces, axis=axis)
