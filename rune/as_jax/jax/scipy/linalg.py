"""`jax.scipy.linalg`."""

from rune import absent
from rune.scipy.linalg import *

__getattr__ = absent.of(__name__)
