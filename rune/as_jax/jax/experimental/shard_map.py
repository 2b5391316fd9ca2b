"""`jax.experimental.shard_map`."""
