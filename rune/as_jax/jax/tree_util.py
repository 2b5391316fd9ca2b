"""`jax.tree_util`."""

from rune import absent
from rune.tree_util import *

__getattr__ = absent.of(__name__)
