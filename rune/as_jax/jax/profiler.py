"""`jax.profiler`."""

from rune import absent
from rune.profiler import *

__getattr__ = absent.of(__name__)
