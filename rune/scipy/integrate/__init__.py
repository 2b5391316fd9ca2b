"""rune.scipy.integrate: integrals of samples and functions, and differential equations.

sums      trapezoid, cumulative_trapezoid, simpson, quad      odeint    at given times, under jit
solve_ivp every step, from Python
"""

import typing as _typing

from rune.absent import of as _absent
from rune.scipy.integrate.initial_values import OdeResult, OdeSolution, solve_ivp
from rune.scipy.integrate.odes_with_adjoint import odeint
from rune.scipy.integrate.sums import cumulative_trapezoid, quad, simpson, trapezoid

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
