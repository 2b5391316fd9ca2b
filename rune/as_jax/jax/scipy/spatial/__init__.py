"""`jax.scipy.spatial`."""

from rune import absent
from rune.scipy.spatial import *

__getattr__ = absent.of(__name__)
