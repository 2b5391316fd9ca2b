"""`jax.extend`."""

from jax.extend import core, linear_util
