"""`jax.typing`."""

from rune.typing import *
