"""`jax.lib`."""
