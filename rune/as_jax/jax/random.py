"""`jax.random`."""

from rune import absent
from rune.random import *

__getattr__ = absent.of(__name__)
