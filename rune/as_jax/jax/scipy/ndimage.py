"""`jax.scipy.ndimage`."""

from rune import absent
from rune.scipy.ndimage import *

__getattr__ = absent.of(__name__)
