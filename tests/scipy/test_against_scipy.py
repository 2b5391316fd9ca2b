"""Every name of rune.scipy against SciPy, then against itself compiled, batched and differentiated.

cases.py is the table of calls; the laws for each are in tests/support/surface_laws.py and
surface_second.py.
"""

from __future__ import annotations

from tests.scipy.cases import CASES
from tests.support.surface_second import SecondOrder


class TestSciPy(SecondOrder):
    cases = CASES
    sample = 127  # to compile these takes seconds each
    smooth_sample = 13
