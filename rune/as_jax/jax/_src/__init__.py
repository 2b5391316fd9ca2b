"""`jax._src`: modules of the inside of JAX that libraries import, with what they take from them."""
