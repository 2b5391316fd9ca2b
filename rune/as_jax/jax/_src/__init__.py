"""`jax._src`: modules of the inside of JAX that libraries import, with what they take from them."""

from jax._src import xla_bridge  # Chex finds it by attribute alone
