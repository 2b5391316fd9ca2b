"""rune.scipy.interpolate: functions through given values, as trees that may be traced.

piecewise  PPoly, CubicSpline, CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator
bsplines   BSpline, make_interp_spline
points     interp1d, RegularGridInterpolator, BarycentricInterpolator
"""

import typing as _typing

from rune.absent import of as _absent
from rune.scipy.interpolate.bsplines import BSpline, make_interp_spline
from rune.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
)
from rune.scipy.interpolate.points import (
    BarycentricInterpolator,
    RegularGridInterpolator,
    barycentric_interpolate,
    interp1d,
)

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
