"""`jax.core`."""

from rune.as_jax.avals import AbstractValue, ShapedArray
