"""`jax.scipy.special`."""

from rune import absent
from rune.as_jax.legendre import lpmn_values as lpmn_values
from rune.scipy.special import *

__getattr__ = absent.of(__name__)
