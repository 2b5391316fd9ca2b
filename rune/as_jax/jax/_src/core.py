"""`jax._src.core`: the names of `jax.core` and `jax.extend.core` (NumPyro, Flax, JAX MD)."""

from jax.core import *
from jax.core import get_aval, get_opaque_trace_state
from jax.extend.core import Primitive

from rune.as_jax.jaxprs import subjaxprs, trace_state_clean
from rune.as_jax.stand_ins import names_of

__getattr__ = names_of(__name__, "jax.extend.core")
