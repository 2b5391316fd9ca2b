"""Operands of SciPy's functions, which may be nested lists of numbers."""

from __future__ import annotations

import rune.numpy as rnp
from rune.typing import ArrayLike, Nested


def from_sequences(*operands: Nested) -> list[ArrayLike]:
    """The operands, nested lists and tuples as arrays.

    Called by the functions whose namesakes in JAX take lists: the others refuse them there as here.
    """
    return [rnp.asarray(x) if isinstance(x, list | tuple) else x for x in operands]
