"""Every name of rune.numpy against NumPy, then against itself compiled, batched and derived.

The table of calls is cases.py; what holds of each is said in tests/support/surface_laws.py and
surface_second.py.
"""

from __future__ import annotations

from tests.numpy.cases import CASES
from tests.support.surface_second import SecondOrder


class TestNumPy(SecondOrder):
    cases = CASES
    sample = 8
