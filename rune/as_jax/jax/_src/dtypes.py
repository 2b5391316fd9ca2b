"""`jax._src.dtypes`: the names of `jax.dtypes` (qujax), the base class of Flax's own dtypes
(linen's fp8_ops), and the complex dtype of tinygp's roots of polynomials."""

from __future__ import annotations

import numpy as np
from jax.dtypes import (
    bfloat16,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)

from rune import absent, dtypes
from rune.errors import DtypeError as TypePromotionError  # Equinox catches it under this name
from rune.numpy import promote_types

DType = np.dtype


class ExtendedDType:
    """A dtype whose own rules define how it is stored. Rune's arrays cannot have one."""


def to_inexact_dtype(dtype: object) -> np.dtype:
    """The dtype itself if it is inexact; the floating dtype for integers otherwise."""
    named = dtypes.named(dtype)
    return named if dtypes.issubdtype(named, np.inexact) else dtypes.default_float(named)


def to_complex_dtype(dtype: object) -> np.dtype:
    """complex128 for dtypes of 64 bits, else complex64."""
    return dtypes.c128 if to_inexact_dtype(dtype) in (dtypes.f64, dtypes.c128) else dtypes.c64


__getattr__ = absent.of(__name__)
