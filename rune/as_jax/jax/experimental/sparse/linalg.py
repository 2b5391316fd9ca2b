"""`jax.experimental.sparse.linalg`."""

from rune import absent
from rune.sparse.linalg import *
from rune.sparse.linalg import __all__

__getattr__ = absent.of(__name__)
