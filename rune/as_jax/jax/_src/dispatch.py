"""`jax._src.dispatch`: Equinox waits for pending prints."""

from jax import effects_barrier as wait_for_tokens
