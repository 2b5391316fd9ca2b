"""Exact quotients and roots from a device's inexact ones: NumPy's bits, for all operands.

Numbers here are arrays whose own quotient and root have the largest errors that WGSL allows, and
whose floats are never denormal: a denormal number is an error of the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rune.lowering.kernel.scalar import SCALAR_MEANING
from rune.lowering.scalar import divisions
from rune.lowering.scalar.number import Ability, Number, Plain
from tests.lowering.codegen.test_llvm_math import samples

TINY = np.finfo(np.float32).tiny
SHIFTS = {"shift_left": np.left_shift, "shift_right": np.right_shift}


@dataclass(frozen=True, slots=True)
class Loose(Number):
    """An array whose quotients and roots are `ulps` off."""

    values: np.ndarray
    ulps: int

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def new(self, values: Any) -> Loose:
        return Loose(np.asarray(values), self.ulps)

    def like(self, other: Number | Plain) -> Loose:
        return other if isinstance(other, Loose) else self.new(self.dtype.type(other))

    def apply(self, name: str, *others: Number | Plain) -> Loose:
        args = [self.values, *(self.like(o).values for o in others)]
        if name in ("quotient", "root") and self.dtype == np.float32:
            with np.errstate(all="ignore"):
                exact = np.divide(*args) if name == "quotient" else np.sqrt(*args)
            assert not (np.abs(args[-1]) > 2.0**126).any()
            return self.new((exact.view(np.int32) + self.ulps).view(np.float32))
        if name in SHIFTS:
            assert ((args[1] >= 0) & (args[1] < 8 * self.dtype.itemsize)).all()
            return self.new(SHIFTS[name](*args))
        return self.new(SCALAR_MEANING[name](*args))

    def convert(self, dtype: np.dtype) -> Loose:
        return self.new(self.values.astype(dtype))

    def integer_part(self, dtype: np.dtype) -> Loose:
        assert (np.abs(self.values) < 100).all()
        return self.new(self.values.astype(dtype))

    def bits_as(self, dtype: np.dtype) -> Loose:
        return self.new(self.values.view(dtype))

    def choose(self, a: Number | Plain, b: Number | Plain) -> Loose:
        known = a if isinstance(a, Loose) else b
        assert isinstance(known, Loose)
        return self.new(np.where(self.values, known.like(a).values, known.like(b).values))

    def has(self, ability: Ability) -> bool:
        return False

    def variable(self) -> Any:
        raise NotImplementedError

    def when(self, then: Any, orelse: Any = None) -> None:
        raise NotImplementedError

    def repeat(self, most: int, body: Any) -> None:
        raise NotImplementedError


def numbers(count: int) -> np.ndarray:
    """Random bits, edges, denormals, and mantissas near powers of two and their squares."""
    rng = np.random.default_rng(count)
    ends = np.array([0.0, 1.0, 1.5, 4.0, TINY, 2 * TINY, 1e-45, 3e38, np.finfo(np.float32).max, np.inf, np.nan], "f4")
    neighbours = [np.nextafter(ends, np.float32(x)) for x in (0, 9)]
    denormal = rng.integers(1, 1 << 23, 500).astype(np.int32).view(np.float32)
    squares = (rng.integers(1, 1 << 12, 500) ** 2).astype(np.float32)
    parts = [samples(np.float32, count), ends, *neighbours, denormal, squares, np.nextafter(squares, np.float32(0))]
    values = np.concatenate(parts)
    return np.concatenate([values, -values])


def same_bits(expected: np.ndarray, result: Number, *operands: np.ndarray) -> None:
    assert isinstance(result, Loose)
    values = result.values
    equal = (expected.view(np.int32) == values.view(np.int32)) | (np.isnan(expected) & np.isnan(values))
    wrong = np.nonzero(~equal)[0][:8]
    assert not wrong.size, [(*(float(o[i]) for o in operands), float(expected[i]), float(values[i])) for i in wrong]


@pytest.mark.parametrize("ulps", range(-6, 7))
def test_a_loose_quotient_is_rounded_once(ulps: int):
    a = numbers(2_000)
    rng = np.random.default_rng(ulps + 100)
    for b in (rng.permutation(a), a, -a[::-1], np.roll(a, 1)):
        with np.errstate(all="ignore"):
            expected = a / b

        same_bits(expected, divisions.divide(Loose(a, ulps), Loose(b, ulps)), a, b)


@pytest.mark.parametrize("ulps", range(-6, 7))
def test_a_loose_root_is_rounded_once(ulps: int):
    x = numbers(20_000)
    with np.errstate(all="ignore"):
        expected = np.sqrt(x)

    same_bits(expected, divisions.root(Loose(x, ulps)), x)
