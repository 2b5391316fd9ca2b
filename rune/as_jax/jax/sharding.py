"""`jax.sharding`."""

from rune import absent
from rune.sharding import *

__getattr__ = absent.of("rune.sharding")
