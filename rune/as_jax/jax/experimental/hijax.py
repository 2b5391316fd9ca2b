"""`jax.experimental.hijax`: operations on types of one's own, which Flax nnx derives classes from.

They serve `nnx.use_hijax(True)` alone, which is off unless it is asked for. The classes can be
derived from; whoever binds such a primitive or registers a type reads why it cannot be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from rune import absent
from rune.as_jax.avals import AbstractValue
from rune.as_jax.zeros import UndefinedPrimal, Zero, instantiate_zeros, is_undefined_primal
from rune.errors import ArgumentError

HINT = "leave nnx.use_hijax off: a Variable is then the tree that it holds"
T = TypeVar("T")


class HiPrimitive:
    """A primitive over types of one's own; it cannot be bound."""

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: object, **params: object) -> NoReturn:
        """Errors: ArgumentError, always."""
        raise ArgumentError(f"{self.name}: cannot bind a primitive of hijax (rune has no types but arrays)", HINT)


class MutableHiType:
    """A type of one's own, whose values can be written to."""


class AvalQDD:
    """A type together with what is known of its value while tracing."""


class AvalMutableQDD:
    """The same, for a value that is written to."""


class _Effects:
    """The effects that loops and branches may have: all that rune knows of."""

    def add_type(self, effect: type) -> None:
        """Nothing changes: no equation of rune has such an effect."""


control_flow_allowed_effects = _Effects()


def register_hitype(cls: type, typeof: Callable[[Any], object]) -> None:
    """Refused, but for Flax's class, which is registered on import: no operation takes one.

    Errors: ArgumentError for any other class.
    """
    if not cls.__module__.startswith("flax."):
        raise ArgumentError(
            f"register_hitype: cannot register {cls.__name__} (types of one's own in traces are JAX's alone)",
            hint="jax.tree_util.register_pytree_node makes a class a tree of arrays",
        )


def aval_property(fget: Callable[[Any], T]) -> property:
    """A property of a type."""
    return property(fget)


def aval_method(method: T) -> T:
    """A method of a type."""
    return method


__getattr__ = absent.of(__name__)
