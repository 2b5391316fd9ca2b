"""`jax._src.flatten_util` (BlackJAX)."""

from jax.flatten_util import ravel_pytree
