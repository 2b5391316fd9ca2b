"""`jax.random`."""

from rune import absent, random
from rune.array import Array
from rune.as_jax import flags
from rune.random import *
from rune.typing import ArrayLike

__getattr__ = absent.of(__name__)


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A key as its words; a typed one where the option `jax_enable_custom_prng` is on.

    Shapes: seed int[] -> u32[2], or key[].
    Errors: those of rune.random.PRNGKey, or of rune.random.key.
    """
    make = random.key if flags.value_of("jax_enable_custom_prng") else random.PRNGKey
    return make(seed, impl=impl)
