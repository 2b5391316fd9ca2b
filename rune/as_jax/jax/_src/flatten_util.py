"""`jax._src.flatten_util`: BlackJAX takes `ravel_pytree` from here."""

from rune.flatten_util import ravel_pytree
