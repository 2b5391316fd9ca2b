"""`jax._src.pjit`: the primitive of a jitted call (jaxns, Oryx, PennyLane), and jit itself."""

from jax.experimental.pjit import pjit
from jax.extend.core.primitives import RECORDS
from jax.sharding import auto_axes, explicit_axes, reshard

from rune import absent, jit
from rune.lax import with_sharding_constraint

__getattr__ = absent.of(__name__)
jit_p = pjit_p = RECORDS["jit_p"]
