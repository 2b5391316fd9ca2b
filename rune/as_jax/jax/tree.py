"""`jax.tree`."""

from rune import absent
from rune.tree import *

__getattr__ = absent.of(__name__)
