"""`jax.version`: the version of JAX that rune stands in for."""

from rune.as_jax.stand_ins import VERSION as __version__

__version_info__ = (0, 10, 2)
