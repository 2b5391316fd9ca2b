"""`jax.extend`."""

from jax.extend import core, linear_util

from rune import absent

__getattr__ = absent.of(__name__)
