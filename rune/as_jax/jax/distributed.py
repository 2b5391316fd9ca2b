"""`jax.distributed`."""

from rune import absent
from rune.distributed import initialize, is_initialized, shutdown

__getattr__ = absent.of(__name__)
