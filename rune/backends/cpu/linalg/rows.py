"""Matrices of real or complex numbers in memory. A row has the parts of a number side by side.

A row times a complex number is the row times the real part, plus i times the row, times the
imaginary part. So code that multiplies rows of real numbers also multiplies complex ones, if it has
the row and i times the row, which are called its turns. A real row has one turn, the row itself.

Sizes, places and steps count numbers, except those of `make`, which count parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, maker
from rune.backends.cpu.linalg.numbers import Number, Numbers
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

Matrix = tuple[Value, Value, Value]  # a pointer, and the steps from row to row and along a row


@dataclass(frozen=True, slots=True)
class Right:
    """A right factor in scratch memory: rows `step` apart, and the second turn `apart` further
    on."""

    at: Value
    step: Value
    apart: Value


@dataclass(frozen=True, slots=True)
class Rows:
    """A function over rows of numbers, being written."""

    make: Maker
    numbers: Numbers

    @property
    def parts(self) -> int:
        """The parts of a number."""
        return self.numbers.parts

    @property
    def lanes(self) -> int:
        """Numbers in a vector."""
        return self.make.shape.lanes // self.parts

    def parts_of(self, count: Value | int) -> Value:
        """The parts of `count` numbers."""
        count = count if isinstance(count, Value) else self.make.number(count)
        return count if self.parts == 1 else count * self.parts

    def at(self, pointer: Value, index: Value | int) -> Value:
        """The address of number `index` from the pointer on."""
        return self.make.at(pointer, index * self.parts if isinstance(index, int) else self.parts_of(index))

    def part(self, pointer: Value, number: int) -> Value:
        """The address of one part of a number."""
        return pointer if number == 0 else self.make.at(pointer, number)

    def read(self, at: Value) -> Number:
        """Read a number."""
        return tuple(self.make.scalar(self.part(at, k)) for k in range(self.parts))

    def write(self, number: Number, at: Value) -> None:
        """Write a number."""
        for k, value in enumerate(number):
            self.make.writer.store(value, self.part(at, k))

    def scratch(self, count: int, turns: int = 1) -> Value:
        """Stack memory of this function for `count` numbers, and their turns."""
        return self.make.writer.allocate(self.make.shape.scalar, count * self.parts * turns)

    def right(self, rows: int, width: int) -> Right:
        """Memory for the turns of a right factor."""
        at = self.scratch(rows * width, self.parts)
        return Right(at, self.make.number(width), self.make.number(rows * width))

    def splats(self, number: Number) -> Number:
        """A number in every lane."""
        return tuple(self.make.writer.splat(x, self.make.shape.lanes) for x in number)

    def plus(self, value: Value, factor: Number, turns: Sequence[Value]) -> Value:
        """A vector plus a product, by a number in every lane."""
        for x, turn in zip(factor, turns, strict=True):
            value = x.fma(turn, value)
        return value

    def product(self, factor: Number, turns: Sequence[Value]) -> Value:
        """A vector times a number in every lane."""
        return self.plus(factor[0] * turns[0], factor[1:], turns[1:])

    def constant(self, value: float) -> Number:
        """A real number."""
        return tuple(self.make.writer.constant(self.make.shape.scalar, x) for x in (value, 0.0)[: self.parts])

    def negative(self, number: Number) -> Number:
        """The number of the opposite sign."""
        return tuple(-x for x in number)

    def copied(self, piece: str, source: Value, fs: Value, target: Value, ts: Value, rows: Value, width: Value) -> None:
        """Copy rows by a piece whose sizes count parts, such as `copied` and `negated`."""
        self.make.call(piece, source, self.parts_of(fs), target, self.parts_of(ts), rows, self.parts_of(width))

    def turn(self, right: Right, rows: Value, width: Value, piece: str = "turned") -> None:
        """Write the second turn, i or -i times the rows, after them. Real rows have none."""
        if self.parts > 1:
            step, target = self.parts_of(right.step), self.at(right.at, right.apart)
            self.make.call(piece, right.at, step, target, step, rows, self.parts_of(width))

    def tiles(
        self, lhs: Matrix, right: Right, out: tuple[Value, Value], sizes: tuple[Value, Value, Value], adds: bool
    ) -> None:
        """out = lhs @ right or, with `adds`, out += lhs @ right.

        sizes: height, width and depth;  right: must have its turns
        """
        make, (at, *steps), (c, ldc), (height, width, depth) = self.make, lhs, out, sizes
        for k in range(self.parts):
            lines = self.part(at, k), *map(self.parts_of, steps)
            turn = self.at(right.at, right.apart) if k else right.at
            # The product of the second turn is added to that of the first.
            flag = Value(make.writer, "i1", "true" if adds or k else "false")
            last = (height, self.parts_of(width), depth, make.number(make.shape.vectors), flag)
            make.call_piece("tiles", *lines, turn, self.parts_of(right.step), c, self.parts_of(ldc), *last)


def rows_maker(shape: Shape, numbers: Numbers) -> Rows:
    """A new function over rows."""
    return Rows(maker(shape), numbers)
