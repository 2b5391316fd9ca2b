"""`jax.numpy`."""

from jax.numpy import fft, linalg

# Flax names these two when it is imported; an array of them is refused.
from ml_dtypes import float8_e4m3fnuz, float8_e5m2fnuz

from rune import absent
from rune.numpy import *

from rune.as_jax.sizes import ndim, reshape, shape, size  # isort: skip  # also of lists, with a warning

from rune import Array as ndarray  # isort: skip  # one class, as in JAX

from numpy import dtype  # isort: skip  # a class, which annotations name (Diffrax)

__getattr__ = absent.of(__name__)
