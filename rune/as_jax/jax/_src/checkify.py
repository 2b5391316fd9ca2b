"""`jax._src.checkify`: what Flax nnx takes."""

from jax.experimental.checkify import *
