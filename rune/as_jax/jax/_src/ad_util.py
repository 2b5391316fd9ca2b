"""`jax._src.ad_util`: Lineax imports `stop_gradient_p`."""

from jax.extend.core.primitives import RECORDS

from rune.as_jax.zeros import Zero, instantiate_zeros

stop_gradient_p = RECORDS["stop_gradient_p"]
