"""rune.scipy.optimize: minima, least squares and roots, as loops that work under jit and vmap.

minimize       BFGS, L-BFGS, Newton-CG, Nelder-Mead      least_squares  Levenberg-Marquardt
brentq, bisect, newton, golden   of one number           root           of systems
"""

from rune.scipy.optimize.minimizers import LeastSquaresResults, least_squares, minimize
from rune.scipy.optimize.results import OptimizeResults, RootResults
from rune.scipy.optimize.roots import bisect, brentq, golden, newton, root
