"""`jax.lax.linalg`."""

from jax.extend.core.primitives import *

from rune import absent
from rune.lax.linalg import *

__getattr__ = absent.of(__name__)
