"""`jax.scipy.fft`."""

from rune import absent
from rune.scipy.fft import *

__getattr__ = absent.of(__name__)
