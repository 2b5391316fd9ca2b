"""`jax._src`: modules of the inside of JAX that libraries import, with what they take from them."""

from rune.as_jax.stand_ins import submodules_of

__getattr__ = submodules_of(__name__)
