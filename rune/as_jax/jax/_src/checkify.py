"""`jax._src.checkify`: the names that Flax nnx imports."""

from jax.experimental.checkify import *
