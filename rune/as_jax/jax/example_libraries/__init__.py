"""`jax.example_libraries`."""

from jax.example_libraries import optimizers, stax
