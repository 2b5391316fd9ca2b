"""rune.scipy.integrate: integrals of samples and functions, and differential equations.

sums      trapezoid, cumulative_trapezoid, simpson, quad      odeint    at given times, under jit
solve_ivp every step, from Python
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.integrate.initial_values import OdeResult as OdeResult
from rune.scipy.integrate.initial_values import OdeSolution as OdeSolution
from rune.scipy.integrate.initial_values import solve_ivp as solve_ivp
from rune.scipy.integrate.odes_with_adjoint import odeint as odeint
from rune.scipy.integrate.sums import cumulative_trapezoid as cumulative_trapezoid
from rune.scipy.integrate.sums import quad as quad
from rune.scipy.integrate.sums import simpson as simpson
from rune.scipy.integrate.sums import trapezoid as trapezoid

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
