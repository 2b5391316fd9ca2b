"""rune.scipy.optimize: minima, least squares and roots, as loops that work under jit and vmap.

minimize       BFGS, L-BFGS, Newton-CG, Nelder-Mead      least_squares  Levenberg-Marquardt
brentq, bisect, newton, golden   of one number           root           of systems
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.optimize.minimizers import LeastSquaresResults as LeastSquaresResults
from rune.scipy.optimize.minimizers import least_squares as least_squares
from rune.scipy.optimize.minimizers import minimize as minimize
from rune.scipy.optimize.results import OptimizeResults as OptimizeResults
from rune.scipy.optimize.results import RootResults as RootResults
from rune.scipy.optimize.roots import bisect as bisect
from rune.scipy.optimize.roots import brentq as brentq
from rune.scipy.optimize.roots import golden as golden
from rune.scipy.optimize.roots import newton as newton
from rune.scipy.optimize.roots import root as root

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
