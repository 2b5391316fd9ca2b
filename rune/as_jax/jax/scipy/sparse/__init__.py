"""`jax.scipy.sparse`."""

from jax.scipy.sparse import linalg
