"""`jax._src.core`: what libraries take from it (NumPyro, Flax)."""

from jax.core import *
from jax.core import get_aval, get_opaque_trace_state

from rune.as_jax.jaxprs import subjaxprs, trace_state_clean
