"""`jax.ref`."""

from rune import absent
from rune.ref import *

__getattr__ = absent.of("rune.ref")
