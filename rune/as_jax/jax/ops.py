"""`jax.ops`."""

from rune.ops import segment_max, segment_min, segment_prod, segment_sum
