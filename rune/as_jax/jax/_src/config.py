"""`jax._src.config`: the configuration, and options under their private names."""

from jax import config, default_matmul_precision, enable_x64, numpy_dtype_promotion, numpy_rank_promotion

from rune.as_jax.flags import State

disable_jit = State("jax_disable_jit")
