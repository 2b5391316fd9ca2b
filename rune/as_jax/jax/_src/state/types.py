"""`jax._src.state.types`: the type of a reference (Flax nnx)."""

from rune.as_jax.reference_types import AbstractRef as AbstractRef
