"""`jax.ops`."""
