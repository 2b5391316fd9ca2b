"""`jax._src.array`: the class of arrays that have values."""

from rune.array import Array as ArrayImpl
