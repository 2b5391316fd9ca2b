"""`jax.numpy.linalg`."""

from rune import absent
from rune.numpy.linalg import *

__getattr__ = absent.of(__name__)
