"""`jax.image`."""

from rune import absent
from rune.image import *

__getattr__ = absent.of(__name__)
