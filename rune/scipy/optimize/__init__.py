"""rune.scipy.optimize: minima, least squares and roots, as loops that work under jit and vmap.

minimize       BFGS, L-BFGS, Newton-CG, Nelder-Mead      least_squares  Levenberg-Marquardt
brentq, bisect, newton, golden   of one number           root           of systems
"""

import typing as _typing

from rune.absent import of as _absent
from rune.scipy.optimize.minimizers import LeastSquaresResults, least_squares, minimize
from rune.scipy.optimize.results import OptimizeResults, RootResults
from rune.scipy.optimize.roots import bisect, brentq, golden, newton, root

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
