"""The code of rows.py: stages, and the routine that calls them through words of a length.

Source: as forms.py and stages.py.
"""

from __future__ import annotations

from rune.backends.cpu.fft.conventions import HEAD, OF_STAGE, PARTS
from rune.backends.cpu.fft.lines import turned_squares_function
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape) -> str:
    """The module of the routine."""
    pieces = turned_squares_function, stages_function
    functions = public(parts_function(shape)), public(rows_function(shape))
    return "\n\n".join([declarations(shape), *(piece(shape) for piece in pieces), *functions])


def stages_function(shape: Shape) -> str:
    """The transform of a vector of lines, by `count` stages.

    Stages write the two halves of work memory alternately. The source may be the second half: the
    first stage writes the other one.
    """
    make = maker(shape)
    writer, (stages, fr, fi, tr, ti, work) = make.writer, make.pointers("listed fr fi tr ti work")
    count, fs, ts, room = make.sizes("count fs ts room")
    step = make.number(2 * shape.lanes)

    def stage(k: Value) -> None:
        is_first, is_last, second = k.equals(0), k.equals(count - 1), k & 1
        # Stage k writes half k mod 2, so it reads the other one.
        before, after = (make.at(work, room * at) for at in (make.number(1) - second, second))
        source = [make.at(before, part * shape.lanes) for part in (0, 1)]
        target = [make.at(after, part * shape.lanes) for part in (0, 1)]
        words = make.at(stages, k * OF_STAGE, "i64")
        function, turns = (writer.load("ptr", make.at(words, at, "i64")) for at in (0, 1))
        runs, length = (writer.load("i64", make.at(words, at, "i64")) for at in (2, 3))
        reads = [writer.select(is_first, x, y) for x, y in zip((fr, fi, fs), (*source, step), strict=True)]
        writes = [writer.select(is_last, x, y) for x, y in zip((tr, ti, ts), (*target, step), strict=True)]
        make.call(function.text, *reads, *writes, turns, runs, length)

    make.each(count, stage)
    pointers = "ptr %fr, ptr %fi, i64 %fs, ptr %tr, ptr %ti, i64 %ts"
    return make.text(f"stages(ptr %listed, i64 %count, {pointers}, ptr %work, i64 %room)")


def parts_function(shape: Shape) -> str:
    """The transform of one row, which is read and written as the stages of its words do."""
    make, lanes = maker(shape), shape.lanes
    writer = make.writer
    real, imag, to_real, to_imag, between, work, words = make.pointers(PARTS)
    # All of these words are sizes, except the addresses of this function and of the table.
    n, _, rows, columns, step, turns, downs, alongs, reads, writes = (
        writer.load("ptr" if k in (1, 5) else "i64", make.at(words, k, "i64")) for k in range(HEAD)
    )
    stages = make.at(words, HEAD, "i64")
    along_list = make.at(stages, downs * OF_STAGE, "i64")
    width = make.number(2 * lanes)
    # Of the longer of both transforms: one is done before the other begins.
    room = width * writer.select(rows > columns, rows, columns)
    middle_real, middle_imag = between, make.at(between, rows * step)
    second = make.at(work, room)
    second_imag = make.at(second, lanes)

    def down(group: Value) -> None:
        # The last group ends with the last column, and computes some again, to the same bits.
        first = (group * lanes).call("smin", columns - lanes)
        sources = [make.at(part, first * reads) for part in (real, imag)]
        targets = [make.at(part, first) for part in (middle_real, middle_imag)]
        make.call("stages", stages, downs, *sources, columns * reads, *targets, step, work, room)

    def along(group: Value) -> None:
        first = (group * lanes).call("smin", rows - lanes)
        parts = [make.at(part, first * step) for part in (middle_real, middle_imag)]
        turn = make.at(turns, first * columns)
        make.call("turned_squares", *parts, turn, second, second_imag, step, columns, width, n, columns)
        places = [make.at(part, first * writes) for part in (to_real, to_imag)]
        make.call("stages", along_list, alongs, second, second_imag, width, *places, rows * writes, work, room)

    make.each(block_count(columns, lanes), down)
    make.each(block_count(rows, lanes), along)
    return make.text(f"parts({', '.join(f'ptr %{name}' for name in PARTS.split())})")


def rows_function(shape: Shape) -> str:
    """The transform of rows of pairs, one row a unit. words: a length, offsets in the memory."""
    make = maker(shape)
    words, source, target, memory = make.pointers(PARAMETERS)
    length = make.word(words, 0, "ptr")
    places = [make.at(memory, make.word(words, k), "i8") for k in (1, 2)]
    n = make.writer.load("i64", length)

    def row(number: Value) -> None:
        first = number * n * 2
        pairs, results = make.at(source, first), make.at(target, first)
        call_length(make, pairs, pairs, results, results, *places, length)

    return routine(make, "rows", row)


def call_length(make: Maker, *arguments: Value) -> None:
    """Transform one row by the function of its length, the last of the arguments."""
    function = make.writer.load("ptr", make.at(arguments[-1], 1, "i64"))
    make.call(function.text, *arguments)
