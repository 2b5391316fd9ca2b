"""`jax.lax.linalg`."""

from rune import absent
from rune.lax.linalg import *

__getattr__ = absent.of("rune.lax.linalg")
