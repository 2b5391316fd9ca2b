"""The code of means.py."""

from __future__ import annotations

from rune.backends.cpu.gemm.panels import transpose
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import block_count, maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape) -> str:
    """The module. A unit is a line of squares of a matrix of n rows.

    The last squares of a line, and the last line, end with the matrix.
    """
    make, lanes = maker(shape), shape.lanes
    words, source, target, _ = make.pointers(PARAMETERS)
    n = make.word(words, 0)
    half = make.writer.constant(shape.vector, 0.5)
    squares = block_count(n, lanes)

    def line(number: Value) -> None:
        matrix = number.binary("udiv", squares)
        row = ((number - matrix * squares) * lanes).call("smin", n - lanes)
        a, mean = (make.at(array, matrix * n * n) for array in (source, target))

        def square(index: Value) -> None:
            column = (index * lanes).call("smin", n - lanes)
            across, down = row * n + column, column * n + row
            turned = transpose([make.vector(make.at(a, down + n * k)) for k in range(lanes)])
            for k, other in enumerate(turned):
                place = across + n * k
                make.put((make.vector(make.at(a, place)) + other) * half, make.at(mean, place))

        make.each(squares, square)

    declaration = "declare i64 @llvm.smin.i64(i64, i64)"
    return f"{declaration}\n\n{public(routine(make, 'means', line))}"
