"""`jax.tree`."""

from rune import absent
from rune.tree import *

__getattr__ = absent.of("rune.tree")
