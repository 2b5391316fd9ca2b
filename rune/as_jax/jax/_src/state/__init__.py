"""`jax._src.state`: its modules."""

from rune.as_jax.stand_ins import submodules_of

__getattr__ = submodules_of(__name__)
