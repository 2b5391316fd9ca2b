"""`jaxlib.version`."""

from rune.as_jax.stand_ins import VERSION as __version__
