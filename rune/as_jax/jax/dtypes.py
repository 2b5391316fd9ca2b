"""`jax.dtypes`: JAX's names for dtypes, including those of keys."""

from rune import absent
from rune.dtypes import canonicalize_dtype, extended, float0, issubdtype, itemsize_bits, prng_key, scalar_type_of
from rune.errors import PromotionError as TypePromotionError
from rune.numpy import bfloat16, finfo, iinfo, result_type

__getattr__ = absent.of(__name__)
