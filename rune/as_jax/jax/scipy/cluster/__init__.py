"""`jax.scipy.cluster`."""

from rune import absent
from rune.scipy.cluster import *

__getattr__ = absent.of(__name__)
