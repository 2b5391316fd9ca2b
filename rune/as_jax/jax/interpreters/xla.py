"""`jax.interpreters.xla`: it belongs to XLA, so most names raise an error."""

from functools import partial

from rune import absent
from rune.as_jax.array_classes import canonicalize_dtype_handlers
from rune.as_jax.primitive import Primitive
from rune.transforms.compile.jit import jit


def apply_primitive(prim: Primitive, *args: object, **params: object) -> object:
    """The result of a primitive on its own, compiled: what its `def_impl` may be set to."""
    return jit(partial(prim.bind, **params))(*args)


__getattr__ = absent.of(__name__)
