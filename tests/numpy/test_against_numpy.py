"""Every name of rune.numpy against NumPy, then against itself compiled, batched and derived.

cases.py is the table of calls; the laws for each are in tests/support/surface_laws.py and
surface_second.py.
"""

from __future__ import annotations

from tests.numpy.cases import CASES
from tests.support.surface_second import SecondOrder


class TestNumPy(SecondOrder):
    cases = CASES
    sample = 25
    smooth_sample = 3
