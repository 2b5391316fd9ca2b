"""Functions of rune.lax against their meanings in NumPy, then against themselves transformed.

The table of calls is cases.py, the meanings are meanings.py; what holds of each is said in
tests/support/surface_laws.py.
"""

from __future__ import annotations

from tests.lax.cases import CASES
from tests.support.surface_second import SecondOrder


class TestLax(SecondOrder):
    cases = CASES
    sample = 3
