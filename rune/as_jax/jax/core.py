"""`jax.core`."""
