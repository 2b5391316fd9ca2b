"""`jax.experimental.pjit`: since JAX 0.4 it is jit."""

from rune import jit as pjit

__all__ = ["pjit"]
