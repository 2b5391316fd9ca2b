"""The code of columns.py."""

from __future__ import annotations

from rune.backends.cpu.fft.conventions import ROUTINE
from rune.backends.cpu.fft.rows_code import public, stages_function, word
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import block_count, maker
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape) -> str:
    """The module of the routine."""
    return "\n\n".join([declarations(shape), stages_function(shape), public(columns_function(shape))])


def columns_function(shape: Shape) -> str:
    """The transform along the middle axis of pairs [outer, n, inner].

    The last vector of columns ends with the last column.
    """
    make, lanes = maker(shape), shape.lanes
    words, source, target, memory = make.pointers(ROUTINE)
    stages, (outer, n, inner, count) = word(make, words, 1, "ptr"), (word(make, words, k) for k in range(2, 6))
    room = n * (2 * lanes)
    step = inner * 2

    def columns(start: Value) -> None:
        pairs, results = make.at(source, start), make.at(target, start)
        make.call("stages", stages, count, pairs, pairs, step, results, results, step, memory, room)

    def array(number: Value) -> None:
        make.each(
            block_count(inner, lanes),
            lambda group: columns((number * n * inner + (group * lanes).call("smin", inner - lanes)) * 2),
        )

    make.each(outer, array)
    return make.text(f"columns({', '.join(f'ptr %{p}' for p in ROUTINE.split())})")
