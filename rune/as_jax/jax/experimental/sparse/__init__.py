"""`jax.experimental.sparse`."""

from jax.experimental.sparse import linalg

from rune import absent
from rune.sparse import *
from rune.sparse import Sparse as JAXSparse

__getattr__ = absent.of(__name__)
