"""`jax.dtypes`: dtypes as JAX knows them, keys among them."""

from rune.dtypes import extended, float0, issubdtype, prng_key
from rune.numpy import bfloat16, finfo, iinfo, result_type
