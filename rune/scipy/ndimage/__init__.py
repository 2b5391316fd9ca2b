"""rune.scipy.ndimage: filters of arrays of any rank, and values between their elements.

filters     correlate, convolve, gaussian_filter, sobel, maximum_filter, …
resampling  map_coordinates, affine_transform, shift, zoom, rotate, of order 0 and 1
"""

import typing as _typing

from rune.absent import of as _absent
from rune.scipy.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    laplace,
    maximum_filter,
    median_filter,
    minimum_filter,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from rune.scipy.ndimage.gaussian import (
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
)
from rune.scipy.ndimage.resampling import affine_transform, map_coordinates, rotate, shift, zoom

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
