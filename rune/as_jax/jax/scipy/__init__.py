"""`jax.scipy`."""

from jax.scipy import (
    cluster,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    sparse,
    spatial,
    special,
    stats,
)

from rune import absent

__getattr__ = absent.of(__name__)
