"""`jax.ops`."""

from rune import absent
from rune.ops.segments import segment_max, segment_min, segment_prod, segment_sum

__getattr__ = absent.of(__name__)
