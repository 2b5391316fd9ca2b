"""`jax.random`."""

from collections.abc import Callable
from functools import wraps
from typing import Never

import numpy as np

import rune.numpy as rnp
from rune import absent, dtypes, random
from rune.array import Array
from rune.as_jax import flags
from rune.random import *
from rune.random.keys import KeyLike
from rune.random.sampler import Sampler
from rune.typing import ArrayLike

__getattr__ = absent.of(__name__)


def _as_function(sampler: Sampler) -> Callable[..., Array]:
    """A sampler as a plain function, as in JAX: SCICO requires functions, and functions pickle."""

    @wraps(sampler)
    def draw(*args: object, **kwargs: Never) -> Array:
        return sampler(*args, **kwargs)

    draw.__module__, draw.__qualname__ = __name__, draw.__name__
    return draw


globals().update({name: _as_function(x) for name, x in vars(random).items() if isinstance(x, Sampler)})


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A raw key; a typed one if the option `jax_enable_custom_prng` is on.

    Shapes: seed int[] -> u32[2], or key[].
    Errors: those of rune.random.PRNGKey, or of rune.random.key.
    """
    make = random.key if flags.value_of("jax_enable_custom_prng") else random.PRNGKey
    return make(seed, impl=impl)


def fold_in(key: KeyLike, data: ArrayLike) -> Array:
    """rune.random.fold_in; as in JAX, data may be a bool, or a float, which is truncated.

    Shapes: key [], data [] -> key [].
    Errors: those of rune.random.fold_in; TypeError for complex data, ValueError for NaN.
    """
    return random.fold_in(key, _as_integers(data))


def _as_integers(data: ArrayLike) -> ArrayLike:
    if isinstance(data, np.bool_ | np.floating) and not isinstance(data, float):
        return np.int64(data)  # a negative number counts as its low 32 bits, like an integer
    if isinstance(data, bool | float | complex):
        return int(data)  # pyright: ignore[reportArgumentType]  # raises TypeError for complex numbers, as in JAX
    is_whole = getattr(data, "dtype", dtypes.i32) in dtypes.INTEGER
    return data if is_whole else rnp.astype(rnp.asarray(data), rnp.uint32)
