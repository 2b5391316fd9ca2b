"""`jax.scipy.optimize`."""

from rune import absent
from rune.scipy.optimize import *

__getattr__ = absent.of(__name__)
