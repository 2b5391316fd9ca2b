"""The code of columns.py."""

from __future__ import annotations

from rune.backends.cpu.fft.rows_code import stages_function
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import block_count, maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape) -> str:
    """The module of the routine."""
    return "\n\n".join([declarations(shape), stages_function(shape), public(columns_function(shape))])


def columns_function(shape: Shape) -> str:
    """The transform along the middle axis of pairs [outer, n, inner].

    The last vector of columns ends with the last column.
    """
    make, lanes = maker(shape), shape.lanes
    words, source, target, memory = make.pointers(PARAMETERS)
    stages, (n, inner, count) = make.word(words, 0, "ptr"), (make.word(words, k) for k in range(1, 4))
    room = n * (2 * lanes)
    step = inner * 2

    def columns(start: Value) -> None:
        pairs, results = make.at(source, start), make.at(target, start)
        make.call("stages", stages, count, pairs, pairs, step, results, results, step, memory, room)

    def unit(number: Value) -> None:
        array, first = place_of(number, inner, lanes)
        columns((array * n * inner + first) * 2)

    return routine(make, "columns", unit)


def place_of(number: Value, inner: Value, lanes: int) -> tuple[Value, Value]:
    """The array of a vector of columns, and its first column."""
    vectors = block_count(inner, lanes)
    array = number.binary("udiv", vectors)
    return array, ((number - array * vectors) * lanes).call("smin", inner - lanes)
