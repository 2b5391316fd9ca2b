"""`jax.interpreters`."""
