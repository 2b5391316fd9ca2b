"""Calls of primitives: their parameters, and operands whose values are drawn."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.primitive import Primitive
from rune.core.types import ArrayType


@dataclass(frozen=True)
class Operand:
    """Values to draw: within low..high, or for integers low..high inclusive."""

    shape: tuple[int, ...]
    dtype: np.dtype = dtypes.f64
    low: float = -2.0
    high: float = 2.0

    @property
    def type(self) -> ArrayType:
        return ArrayType(self.shape, self.dtype)

    def draw(self, rng: np.random.Generator, *lanes: int) -> np.ndarray:
        """Values, with leading lanes. Floats stay clear of each other, so that none is a tie."""
        shape = (*lanes, *self.shape)
        if self.dtype == dtypes.bool_:
            return rng.integers(0, 2, shape).astype(bool)
        if self.dtype in dtypes.KEYS:
            words = [rng.integers(0, 1 << 32, shape, np.uint32) for _ in range(2)]
            return dtypes.stored_keys(words, self.dtype)
        if self.dtype in dtypes.INTEGER:
            low = max(self.low, 0) if self.dtype in dtypes.UNSIGNED else self.low
            return rng.integers(int(low), int(self.high), shape, endpoint=True).astype(self.dtype)
        numbers = self._spread(rng, shape)
        if self.dtype in dtypes.COMPLEX:
            return (numbers + 1j * self._spread(rng, shape)).astype(self.dtype)
        return numbers.astype(self.dtype)

    def _spread(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        count = int(np.prod(shape))
        steps = (rng.permutation(count) + rng.uniform(0.2, 0.8, count)) / max(count, 1)
        return (self.low + (self.high - self.low) * steps).reshape(shape)


@dataclass(frozen=True)
class Sample:
    """A call of a primitive."""

    primitive: Primitive
    operands: tuple[Operand, ...]
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def types(self) -> tuple[ArrayType, ...]:
        return tuple(o.type for o in self.operands)

    @property
    def rng(self) -> np.random.Generator:
        """The same values on every run."""
        return np.random.default_rng(zlib.crc32(str(self).encode()))

    def draw(self) -> list[np.ndarray]:
        rng = self.rng
        return [o.draw(rng) for o in self.operands]

    @property
    def active(self) -> tuple[int, ...]:
        """The operands that can carry a tangent."""
        return tuple(i for i, o in enumerate(self.operands) if o.dtype in dtypes.INEXACT)

    def __str__(self) -> str:
        types = ", ".join(map(str, self.types))
        return f"{self.primitive.name}({types}) {dict(self.params)}"
