"""`jax.scipy.sparse.linalg`."""

from rune import absent
from rune.scipy.sparse.linalg import *

__getattr__ = absent.of(__name__)
