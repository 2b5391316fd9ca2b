"""`jax.scipy.spatial.transform`."""

from rune import absent
from rune.scipy.spatial.transform import *

__getattr__ = absent.of(__name__)
