"""`jax.experimental.pallas.triton`: kernels for Triton, refused name by name."""

from rune import absent

__getattr__ = absent.of("jax.experimental.pallas.triton")
