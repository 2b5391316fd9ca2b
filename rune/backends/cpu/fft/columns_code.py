"""The code of columns.py."""

from __future__ import annotations

from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.lines import put_pairs, take_pairs
from rune.backends.cpu.fft.rows_code import public, stages_function
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import block_count, maker
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape, inverse: bool) -> str:
    """The module of the routine."""
    return "\n\n".join([declarations(shape), stages_function(shape), public(columns_function(shape, inverse))])


def columns_function(shape: Shape, inverse: bool) -> str:
    """The transform along the middle axis of pairs [outer, n, inner], times `factor`.

    The last vector of columns ends with the last column. An inverse exchanges the parts.
    """
    make, lanes = maker(shape), shape.lanes
    (source, target, work, stages), (outer, n, inner, count) = (
        make.pointers("source target work words"),
        make.sizes("outer n inner count"),
    )
    width = make.number(2 * lanes)
    room = n * width
    first, second, third = (make.at(work, room * number) for number in range(ROOMS))
    order = (1, 0) if inverse else (0, 1)
    factor = make.writer.splat(Value(make.writer, shape.scalar, "%factor"), lanes)

    def columns(start: Value) -> None:
        def take(k: Value) -> None:
            for part, place in zip(take_pairs(make, make.at(source, start + k * inner * 2)), order, strict=True):
                make.put(part, make.at(second, k * width + place * lanes))

        def put(k: Value) -> None:
            real, imag = (make.vector(make.at(third, k * width + place * lanes)) * factor for place in order)
            put_pairs(make, real, imag, make.at(target, start + k * inner * 2))

        make.each(n, take)
        # The columns are in the second room, as the first stage writes to the first (rows_code.py).
        places = [second, make.at(second, lanes), width, third, make.at(third, lanes), width]
        make.call("stages", stages, count, *places, first, room)
        make.each(n, put)

    def array(number: Value) -> None:
        make.each(
            block_count(inner, lanes),
            lambda group: columns((number * n * inner + (group * lanes).call("smin", inner - lanes)) * 2),
        )

    make.each(outer, array)
    sizes = f"i64 %outer, i64 %n, i64 %inner, i64 %count, {shape.scalar} %factor"
    return make.text(f"columns(ptr %source, ptr %target, ptr %work, ptr %words, {sizes})")
