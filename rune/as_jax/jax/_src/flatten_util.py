"""`jax._src.flatten_util`: BlackJAX imports `ravel_pytree` from it."""

from rune.flatten_util import ravel_pytree
