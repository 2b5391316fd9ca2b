"""`jax._src.config`: the configuration, and its options by their names there."""

from jax import config, default_matmul_precision, disable_jit, enable_x64, numpy_dtype_promotion, numpy_rank_promotion
