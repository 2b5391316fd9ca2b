"""`jax.experimental`."""

from rune import io_callback
