"""`jax`."""

from jax import (
    ad_checkpoint,
    core,
    debug,
    dlpack,
    dtypes,
    errors,
    experimental,
    extend,
    flatten_util,
    image,
    interpreters,
    lax,
    monitoring,
    nn,
    numpy,
    ops,
    profiler,
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
