"""Conventions between the routines of eager transforms and their code: parameters and words."""

from __future__ import annotations

OF_STAGE = 4  # words of a stage: its function, its table, runs and length
ROOMS = 3  # of a column's work memory: two for stages, and one for what the last of them writes
PARTS = "real imag between work words"  # parameters of one row, all pointers
ROW_POINTERS = f"source target even odd {PARTS}"  # of complex rows
REAL_POINTERS = f"source target even odd turns {PARTS}"  # of real ones
