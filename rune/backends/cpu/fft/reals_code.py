"""The code of reals.py."""

from __future__ import annotations

from rune.backends.cpu.fft.lines import put_pairs, take_pairs
from rune.backends.cpu.fft.rows_code import call_length
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape, name: str) -> str:
    """The module of a transform, or of its inverse."""
    piece = {"forward": fold_function, "inverse": unfold_function}[name]
    return "\n\n".join([declarations(shape), piece(shape), public(rows_function(shape, name))])


def rows_function(shape: Shape, name: str) -> str:
    """The transform of rows, or its inverse, one row a unit."""
    make = maker(shape)
    words, source, target, memory = make.pointers(PARAMETERS)
    length, turns = (make.word(words, k, "ptr") for k in (0, 1))
    real, imag, *between = (make.at(memory, make.word(words, k), "i8") for k in range(2, 6))
    half = make.writer.load("i64", length)

    def transform(*places: Value) -> None:
        call_length(make, *places, *between, length)

    def forward(number: Value) -> None:
        # Neighbours are the parts of a complex number.
        pairs = make.at(source, number * half * 2)
        transform(pairs, pairs, real, imag)
        make.call("fold", real, imag, turns, make.at(target, number * (half + 1) * 2), half)

    def inverse(number: Value) -> None:
        make.call("unfold", make.at(source, number * (half + 1) * 2), turns, imag, real, half)
        pairs = make.at(target, number * half * 2)
        transform(real, imag, pairs, pairs)

    return routine(make, name, {"forward": forward, "inverse": inverse}[name])


def fold_function(shape: Shape) -> str:
    """Frequencies 0 to h of the real row from Z: h + 1 pairs.

    Z[h] is Z[0], which is put there first. The last vector ends with the last pair.
    """
    make = maker(shape)
    (real, imag, turns, pairs), (half,) = make.pointers("real imag turns pairs"), make.sizes("half")
    factor = make.writer.constant(shape.vector, 0.5)
    for part in (real, imag):
        make.writer.store(make.scalar(part), make.at(part, half))

    def block(number: Value) -> None:
        first = (number * shape.lanes).call("smin", half + 1 - shape.lanes)
        # The vector of h - k for the lanes of k, in reverse order.
        last = half - first - (shape.lanes - 1)
        a, b = (make.vector(make.at(part, first)) * factor for part in (real, imag))
        c, d = (_reversed(make, make.vector(make.at(part, last))) * factor for part in (real, imag))
        cosine, sine = _turn(make, turns, first, half)
        x, y = b + d, c - a  # of (Z[k] - conj Z[h-k]) / i
        put_pairs(
            make, x.fma(cosine, (-y).fma(sine, a + c)), y.fma(cosine, x.fma(sine, b - d)), make.at(pairs, first * 2)
        )

    make.each(block_count(half + 1, shape.lanes), block)
    return make.text("fold(ptr %real, ptr %imag, ptr %turns, ptr %pairs, i64 %half)")


def unfold_function(shape: Shape) -> str:
    """2 Z from the frequencies of a real row; imaginary parts at both ends count as 0."""
    make = maker(shape)
    (pairs, turns, real, imag), (half,) = make.pointers("pairs turns real imag"), make.sizes("half")

    def block(number: Value) -> None:
        first = (number * shape.lanes).call("smin", half - shape.lanes)
        last = half - first - (shape.lanes - 1)
        a, b = take_pairs(make, make.at(pairs, first * 2))
        c, d = (_reversed(make, part) for part in take_pairs(make, make.at(pairs, last * 2)))
        cosine, sine = _turn(make, turns, first, half)
        x, y = a - c, b + d  # of X[k] - conj X[h-k], which is turned back
        u, v = x.fma(cosine, y * sine), y.fma(cosine, -(x * sine))
        make.put(a + c - v, make.at(real, first))
        make.put(b - d + u, make.at(imag, first))

    make.each(block_count(half, shape.lanes), block)
    ends = make.scalar(pairs), make.scalar(make.at(pairs, half * 2))
    make.writer.store(ends[0] + ends[1], real)
    make.writer.store(ends[0] - ends[1], imag)
    return make.text("unfold(ptr %pairs, ptr %turns, ptr %real, ptr %imag, i64 %half)")


def _turn(make: Maker, turns: Value, first: Value, half: Value) -> tuple[Value, Value]:
    """A vector of the table of exp(-2πi k/n), whose parts are half + 1 apart."""
    return make.vector(make.at(turns, first)), make.vector(make.at(turns, first + half + 1))


def _reversed(make: Maker, vector: Value) -> Value:
    return make.writer.shuffle(vector, vector, range(make.shape.lanes - 1, -1, -1))
