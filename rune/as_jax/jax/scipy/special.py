"""`jax.scipy.special`."""

from rune import absent
from rune.scipy.special import *

__getattr__ = absent.of("rune.scipy.special")
