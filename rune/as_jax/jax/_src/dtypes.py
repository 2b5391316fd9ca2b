"""`jax._src.dtypes`: dtypes of one's own, which Flax derives a class from (linen's fp8_ops)."""

from __future__ import annotations

import numpy as np
from jax.dtypes import extended

from rune import absent
from rune.errors import DtypeError as TypePromotionError  # which Equinox catches
from rune.numpy import finfo

DType = np.dtype


class ExtendedDType:
    """A dtype that says by rules of its own how it is stored. No array of rune can have one."""


__getattr__ = absent.of(__name__)
