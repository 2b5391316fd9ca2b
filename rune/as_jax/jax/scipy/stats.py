"""`jax.scipy.stats`."""

from rune import absent
from rune.scipy.stats import *

__getattr__ = absent.of("rune.scipy.stats")
