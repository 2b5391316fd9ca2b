"""`jax.test_util`."""

from rune.test_util import *
