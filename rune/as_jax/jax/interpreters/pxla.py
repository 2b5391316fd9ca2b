"""`jax.interpreters.pxla`: it belongs to XLA, so each name raises an error."""

from rune import absent

__getattr__ = absent.of(__name__)
