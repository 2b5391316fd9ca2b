"""`jax.experimental.jet`."""

from functools import partial

from rune import jet

jet2 = partial(jet, factorial_scaled=False)
