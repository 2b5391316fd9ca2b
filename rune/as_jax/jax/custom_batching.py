"""`jax.custom_batching`."""

from rune import custom_vmap, sequential_vmap
