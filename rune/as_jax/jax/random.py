"""`jax.random`."""

from collections.abc import Callable
from functools import wraps
from typing import Never

from rune import absent, random
from rune.array import Array
from rune.as_jax import flags
from rune.random import *
from rune.random.sampler import Sampler
from rune.typing import ArrayLike

__getattr__ = absent.of(__name__)


def _as_function(sampler: Sampler) -> Callable[..., Array]:
    """A sampler as a plain function, as in JAX: SCICO asks for functions, and they pickle."""

    @wraps(sampler)
    def draw(*args: object, **kwargs: Never) -> Array:
        return sampler(*args, **kwargs)

    draw.__module__, draw.__qualname__ = __name__, draw.__name__
    return draw


globals().update({name: _as_function(x) for name, x in vars(random).items() if isinstance(x, Sampler)})


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A key as its words; a typed one where the option `jax_enable_custom_prng` is on.

    Shapes: seed int[] -> u32[2], or key[].
    Errors: those of rune.random.PRNGKey, or of rune.random.key.
    """
    make = random.key if flags.value_of("jax_enable_custom_prng") else random.PRNGKey
    return make(seed, impl=impl)
