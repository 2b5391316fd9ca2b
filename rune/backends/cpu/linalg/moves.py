"""Copies blocks of matrices: to vector lanes and back, transposed, negated.

In signatures fs and ts are the steps, in elements, between lines of the source and the target.
Memory that is written in whole vectors must have room for one more square of vectors.
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.gemm.panels import transpose
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, by_vectors, least, maker
from rune.backends.cpu.linalg.numbers import Number, Numbers
from rune.backends.cpu.linalg.rows import rows_maker
from rune.lowering.codegen.llvm.ir.text import Value

# (make, count, body): writes body(first, length) for the pieces of a line. None: a whole vector.
Walk = Callable[[Maker, Value, Callable[[Value, Value | None], None]], None]


def by_parts(make: Maker, count: Value, body: Callable[[Value, Value | None], None]) -> None:
    """body(first, length) for each vector, whole or not. Slower than by_vectors, but less code."""
    lanes = make.shape.lanes
    make.writer.count_up(make.number(0), count, lanes, lambda at: body(at, least(count - at, lanes)))


def to_lanes_function(shape: Shape) -> str:
    """Copies element k of `lanes` lines to vector k."""
    make = maker(shape)
    (source, target), (fs, count) = make.pointers("from to"), make.sizes("fs count")

    def square(first: Value, length: Value | None) -> None:
        lines = [make.vector(make.at(source, first + fs * k), length) for k in range(shape.lanes)]
        for k, column in enumerate(transpose(lines)):
            make.put(column, make.at(target, (first + k) * shape.lanes))

    by_vectors(make, count, square)
    return make.text("to_lanes(ptr %from, i64 %fs, ptr %to, i64 %count)")


def from_lanes_function(shape: Shape) -> str:
    """Copies vectors back to lines."""
    make = maker(shape)
    (source, target), (ts, count) = make.pointers("from to"), make.sizes("ts count")

    def square(first: Value, length: Value | None) -> None:
        lines = [make.vector(make.at(source, (first + k) * shape.lanes)) for k in range(shape.lanes)]
        for k, column in enumerate(transpose(lines)):
            make.put(column, make.at(target, first + ts * k), length)

    by_vectors(make, count, square)
    return make.text("from_lanes(ptr %from, ptr %to, i64 %ts, i64 %count)")


def transposed_function(
    shape: Shape, numbers: Numbers, name: str, change: Callable[[Value], Value], by: Walk = by_vectors
) -> str:
    """Copies `lines` lines of `depth` numbers to columns, in rows `ts` apart, with a change.

    It writes whole vectors and whole squares of rows.
    change: a function of vectors;  by: the way to divide a line into pieces
    """
    rows = rows_maker(shape, numbers)
    make, parts, lanes = rows.make, rows.parts, rows.lanes
    (source, target), (fs, ts, lines, depth) = make.pointers("from to"), make.sizes("fs ts lines depth")

    def group(first_line: Value) -> None:
        # Lines past the last one repeat it: the square is complete, and they are not used.
        starts = [rows.at(source, least(lines - 1, first_line + k) * fs) for k in range(lanes)]

        def square(first: Value, length: Value | None) -> None:
            columns = transpose([make.vector(make.at(x, first), length) for x in starts], parts)
            for k, column in enumerate(columns):
                # `first` counts parts: times ts, numbers from row to row, it is already in parts.
                line = first * ts + rows.parts_of(ts * k + first_line)
                make.put(change(column), make.at(target, line))

        by(make, rows.parts_of(depth), square)

    count = lines + (lanes - 1)
    make.writer.count_up(make.number(0), count.round_down(lanes), lanes, group)
    return make.text(f"{name}(ptr %from, i64 %fs, ptr %to, i64 %ts, i64 %lines, i64 %depth)")


def changed_function(shape: Shape, name: str, change: Callable[[Value], Value]) -> str:
    """Copies `rows` rows of `width` elements with a change, a function of vectors."""
    make = maker(shape)
    (source, target), (fs, ts, rows, width) = make.pointers("from to"), make.sizes("fs ts rows width")

    def row(number: Value) -> None:
        start, end = make.at(source, number * fs), make.at(target, number * ts)

        def piece(first: Value, length: Value | None) -> None:
            make.put(change(make.vector(make.at(start, first), length)), make.at(end, first), length)

        by_vectors(make, width, piece)

    make.each(rows, row)
    return make.text(f"{name}(ptr %from, i64 %fs, ptr %to, i64 %ts, i64 %rows, i64 %width)")


def inverse_function(shape: Shape, numbers: Numbers, block: int) -> str:
    """The inverse of a lower triangle of up to `block` rows, with the steps rs and cs.

    Column i is written at place c0 + i·dc of rows vs apart. With negative steps an upper triangle
    is read, and its inverse written, from the last row and column to the first.
    unit: the diagonal counts as ones, and is not read
    """
    rows = rows_maker(shape, numbers)
    make, writer = rows.make, rows.make.writer
    d, v = make.pointers("d v")
    rs, cs, vs, c0, dc, count = make.sizes("rs cs vs c0 dc count")
    slots = [writer.allocate(shape.vector) for _ in range(block // rows.lanes)]
    places = writer.iota(shape.lanes, "i64")

    def row(i: Value) -> None:
        diagonal = writer.splat(rows.parts_of(c0 + i * dc), shape.lanes)
        for k, slot in enumerate(slots):
            # Row i of the inverse is (row i of the identity - sum of d[i, p] row p of the inverse)
            # / d[i, i], for p < i.
            is_diagonal = (places + k * shape.lanes).compare("eq", diagonal)
            writer.store(writer.select(is_diagonal, writer.constant(shape.vector, 1.0), 0.0), slot)

        def less(p: Value) -> None:
            factor = rows.splats(rows.negative(rows.read(rows.at(d, i * rs + p * cs))))
            for k, slot in enumerate(slots):
                before = numbers.turns(make.vector(make.at(rows.at(v, p * vs), k * shape.lanes)))
                writer.store(rows.plus(writer.load(shape.vector, slot), factor, before), slot)

        make.each(i, less)

        def put_row(divisor: Number | None) -> None:
            for k, slot in enumerate(slots):
                value = writer.load(shape.vector, slot)
                value = value if divisor is None else numbers.quotients(value, divisor)
                make.put(value, make.at(rows.at(v, i * vs), k * shape.lanes))

        def divided() -> None:
            put_row(rows.splats(numbers.divisor(rows.read(rows.at(d, i * (rs + cs))))))

        writer.either(make.flag("unit"), lambda: put_row(None), divided)

    make.each(count, row)
    return make.text("inverse(ptr %d, i64 %rs, i64 %cs, ptr %v, i64 %vs, i64 %c0, i64 %dc, i64 %count, i1 %unit)")
