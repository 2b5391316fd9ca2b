"""`jax._src.interpreters`: its modules, of which one has private names, and public names."""

from jax._src.interpreters import batching as batching

from rune.as_jax.stand_ins import names_of

__getattr__ = names_of(__name__, "jax.interpreters")
