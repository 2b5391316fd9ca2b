"""`jax.experimental.pallas`: a kernel language; each name raises an error (JAX MD imports it)."""

from rune import absent

__getattr__ = absent.of("jax.experimental.pallas")
