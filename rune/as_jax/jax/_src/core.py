"""`jax._src.core`: what libraries take from it (NumPyro, Flax, JAX MD)."""

from jax.core import *
from jax.core import get_aval, get_opaque_trace_state
from jax.extend.core import Primitive

from rune.as_jax.jaxprs import subjaxprs, trace_state_clean
