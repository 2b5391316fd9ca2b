"""`jax.experimental.sparse`: BCOO, and what computes with it; other formats are not here."""

from rune import absent
from rune.sparse import *

__getattr__ = absent.of(__name__)
