"""Functions of rune.lax against their meanings in NumPy, then against themselves transformed.

cases.py is the table of calls, meanings.py has the meanings; the laws for each are in
tests/support/surface_laws.py.
"""

from __future__ import annotations

from tests.lax.cases import CASES
from tests.support.surface_second import SecondOrder


class TestLax(SecondOrder):
    cases = CASES
    sample = 7
    smooth_sample = 3
