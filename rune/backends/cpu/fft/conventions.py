"""Conventions between the routines of eager transforms and their code: parameters and words."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

OF_STAGE = 4  # words of a stage: its function, its table, runs and length
CONVOLVED = 8  # words of a stage by convolution
HEAD = 10  # words of a length before those of its stages
ROOMS = 2  # of the work memory of lines in lanes, which stages write by turns
PARTS = "real imag to_real to_imag between work words"  # parameters of one row, all pointers
# How complex numbers lie: parts in memory of their own, or pairs; swapped pairs have the imaginary
# part as their real one, and make an inverse of a transform that reads and writes them.
Layout: TypeAlias = Literal["parts", "pairs", "swapped"]


class Ends(NamedTuple):
    """How a transform, or a stage of it, reads and writes."""

    reads: Layout = "parts"
    writes: Layout = "parts"


IN_PARTS = Ends()
