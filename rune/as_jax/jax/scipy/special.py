"""`jax.scipy.special`."""

from rune import absent
from rune.scipy.special import *

__getattr__ = absent.of(__name__)
