"""The code of a stage whose radix is a large prime, by convolution (convolutions.py)."""

from __future__ import annotations

from rune.backends.cpu.fft.butterflies import add, times
from rune.backends.cpu.fft.conventions import CONVOLVED, IN_PARTS, ROOMS, Ends
from rune.backends.cpu.fft.groups_code import number_of, put_number
from rune.backends.cpu.fft.rows_code import stages_function
from rune.backends.cpu.fft.stages import PARAMETERS, Places, scalars
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import maker
from rune.lowering.codegen.llvm.ir.text import Value


def convolved_function(shape: Shape, ends: Ends = IN_PARTS) -> str:
    """The stage, and the function that it calls for the transforms of its convolution."""
    make = maker(shape)
    (words,) = make.pointers("turns")
    turns, factor, listed, spectrum, order = (make.word(words, k, "ptr") for k in range(5))
    radix, size, count = (make.word(words, k) for k in range(5, CONVOLVED))
    places, room = Places(make, radix, ends, factor), size * (2 * shape.lanes)
    memory = make.writer.effect("ptr", f"alloca {shape.scalar}, i64 {(room * ROOMS).text}, align 64")
    rooms = [make.at(memory, room * number) for number in range(ROOMS)]
    # The last stage leaves its results in the room that it does not read (rows_code.py).
    result = make.writer.select(((count - 1) & 1).equals(0), *rooms)

    def transform(parts: tuple[int, int]) -> None:
        """From the second room to `result`; with parts exchanged, the inverse."""
        source, target = ([make.at(x, part * shape.lanes) for part in parts] for x in (rooms[1], result))
        width = make.number(2 * shape.lanes)
        make.call("stages", listed, count, *source, width, *target, width, memory, room)

    def points(j: Value, i: Value) -> None:
        first, zero = places.read(0, j, i), make.writer.constant(shape.vector, 0.0)

        def gather(k: Value) -> None:
            put_number(make, rooms[1], k, *places.read(make.word(order, k), j, i))

        def scatter(k: Value) -> None:
            p = make.word(order, k + radix - 1)
            turn = scalars(make, turns, (j * (radix - 1) + p) - 1)
            places.write(times(add(first, number_of(make, result, k)), turn), p, j, i)

        def multiply(k: Value) -> None:
            put_number(make, rooms[1], k, *times(number_of(make, result, k), scalars(make, spectrum, k)))

        make.each(radix - 1, gather)
        make.each(size - radix + 1, lambda k: put_number(make, rooms[1], k + radix - 1, zero, zero))
        transform((0, 1))
        places.write(add(first, number_of(make, result, make.number(0))), 0, j, i)
        make.each(size, multiply)
        transform((1, 0))
        make.each(radix - 1, scatter)

    places.each(points)
    return f"{make.text(f'convolved({PARAMETERS})')}\n\n{stages_function(shape)}"
