"""`jax.experimental.hijax`: operations on user-defined types, base classes for Flax nnx.

Only `nnx.use_hijax(True)` uses them, which is off by default. Classes can derive from these, but
binding such a primitive or registering a type raises an error with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from rune import absent
from rune.as_jax.avals import AbstractValue
from rune.as_jax.zeros import UndefinedPrimal, Zero, instantiate_zeros, is_undefined_primal
from rune.errors import ArgumentError

HINT = "leave nnx.use_hijax off: a Variable is then a tree of its arrays"
T = TypeVar("T")


class HiPrimitive:
    """A primitive over user-defined types; it cannot be bound."""

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: object, **params: object) -> NoReturn:
        """Errors: ArgumentError, always."""
        raise ArgumentError(f"{self.name}: cannot bind a primitive of hijax (rune has array types only)", HINT)


class MutableHiType:
    """A user-defined type with mutable values."""


class AvalQDD:
    """A type together with what is known about its value while tracing."""


class AvalMutableQDD:
    """The same, for a mutable value."""


class _Effects:
    """The effects that loops and branches may have."""

    def add_type(self, effect: type) -> None:
        """Does nothing, because no equation of rune has such an effect."""


control_flow_allowed_effects = _Effects()


def register_hitype(cls: type, typeof: Callable[[Any], object]) -> None:
    """Accept Flax's class without effect, because Flax registers it on import.

    Errors: ArgumentError for any other class.
    """
    if not cls.__module__.startswith("flax."):
        raise ArgumentError(
            f"register_hitype: cannot register {cls.__name__} (rune traces no user-defined types)",
            hint="jax.tree_util.register_pytree_node registers a class as a tree of arrays",
        )


def aval_property(fget: Callable[[Any], T]) -> property:
    """A property of a type."""
    return property(fget)


def aval_method(method: T) -> T:
    """A method of a type."""
    return method


__getattr__ = absent.of(__name__)
