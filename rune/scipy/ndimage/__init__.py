"""rune.scipy.ndimage: filters of arrays of any rank, and interpolation between their elements.

filters     correlate, convolve, gaussian_filter, sobel, maximum_filter, …
resampling  map_coordinates, affine_transform, shift, zoom, rotate, of order 0 and 1
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.ndimage.filters import convolve as convolve
from rune.scipy.ndimage.filters import convolve1d as convolve1d
from rune.scipy.ndimage.filters import correlate as correlate
from rune.scipy.ndimage.filters import correlate1d as correlate1d
from rune.scipy.ndimage.filters import laplace as laplace
from rune.scipy.ndimage.filters import maximum_filter as maximum_filter
from rune.scipy.ndimage.filters import median_filter as median_filter
from rune.scipy.ndimage.filters import minimum_filter as minimum_filter
from rune.scipy.ndimage.filters import prewitt as prewitt
from rune.scipy.ndimage.filters import sobel as sobel
from rune.scipy.ndimage.filters import uniform_filter as uniform_filter
from rune.scipy.ndimage.filters import uniform_filter1d as uniform_filter1d
from rune.scipy.ndimage.gaussian import gaussian_filter as gaussian_filter
from rune.scipy.ndimage.gaussian import gaussian_filter1d as gaussian_filter1d
from rune.scipy.ndimage.gaussian import gaussian_gradient_magnitude as gaussian_gradient_magnitude
from rune.scipy.ndimage.gaussian import gaussian_laplace as gaussian_laplace
from rune.scipy.ndimage.resampling import affine_transform as affine_transform
from rune.scipy.ndimage.resampling import map_coordinates as map_coordinates
from rune.scipy.ndimage.resampling import rotate as rotate
from rune.scipy.ndimage.resampling import shift as shift
from rune.scipy.ndimage.resampling import zoom as zoom

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
