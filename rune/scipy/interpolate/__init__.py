"""rune.scipy.interpolate: functions through given values, as trees whose leaves may be traced.

piecewise  PPoly, CubicSpline, CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator
bsplines   BSpline, make_interp_spline
points     interp1d, RegularGridInterpolator, BarycentricInterpolator
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.interpolate.bsplines import BSpline as BSpline
from rune.scipy.interpolate.bsplines import make_interp_spline as make_interp_spline
from rune.scipy.interpolate.piecewise import Akima1DInterpolator as Akima1DInterpolator
from rune.scipy.interpolate.piecewise import CubicHermiteSpline as CubicHermiteSpline
from rune.scipy.interpolate.piecewise import CubicSpline as CubicSpline
from rune.scipy.interpolate.piecewise import PchipInterpolator as PchipInterpolator
from rune.scipy.interpolate.piecewise import PPoly as PPoly
from rune.scipy.interpolate.points import BarycentricInterpolator as BarycentricInterpolator
from rune.scipy.interpolate.points import RegularGridInterpolator as RegularGridInterpolator
from rune.scipy.interpolate.points import barycentric_interpolate as barycentric_interpolate
from rune.scipy.interpolate.points import interp1d as interp1d

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
