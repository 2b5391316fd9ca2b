"""`jax._src`: JAX's private modules that libraries import, with the names that they use."""

from rune.as_jax.stand_ins import submodules_of

__getattr__ = submodules_of(__name__)
