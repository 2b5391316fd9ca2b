"""The code of twins.py. The first half of a vector belongs to one row, the second to the next.

Sizes of a length are in its code: one module serves one length, and a direction.
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.fft.butterflies import Pair, times, transformed
from rune.backends.cpu.fft.groups_code import folded
from rune.backends.cpu.fft.lengths import twin_factors
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.panels import transpose
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value

# Takes the parts of a vector of frequencies, by its number in its rows.
Put = Callable[[Value, Pair], None]


def text(shape: Shape, name: str, n: int) -> str:
    """The module of a transform of rows of n pairs, of its inverse, or of real rows.

    A unit is two rows; the last one ends with the last row.
    """
    twins = _Twins(shape, n)
    write = {"complex": twins.complex, "backward": twins.backward, "forward": twins.forward}[name]

    def unit(number: Value) -> None:
        write((number * 2).call("smin", twins.rows - 2))

    return f"{declarations(shape)}\n\n{public(routine(twins.make, name, unit))}"


class _Twins:
    """The operands of a routine. words: rows, turns between the two transforms, turns of reals"""

    def __init__(self, shape: Shape, n: int):
        self.make, self.n, self.lanes, self.half = maker(shape), n, shape.lanes, shape.lanes // 2
        words, self.source, self.target, self.between = self.make.pointers(PARAMETERS)
        factors = twin_factors(n, shape.lanes)
        assert factors is not None
        self.a, self.b = factors
        self.spectrum = self.make.at(self.between, 4 * n)  # behind what is between the two transforms
        self.rows = self.make.word(words, 0)
        self.turns, self.real_turns = (self.make.word(words, k, "ptr") for k in (1, 2))

    def complex(self, row: Value) -> None:
        """The transform of two rows."""
        pairs = self.make.at(self.source, row * (2 * self.n))
        results = self.make.at(self.target, row * (2 * self.n))
        self.transform(pairs, (0, 1), lambda k, value: self.put_pairs(results, self.n, k, value))

    def backward(self, row: Value) -> None:
        """The inverse: a transform with the parts exchanged before and after."""
        pairs = self.make.at(self.source, row * (2 * self.n))
        results = self.make.at(self.target, row * (2 * self.n))

        def put(k: Value, value: Pair) -> None:
            real, imag = (part * (1 / self.n) for part in value)
            self.put_pairs(results, self.n, k, (imag, real))

        self.transform(pairs, (1, 0), put)

    def forward(self, row: Value) -> None:
        """The spectra of two rows of 2n real numbers."""
        pairs = self.make.at(self.source, row * (2 * self.n))
        spectra = self.make.at(self.target, row * (2 * (self.n + 1)))
        self.transform(pairs, (0, 1), lambda k, value: self.put_parts(k, value, self.spectrum))
        count = self.n // self.half
        # Frequency h - k: its vector backwards, whose first lane is that of the vector behind it.
        mirror = [
            start + self.half - lane if lane else start + self.lanes
            for start in (0, self.half)
            for lane in range(self.half)
        ]

        def fold(k: Value) -> None:
            # The number of vectors is a power of two, and frequency h is frequency 0.
            behind = self.make.number(count) - k
            numbers = zip(
                self.parts_of(behind - 1, self.spectrum),
                self.parts_of(behind & (count - 1), self.spectrum),
                strict=True,
            )
            real, imag = (self.make.writer.shuffle(*parts, mirror) for parts in numbers)
            turn = self.two(self.make.at(self.real_turns, k * (2 * self.lanes)))
            value = folded(self.parts_of(k, self.spectrum), (real, imag), turn)
            self.put_pairs(spectra, self.n + 1, k, (value[0] * 0.5, value[1] * 0.5))

        self.make.each(self.make.number(count), fold)
        self.put_last(spectra)

    def put_last(self, spectra: Value) -> None:
        """Frequency n of each row: the difference of the parts of its first number."""
        make = self.make
        real, imag = self.parts_of(make.number(0), self.spectrum)
        difference, zero = real - imag, make.writer.constant(make.shape.scalar, 0.0)
        for row in (0, 1):
            place = make.at(spectra, 2 * (self.n + row * (self.n + 1)))
            make.writer.store(make.writer.lane(difference, row * self.half), place)
            make.writer.store(zero, make.at(place, 1))

    def transform(self, pairs: Value, order: tuple[int, int], put: Put) -> None:
        """The transforms of two rows, a vector of whose frequencies `put` takes at a time.

        order: of the parts of a pair
        """
        make, zero = self.make, self.make.number(0)
        blocks, groups = self.a // self.half, self.b // self.half
        if blocks == groups == 1:
            # One square stays in registers.
            self.second(zero, 1, self.first(pairs, order, zero)[0], put)
            return

        def group(number: Value) -> None:
            for block, columns in enumerate(self.first(pairs, order, number)):
                for k, column in enumerate(columns):
                    self.put_parts(number * self.half + (block * self.b + k), column, self.between)

        def block(number: Value) -> None:
            columns = [self.parts_of(number * self.b + k, self.between) for k in range(self.b)]
            self.second(number, blocks, columns, put)

        make.each(make.number(groups), group)
        make.each(make.number(blocks), block)

    def first(self, pairs: Value, order: tuple[int, int], group: Value) -> list[list[Pair]]:
        """Transforms of `a` numbers, in columns of a group, turned; by blocks, each transposed."""
        begin = group * self.half
        values = transformed([self.take_pairs(pairs, begin + q * self.b, order) for q in range(self.a)])
        turns = self.make.at(self.turns, group * (self.a * 2 * self.lanes))
        for p in range(1, self.a):
            values[p] = times(values[p], self.two(self.make.at(turns, 2 * self.lanes * p)))
        return [self.square(values[k : k + self.half]) for k in range(0, self.a, self.half)]

    def square(self, lines: list[Pair]) -> list[Pair]:
        """The columns of the squares of both rows."""
        real, imag = (transpose(list(parts)) for parts in zip(*lines, strict=True))
        return list(zip(real, imag, strict=True))

    def second(self, block: Value, blocks: int, columns: list[Pair], put: Put) -> None:
        """Transforms of `b` numbers, in the columns of a block."""
        for p, value in enumerate(transformed(columns)):
            put(block + blocks * p, value)

    def take_pairs(self, pairs: Value, place: Value, order: tuple[int, int]) -> Pair:
        """The parts of half a vector of each row."""
        low, high = (self.make.vector(self.make.at(pairs, (place + row * self.n) * 2)) for row in (0, 1))
        real, imag = (self.make.writer.shuffle(low, high, range(part, 2 * self.lanes, 2)) for part in order)
        return real, imag

    def put_pairs(self, results: Value, step: int, k: Value, value: Pair) -> None:
        """Vector k of each row, as pairs. step: from row to row"""
        for row in (0, 1):
            order = [row * self.half + lane + part * self.lanes for lane in range(self.half) for part in (0, 1)]
            place = self.make.at(results, (k * self.half + row * step) * 2)
            self.make.put(self.make.writer.shuffle(*value, order), place)

    def put_parts(self, k: Value, value: Pair, room: Value) -> None:
        """Vector k of both rows, in work memory."""
        for part, x in enumerate(value):
            self.make.put(x, self.make.at(room, (k * 2 + part) * self.lanes))

    def parts_of(self, k: Value, room: Value) -> Pair:
        """The same back."""
        return self.two(self.make.at(room, k * (2 * self.lanes)))

    def two(self, place: Value) -> Pair:
        """Two vectors, one behind the other."""
        return self.make.vector(place), self.make.vector(self.make.at(place, self.lanes))
