"""`jax.flatten_util`."""

from rune.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]
