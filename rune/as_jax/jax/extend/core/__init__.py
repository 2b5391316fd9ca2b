"""`jax.extend.core`."""

from __future__ import annotations

from jax.extend.core import primitives

from rune import absent
from rune.as_jax.avals import mapped_aval, unmapped_aval
from rune.as_jax.primitive import Primitive, no_effects
from rune.as_jax.traces import TraceTag, find_top_trace, set_current_trace, take_current_trace

__getattr__ = absent.of("jax.extend.core")
