"""`jax._src.dispatch`: Equinox waits for what is printed."""

from jax import effects_barrier as wait_for_tokens
