"""`jax.experimental.checkify`."""

from rune import absent
from rune.checkify import *

__getattr__ = absent.of(__name__)
