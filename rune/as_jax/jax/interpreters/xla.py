"""`jax.interpreters.xla`: it belongs to XLA, so most names raise an error."""

from rune import absent
from rune.as_jax.array_classes import canonicalize_dtype_handlers

__getattr__ = absent.of(__name__)
