"""`jax.scipy.cluster.vq`."""

from rune import absent
from rune.scipy.cluster.vq import *

__getattr__ = absent.of(__name__)
