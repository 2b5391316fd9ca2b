"""`jax.interpreters`."""

from jax.interpreters import ad, batching, mlir, partial_eval, pxla, xla
