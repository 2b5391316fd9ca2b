"""Calls that both SciPy and rune.scipy accept; a file for each module, joined here.

case("gammaln", lambda sp, x: sp.special.gammaln(x), pos(2, 3), module="scipy")
"""

from __future__ import annotations

from tests.numpy.spelling import Case
from tests.scipy.fft_cases import TRANSFORMS
from tests.scipy.integrate_cases import INTEGRATE
from tests.scipy.interpolate_cases import INTERPOLATE
from tests.scipy.linalg_cases import SOLVED
from tests.scipy.matrix_cases import MATRICES
from tests.scipy.ndimage_cases import NDIMAGE
from tests.scipy.optimize_cases import OPTIMIZE
from tests.scipy.signal_cases import SIGNAL
from tests.scipy.special_cases import SPECIAL
from tests.scipy.stats_cases import STATS

CASES: list[Case] = [
    *SPECIAL,
    *STATS,
    *INTEGRATE,
    *OPTIMIZE,
    *INTERPOLATE,
    *NDIMAGE,
    *TRANSFORMS,
    *SIGNAL,
    *SOLVED,
    *MATRICES,
]
