"""`jax.numpy.fft`."""

from rune import absent
from rune.numpy.fft import *

__getattr__ = absent.of(__name__)
