"""What JAX's rules receive in place of values: symbolic zeros, and unknown linear inputs."""

from __future__ import annotations

from typing import Any

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.types import ArrayType, Shape
from rune.records import dataclass
from rune.transforms.derivatives.tangents import float0_zeros, zeros
from rune.tree_util import register_pytree_node


class Zero:
    """A tangent or cotangent of type `aval` that is known to be zero."""

    __slots__ = ("aval",)

    def __init__(self, aval: ArrayType):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the zeros."""
        return self.aval.dtype

    def instantiate(self) -> Any:
        """The zeros as an array."""
        return zeros_like_aval(self.aval)

    @staticmethod
    def from_primal_value(value: Any) -> Zero:
        """The zero tangent of a value."""
        return tangent_zero(type_of(value))


# A node without leaves, so that vmap accepts it with any batch size (Equinox).
register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, leaves: Zero(aval))


@dataclass(frozen=True, slots=True)
class UndefinedPrimal:
    """A linear input of the transposed operation: only its type is known."""

    aval: ArrayType


def is_undefined_primal(value: object) -> bool:
    """Whether an input of a transpose rule is linear."""
    return type(value) is UndefinedPrimal


def tangent_zero(type: ArrayType) -> Zero:
    """The zero tangent of a value of this type."""
    return Zero(type.to_tangent())


def zeros_like_aval(aval: ArrayType) -> Any:
    """An array of zeros of this type, which may be float0."""
    return float0_zeros(aval) if aval.dtype == dtypes.float0 else zeros(aval)


def instantiate_zeros(value: Any) -> Any:
    """The value; for a symbolic zero, an array of zeros."""
    return value.instantiate() if isinstance(value, Zero) else value


def value_or_none(tangent: Any) -> Any:
    """A tangent in rune's convention: None for a zero, and for float0."""
    if tangent is None or isinstance(tangent, Zero) or tangent is Zero:
        return None
    return None if type_of(tangent).dtype == dtypes.float0 else tangent
