"""One stage of a transform, of as many lines as a vector has lanes.

With n = r·m·l a stage combines r chunks of m·l elements and writes runs of r·l. r, m and l are
called radix, runs and done. After the last stage the frequencies are in their natural order:

    y[j, p, i] = exp(-2πi jp/(r·m)) · sum over q of x[q, j, i] exp(-2πi pq/r)

Elements are vectors of real or of imaginary parts, `fs` elements apart in the source and `ts` in
the target. `turns` is a table of tables.py. If m is 1, all its factors are 1, and plain stages skip
them.

The first stage of a transform may read complex numbers as they lie in memory, and the last one may
write them (Ends): `fr` or `tr` is their address then, and a step counts both parts.

Source: Stockham's self-sorting transform, as in Van Loan 1992, "Computational Frameworks for the
Fast Fourier Transform", §1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rune.backends.cpu.fft.butterflies import Pair, add, subtract, times, transformed
from rune.backends.cpu.fft.conventions import IN_PARTS, Ends
from rune.backends.cpu.fft.lines import put_pairs, take_pairs
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, maker
from rune.lowering.codegen.llvm.ir.names import suffix
from rune.lowering.codegen.llvm.ir.text import Value

PARAMETERS = "ptr %fr, ptr %fi, i64 %fs, ptr %tr, ptr %ti, i64 %ts, ptr %turns, i64 %runs, i64 %done"


MOST = 64  # the largest radix


def declarations(shape: Shape) -> str:
    """The declarations of LLVM's functions that transforms call."""
    vector = shape.vector
    floats = (vector, shape.scalar)
    return "\n".join(
        [
            *(f"declare {t} @llvm.fma.{suffix(t)}({t}, {t}, {t})" for t in floats),
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        ]
    )


def stage_function(shape: Shape, radix: int, turns: bool, ends: Ends = IN_PARTS) -> str:
    """A stage of a radix in WRITTEN_OUT, with or without turns.

    Pairs are written times a factor, the first number of `turns`, which has none then.
    """
    make = maker(shape)
    (factor,) = make.pointers("turns")
    places = Places(make, radix, ends, factor)

    def points(j: Value, i: Value) -> None:
        y = transformed([places.read(q, j, i) for q in range(radix)])
        for p, value in enumerate(y):
            # The factor is read at its use: processors multiply by a scalar in memory directly.
            product = times(value, scalars(make, factor, j * (radix - 1) + (p - 1))) if turns and p else value
            places.write(product, p, j, i)

    places.each(points)
    return make.text(f"{'turned' if turns else 'plain'}{radix}({PARAMETERS})")


def prime_function(shape: Shape, ends: Ends = IN_PARTS) -> str:
    """A stage of an odd radix among its words, by pairs of conjugate roots from a table."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("turns")
    turns, factor, roots = (make.word(words, k, "ptr") for k in range(3))
    radix, half = (make.word(words, k) for k in (3, 4))
    places = Places(make, radix, ends, factor)
    sums, differences = (writer.allocate(shape.vector, MOST) for _ in range(2))
    totals = [writer.allocate(shape.vector) for _ in range(4)]

    def points(j: Value, i: Value) -> None:
        first = places.read(0, j, i)
        _set(make, totals, first)

        def pair(k: Value) -> None:
            a, b = places.read(k + 1, j, i), places.read(radix - 1 - k, j, i)
            both = add(a, b)
            _put_pair(make, sums, k, both)
            _put_pair(make, differences, k, subtract(a, b))
            _set(make, totals, add(_values(make, totals), both))

        make.each(half, pair)
        places.write(_values(make, totals), 0, j, i)

        def frequency(q: Value) -> None:
            _set(make, totals, first)
            # Frequencies q and radix - q have the same even terms, and odd terms of opposite signs.
            _set(make, totals[2:], (writer.constant(shape.vector, 0.0),) * 2)

            def term(k: Value) -> None:
                cosine, sine = scalars(make, roots, q * half + k)
                even, odd = _values(make, totals), _values(make, totals[2:])
                total, difference = _pair(make, sums, k), _pair(make, differences, k)
                _set(make, totals, (total[0].fma(cosine, even[0]), total[1].fma(cosine, even[1])))
                _set(make, totals[2:], (difference[1].fma(sine, odd[0]), difference[0].fma(-sine, odd[1])))

            make.each(half, term)
            even, odd = _values(make, totals), _values(make, totals[2:])
            for value, p in ((add(even, odd), q + 1), (subtract(even, odd), radix - 1 - q)):
                places.write(times(value, scalars(make, turns, j * (radix - 1) + p - 1)), p, j, i)

        make.each(half, frequency)

    places.each(points)
    return make.text(f"prime({PARAMETERS})")


class Places:
    """The addresses of a stage's elements. factor: the address of what pairs are multiplied by"""

    def __init__(self, make: Maker, radix: int | Value, ends: Ends, factor: Value):
        self.make, self.radix, self.ends, self.factor = make, radix, ends, factor
        self.source, self.target = tuple(make.pointers("fr fi")), tuple(make.pointers("tr ti"))
        source_step, target_step, self.runs, self.length = make.sizes("fs ts runs done")
        self.steps = source_step, target_step
        self.chunk = source_step * (self.runs * self.length)
        self.run = target_step * self.length

    def each(self, body: Callable[[Value, Value], None]) -> None:
        """body(j, i) for each element of each run."""
        make = self.make
        make.each(self.runs, lambda j: make.each(self.length, lambda i: body(j, i)))

    def read(self, q: Value | int, j: Value, i: Value) -> Pair:
        """x[q, j, i]."""
        # Hidden from LLVM's strength reduction, which would keep and advance a pointer for each
        # element: that took a third of the time (decision 0058).
        at = self.make.writer.hidden(self.steps[0] * (j * self.length + i))
        first = [self.make.at(self.make.at(part, at), self.chunk * q) for part in self.source]
        if self.ends.reads == "parts":
            real, imag = map(self.make.vector, first)
            return real, imag
        real, imag = take_pairs(self.make, first[0])
        return (real, imag) if self.ends.reads == "pairs" else (imag, real)

    def write(self, value: Pair, p: Value | int, j: Value, i: Value) -> None:
        """y[j, p, i] = value."""
        at = self.make.writer.hidden(self.steps[1] * (j * self.length * self.radix + i))
        first = [self.make.at(self.make.at(part, at), self.run * p) for part in self.target]
        if self.ends.writes == "parts":
            for place, x in zip(first, value, strict=True):
                self.make.put(x, place)
            return
        factor = self.make.writer.splat(self.make.scalar(self.factor), self.make.shape.lanes)
        real, imag = value if self.ends.writes == "pairs" else value[::-1]
        put_pairs(self.make, real * factor, imag * factor, first[0])


def scalars(make: Maker, table: Value, number: Value) -> Pair:
    """A pair of a table, in each lane of a vector."""
    first = make.at(table, number * 2)
    real, imag = (make.writer.splat(make.scalar(make.at(first, k)), make.shape.lanes) for k in (0, 1))
    return real, imag


def _pair(make: Maker, row: Value, number: Value) -> Pair:
    first = make.at(row, number * 2, make.shape.vector)
    return make.vector(first), make.vector(make.at(first, 1, make.shape.vector))


def _put_pair(make: Maker, row: Value, number: Value, value: Pair) -> None:
    first = make.at(row, number * 2, make.shape.vector)
    make.put(value[0], first)
    make.put(value[1], make.at(first, 1, make.shape.vector))


def _values(make: Maker, slots: list[Value]) -> Pair:
    return make.writer.load(make.shape.vector, slots[0]), make.writer.load(make.shape.vector, slots[1])


def _set(make: Maker, slots: list[Value], value: Sequence[Value]) -> None:
    for slot, part in zip(slots, value, strict=False):
        make.writer.store(part, slot)
