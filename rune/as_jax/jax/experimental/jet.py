"""`jax.experimental.jet`."""

from functools import partial

from rune import jet

__all__ = ["jet", "jet2"]

jet2 = partial(jet, factorial_scaled=False)
