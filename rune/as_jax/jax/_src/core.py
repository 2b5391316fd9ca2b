"""`jax._src.core`: the names of `jax.core` and `jax.extend.core` (NumPyro, Flax, saiunit)."""

import operator
from typing import SupportsIndex

from jax.core import *
from jax.core import get_aval, get_opaque_trace_state
from jax.extend.core import Primitive

from rune.as_jax.jaxprs import subjaxprs, trace_state_clean
from rune.as_jax.stand_ins import names_of
from rune.errors import DimensionError


def is_constant_dim(d: object) -> bool:
    """Whether a size is a number: not a symbolic or traced one."""
    if not isinstance(d, SupportsIndex):
        return False
    try:
        operator.index(d)
    except (TypeError, DimensionError):
        return False
    return True


__getattr__ = names_of(__name__, "jax.extend.core")
