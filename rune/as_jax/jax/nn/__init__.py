"""`jax.nn`."""

from jax.nn import initializers

from rune import absent
from rune.nn import *

__getattr__ = absent.of(__name__)
