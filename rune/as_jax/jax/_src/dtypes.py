"""`jax._src.dtypes`: user-defined dtypes, of which Flax derives a class (linen's fp8_ops)."""

from __future__ import annotations

import numpy as np
from jax.dtypes import extended

from rune import absent
from rune.errors import DtypeError as TypePromotionError  # Equinox catches it under this name
from rune.numpy import finfo

DType = np.dtype


class ExtendedDType:
    """A dtype whose own rules define how it is stored. Rune's arrays cannot have one."""


__getattr__ = absent.of(__name__)
