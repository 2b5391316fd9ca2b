"""`jax.numpy`."""

from jax.numpy import fft, linalg

from rune import absent
from rune.numpy import *

__getattr__ = absent.of(__name__)
