"""`jax.lax`."""

from jax.extend.core.primitives import *
from jax.lax import linalg

from rune import absent
from rune.lax import *

__getattr__ = absent.of("rune.lax")
