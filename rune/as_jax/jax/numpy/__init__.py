"""`jax.numpy`."""

from jax.numpy import fft, linalg

from rune import absent
from rune.numpy import *

from numpy import dtype  # isort: skip  # a class, which annotations name (Diffrax)

__getattr__ = absent.of(__name__)
