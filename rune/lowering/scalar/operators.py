"""Operators of recorded scalars: each is an operation of the table, by its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

Plain = int | float
N = TypeVar("N")


class Operators(ABC, Generic[N]):
    """A scalar of a class N that defines `apply`; all operators follow from it.

    Python numbers become constants of the other side's dtype.
    """

    __slots__ = ()

    @abstractmethod
    def apply(self, name: str, *others: N | Plain) -> N:
        """An operation of the table on this number and others of its dtype."""

    @abstractmethod
    def swapped(self, name: str, other: Plain) -> N:
        """An operation on a Python number and this scalar, in this order."""

    def __add__(self, other: N | Plain) -> N:
        return self.apply("add", other)

    def __radd__(self, other: Plain) -> N:
        return self.swapped("add", other)

    def __sub__(self, other: N | Plain) -> N:
        return self.apply("sub", other)

    def __rsub__(self, other: Plain) -> N:
        return self.swapped("sub", other)

    def __mul__(self, other: N | Plain) -> N:
        return self.apply("mul", other)

    def __rmul__(self, other: Plain) -> N:
        return self.swapped("mul", other)

    def __truediv__(self, other: N | Plain) -> N:
        return self.apply("div", other)

    def __rtruediv__(self, other: Plain) -> N:
        return self.swapped("div", other)

    def __mod__(self, other: N) -> N:
        return self.apply("rem", other)

    def __neg__(self) -> N:
        return self.apply("neg")

    def __and__(self, other: N | int) -> N:
        return self.apply("and", other)

    def __or__(self, other: N | int) -> N:
        return self.apply("or", other)

    def __xor__(self, other: N | int) -> N:
        return self.apply("xor", other)

    def __invert__(self) -> N:
        return self.apply("not")

    def __lshift__(self, other: N | int) -> N:
        return self.apply(_shift("left", other), other)

    def __rshift__(self, other: N | int) -> N:
        return self.apply(_shift("right", other), other)

    def __lt__(self, other: N | Plain) -> N:
        return self.apply("lt", other)

    def __le__(self, other: N | Plain) -> N:
        return self.apply("le", other)

    def __gt__(self, other: N | Plain) -> N:
        return self.apply("gt", other)

    def __ge__(self, other: N | Plain) -> N:
        return self.apply("ge", other)

    def equals(self, other: N | Plain) -> N:
        """Equality; false if either is NaN."""
        return self.apply("eq", other)


def _shift(direction: str, amount: object) -> str:
    """The language's own shift for a Python number, which is below the width."""
    if isinstance(amount, int):
        return f"shift_{direction}"
    return {"left": "shl", "right": "shr"}[direction]
