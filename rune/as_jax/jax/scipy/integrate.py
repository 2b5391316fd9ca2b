"""`jax.scipy.integrate`."""

from rune import absent
from rune.scipy.integrate import *

__getattr__ = absent.of(__name__)
