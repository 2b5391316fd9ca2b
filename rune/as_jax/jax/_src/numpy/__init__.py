"""`jax._src.numpy`: the names of `jax.numpy`."""

from rune.as_jax.stand_ins import names_of

__getattr__ = names_of(__name__, "jax.numpy")
