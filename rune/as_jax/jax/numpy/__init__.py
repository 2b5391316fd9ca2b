"""`jax.numpy`."""

from jax.numpy import fft, linalg

# Flax reads these two names on import; rune refuses arrays of these dtypes.
from ml_dtypes import float8_e4m3fnuz, float8_e5m2fnuz

from rune import absent
from rune.numpy import *

from rune.as_jax.sizes import ndim, reshape, shape, size  # isort: skip  # accept lists too, with a warning

# What libraries written against the array API standard ask for (SciPy, array-api-compat).
from rune.as_jax.standard import __array_api_version__, __array_namespace_info__  # isort: skip

from rune import Array as ndarray  # isort: skip  # one class, as in JAX

from numpy import dtype  # isort: skip  # the class, used in annotations (Diffrax)

__getattr__ = absent.of(__name__)
