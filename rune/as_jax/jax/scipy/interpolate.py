"""`jax.scipy.interpolate`."""

from rune import absent
from rune.scipy.interpolate import *

__getattr__ = absent.of(__name__)
