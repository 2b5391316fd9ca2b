"""`jax.experimental.sparse`."""

from jax.experimental.sparse import ad, api, bcoo, bcsr, coo, csr, linalg, random, transform, util

from rune import absent
from rune.sparse import *
from rune.sparse import Sparse as JAXSparse

__getattr__ = absent.of(__name__)
