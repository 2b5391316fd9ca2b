"""The code of rows that are convolutions with a chirp (convolutions.py)."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.fft.butterflies import Pair
from rune.backends.cpu.fft.conventions import PARTS, Ends
from rune.backends.cpu.fft.lines import put_pairs, take_pairs
from rune.backends.cpu.fft.rows_code import call_length
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, maker
from rune.backends.cpu.vector_routines_code import public
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape, ends: Ends) -> str:
    """The module of a row that is read and written like this."""
    return f"{declarations(shape)}\n\n{public(chirped_function(shape, ends))}"


def chirped_function(shape: Shape, ends: Ends) -> str:
    """The transform of one row, of more numbers than there are lanes.

    words: n, this function, the length of the convolution, a multiple of the lanes, and its words,
    the tables of both products, and the factor of pairs
    """
    make, lanes = maker(shape), shape.lanes
    real, imag, to_real, to_imag, between, work, words = make.pointers(PARTS)
    n, size = make.word(words, 0), make.word(words, 2)
    inner, chirp, spectrum, factor = (make.word(words, k, "ptr") for k in range(3, 7))
    parts = between, make.at(between, size)
    zero, middle = make.writer.constant(shape.vector, 0.0), make.at(between, size * 2)

    def vectors(count: Value, body: Callable[[Value], None]) -> None:
        """The last vector ends with the last number."""
        make.each(block_count(count, lanes), lambda block: body((block * lanes).call("smin", count - lanes)))

    def turned(x: Pair, table: Value, apart: Value, first: Value) -> Pair:
        c, s = (make.vector(make.at(table, at)) for at in (first, apart + first))
        return x[0].fma(c, -(x[1] * s)), x[0].fma(s, x[1] * c)

    def begin(first: Value) -> None:
        x = _read(make, (real, imag), first, ends)
        put(turned(x, chirp, n, first), first)

    def put(value: Pair, first: Value) -> None:
        for part, place in zip(value, parts, strict=True):
            make.put(part, make.at(place, first))

    def multiply(first: Value) -> None:
        put(turned(_read(make, parts, first, Ends()), spectrum, size, first), first)

    def end(first: Value) -> None:
        value = turned(_read(make, parts, first, Ends()), chirp, n, first)
        _write(make, value, (to_real, to_imag), first, ends, factor)

    vectors(n, begin)
    vectors(size - n, lambda first: put((zero, zero), first + n))
    call_length(make, *parts, *parts, middle, work, inner)
    vectors(size, multiply)
    # The inverse is the same with parts exchanged.
    call_length(make, *parts[::-1], *parts[::-1], middle, work, inner)
    vectors(n, end)
    return make.text(f"chirped({', '.join(f'ptr %{name}' for name in PARTS.split())})")


def _read(make: Maker, parts: tuple[Value, Value], first: Value, ends: Ends) -> Pair:
    if ends.reads == "parts":
        return make.vector(make.at(parts[0], first)), make.vector(make.at(parts[1], first))
    real, imag = take_pairs(make, make.at(parts[0], first * 2))
    return (real, imag) if ends.reads == "pairs" else (imag, real)


def _write(make: Maker, value: Pair, parts: tuple[Value, Value], first: Value, ends: Ends, factor: Value) -> None:
    if ends.writes == "parts":
        for part, place in zip(value, parts, strict=True):
            make.put(part, make.at(place, first))
        return
    scale = make.writer.splat(make.scalar(factor), make.shape.lanes)
    real, imag = value if ends.writes == "pairs" else value[::-1]
    put_pairs(make, real * scale, imag * scale, make.at(parts[0], first * 2))
