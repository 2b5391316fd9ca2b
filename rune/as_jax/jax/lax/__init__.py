"""`jax.lax`."""

from jax.extend.core.primitives import *
from jax.lax import linalg

from rune import absent
from rune.as_jax.platforms import composite, platform_dependent
from rune.lax import *

__getattr__ = absent.of(__name__)
