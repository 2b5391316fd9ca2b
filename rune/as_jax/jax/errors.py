"""`jax.errors`."""

from rune.errors import *
