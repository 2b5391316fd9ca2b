"""`jax.interpreters.xla`: XLA's, and so refused name by name."""

from rune import absent
from rune.as_jax.array_classes import canonicalize_dtype_handlers

__getattr__ = absent.of(__name__)
