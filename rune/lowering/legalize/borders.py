"""Values of two parts, and how they enter and leave a program: interleaved in memory, or apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rune import dtypes
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.lowering.legalize.interleaved import interleave, part
from rune.lowering.legalize.pairs import PART, has_parts
from rune.ops.family import fit
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Parts:
    """A value of two parts, real and imaginary or the words of keys, each of the whole shape or of
    rank 0, and the array itself if it is in memory."""

    type: ArrayType
    first: Value
    second: Value
    # An array that passes through unchanged stays as it is, without being split and joined.
    array: Value | None = None

    @property
    def pair(self) -> tuple[Value, Value]:
        """Both parts, each in the shape that it has."""
        return self.first, self.second

    def full(self) -> tuple[Any, Any]:
        """Both parts, of the whole shape."""
        return fit(self.first, self.type.shape), fit(self.second, self.type.shape)

    def interleaved(self) -> Value:
        """The array as it lies in memory."""
        if self.array is not None:
            return self.array
        return interleave(*self.full(), axis=self.type.ndim)


def stored_type(type: ArrayType) -> ArrayType:
    """The type in memory: an array of pairs has its parts side by side along a last axis."""
    if not has_parts(type):
        return type
    return ArrayType((*type.shape, 2), PART[type.dtype], type.weak)


@dataclass(frozen=True, slots=True)
class Border:
    """How values enter a program and leave it: interleaved in memory, or as two parts."""

    is_apart: Callable[[ArrayType], bool]

    def types(self, type: ArrayType) -> list[ArrayType]:
        """The types of the one or two arrays that represent a value at the border."""
        if self.is_apart(type):
            return [type.with_dtype(PART[type.dtype])] * 2
        return [stored_type(type)]

    def enter(self, type: ArrayType, crossing: Iterator[Value]) -> Value | Parts:
        """The value that the next one or two arrays represent."""
        if self.is_apart(type):
            return Parts(type, next(crossing), next(crossing))
        return from_memory(type, next(crossing))

    def leave(self, values: Iterable[Value | Parts]) -> list[Value]:
        """The arrays that represent values at the border."""
        crossing: list[Any] = []
        for x in values:
            crossing += x.full() if isinstance(x, Parts) and self.is_apart(x.type) else [to_memory(x)]
        return crossing


# Callers pass and receive arrays as they lie in memory.
AROUND = Border(lambda type: False)
# The words of one key stay apart from step to step, because a kernel that writes them side by side
# would compute each of them twice.
WITHIN = Border(lambda type: type.dtype in dtypes.KEYS and not type.shape)


def from_memory(type: ArrayType, value: Value) -> Value | Parts:
    """A value of this type, given as it lies in memory."""
    return Parts(type, *with_parts(value, type.ndim)) if has_parts(type) else value


def to_memory(value: Value | Parts) -> Any:
    """The array that holds a value in memory."""
    return value.interleaved() if isinstance(value, Parts) else value


def with_parts(array: Value, axis: int) -> tuple[Value, Value, Value]:
    """Both parts of an array that holds them along an axis, and the array itself."""
    real, imag = (part(array, number=k, axis=axis) for k in (0, 1))
    return real, imag, array
