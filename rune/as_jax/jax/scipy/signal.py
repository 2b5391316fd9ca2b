"""`jax.scipy.signal`."""

from rune import absent
from rune.scipy.signal import *

__getattr__ = absent.of(__name__)
