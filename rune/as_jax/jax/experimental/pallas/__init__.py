"""`jax.experimental.pallas`: a language of kernels, refused name by name (JAX MD imports it)."""

from rune import absent

__getattr__ = absent.of("jax.experimental.pallas")
