"""`jax.nn.initializers`."""

from rune import absent
from rune.nn.initializers import *

__getattr__ = absent.of(__name__)
