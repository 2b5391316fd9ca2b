"""`jax._src.array`: the class of concrete arrays (Levanter), and public names."""

from rune.array import Array as ArrayImpl
from rune.as_jax.stand_ins import names_of

__getattr__ = names_of(__name__, "jax")
