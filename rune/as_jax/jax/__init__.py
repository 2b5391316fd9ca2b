"""`jax`."""

from jax import (
    core,
    debug,
    dtypes,
    errors,
    experimental,
    extend,
    interpreters,
    lax,
    nn,
    numpy,
    ops,
    random,
    scipy,
    sharding,
    tree,
    tree_util,
    typing,
)
from jax.version import __version__, __version_info__

from rune import *
from rune import absent

__getattr__ = absent.of("rune")
