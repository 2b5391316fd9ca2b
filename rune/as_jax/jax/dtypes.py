"""`jax.dtypes`."""
