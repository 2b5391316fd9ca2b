"""Packing of operands of a matrix product, in LLVM IR: B to panels, a transposed A to rows.

The contents of lanes beyond the columns, and of rows beyond the depth, do not matter: they are not
read, or the next panel overwrites them.
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, each_panel, least, maker
from rune.lowering.codegen.llvm.ir.text import Value


def pack_function(shape: Shape) -> str:
    """Copy `depth` x `columns` of B to panels: the rows of one panel, then those of the next.

    The rows of a panel have as many vectors as its columns need.
    """
    make = maker(shape)
    b, to = make.pointers("b to")
    row_step, column_step, depth, columns = make.sizes("rs cs depth columns")
    # copy1, copy2, ... are neighbours in the table.
    first_copy = shape.pieces.index("copy1") - 1

    def panel(first: Value, wide: Value, vectors: Value) -> None:
        source, target = make.at(b, first * column_step), make.at(to, first * depth)

        def copied() -> None:
            tail = wide - (vectors - 1) * shape.lanes
            make.call_piece(vectors + first_copy, source, row_step, target, depth, tail)

        def transposed() -> None:
            make.call_piece("transposed", source, column_step, target, depth, wide, vectors)

        make.writer.either(column_step.equals(1), copied, transposed)

    each_panel(make, columns, panel)
    return make.text("pack(ptr %b, i64 %rs, i64 %cs, ptr %to, i64 %depth, i64 %columns, i64 %most)")


def copy_function(shape: Shape, vectors: int) -> str:
    """Copy a panel of `vectors` vectors row by row; of the last vector `tail` lanes."""
    make = maker(shape)
    source, target = make.pointers("b to")
    row_step, depth, tail = make.sizes("rs depth tail")

    def rows(count: Value | None) -> None:
        def row(p: Value) -> None:
            for v in range(vectors):
                at = v * shape.lanes
                elements = make.vector(make.at(source, p * row_step + at), count if v == vectors - 1 else None)
                make.put(elements, make.at(target, p * (vectors * shape.lanes) + at))

        make.each(depth, row)

    # Masks cost nothing here, and the loop is compiled once.
    if shape.masked:
        rows(tail)
    else:
        make.writer.either(tail.equals(shape.lanes), partial(rows, None), partial(rows, tail))
    return make.text(f"copy{vectors}(ptr %b, i64 %rs, ptr %to, i64 %depth, i64 %tail)")


def transposed_function(shape: Shape) -> str:
    """Pack a panel whose columns are contiguous, by squares."""
    make = maker(shape)
    writer, lanes, (source, target) = make.writer, shape.lanes, make.pointers("b to")
    column_step, depth, columns, vectors = make.sizes("cs depth columns vectors")
    places, step = writer.allocate("i64", lanes), vectors * lanes

    def vector(v: Value) -> None:
        _put_places(make, places, v * lanes, columns, column_step)

        def square(number: Value) -> None:
            p = number * lanes
            at, count = make.at(target, p * step + v * lanes), least(depth - p, lanes)
            make.call_piece("square", make.at(source, p), places, count, at, step)

        make.each(block_count(depth, lanes), square)

    make.each(vectors, vector)
    return make.text("transposed(ptr %b, i64 %cs, ptr %to, i64 %depth, i64 %columns, i64 %vectors)")


def _put_places(make: Maker, places: Value, first: Value, count: Value, step: Value) -> None:
    """The offsets of a square's lines; those beyond the last repeat it."""
    writer, lanes = make.writer, make.shape.lanes
    numbers = writer.splat(first, lanes) + writer.iota(lanes, "i64")
    last, steps = writer.splat(count - 1, lanes), writer.splat(step, lanes)
    # So every lane reads memory that exists, and what it reads is never used.
    existing_lines = writer.select(numbers < last, numbers, last)
    writer.store(existing_lines * steps, places)


def square_function(shape: Shape) -> str:
    """`count` elements of as many lines as a vector has lanes, transposed to rows `step` apart."""
    make = maker(shape)
    source, places, target = make.pointers("from places to")
    count, step = make.sizes("count step")
    offsets = [make.writer.load("i64", make.at(places, k, "i64")) for k in range(shape.lanes)]
    lines = [make.at(source, x) for x in offsets]

    def put(known: Value | None) -> None:
        for k, line in enumerate(transpose([make.vector(x, known) for x in lines])):
            make.put(line, make.at(target, step * k))

    # As in `copy_function`: with masks one text serves full and partial squares.
    if shape.masked:
        put(count)
    else:
        make.writer.either(count.equals(shape.lanes), partial(put, None), partial(put, count))
    return make.text("square(ptr %from, ptr %places, i64 %count, ptr %to, i64 %step)")


def plain_square_function(shape: Shape) -> str:
    """The same, element by element, for drafts: LLVM compiles it in a twentieth of the time."""
    make = maker(shape)
    source, places, target = make.pointers("from places to")
    (count, step), writer = make.sizes("count step"), make.writer
    lanes, zero = make.number(shape.lanes), writer.constant(shape.scalar, 0.0)

    def line(j: Value) -> None:
        start = make.at(source, writer.load("i64", make.at(places, j, "i64")))

        def put(k: Value, value: Value) -> None:
            writer.store(value, make.at(target, step * k + j))

        make.each(count, lambda k: put(k, writer.load(shape.scalar, make.at(start, k))))
        make.each(lanes - count, lambda k: put(k + count, zero))

    make.each(lanes, line)
    return make.text("square(ptr %from, ptr %places, i64 %count, ptr %to, i64 %step)")


def transpose(lines: list[Value], parts: int = 1) -> list[Value]:
    """The columns of a square of vectors, by exchanging halves, quarters, and so on.

    parts: neighbouring lanes that stay together
    Where lines are longer than there are many, they are squares side by side.
    """
    count, writer = lines[0].lanes // parts, lines[0].writer
    distance = len(lines) // 2
    while distance:
        # A round exchanges the off-diagonal blocks of `distance` rows, in registers alone.
        low = _lanes_of(parts, [k if not k & distance else k - distance + count for k in range(count)])
        high = _lanes_of(parts, [k + distance if not k & distance else k + count for k in range(count)])
        exchanged_lines = list(lines)
        for i in (k for k in range(len(lines)) if not k & distance):
            a, b = lines[i], lines[i + distance]
            exchanged_lines[i] = writer.shuffle(a, b, low)
            exchanged_lines[i + distance] = writer.shuffle(a, b, high)
        lines, distance = exchanged_lines, distance // 2
    return lines


def _lanes_of(parts: int, places: list[int]) -> list[int]:
    return [parts * k + part for k in places for part in range(parts)]


def pack_rows_function(shape: Shape) -> str:
    """Copy `height` rows x `depth` of a transposed A to rows `to_step` apart, by squares.

    A square may write beyond its row, and rows beyond the last: that memory is not yet used.
    """
    make = maker(shape)
    writer, lanes, (source, target) = make.writer, shape.lanes, make.pointers("a to")
    step, to_step, depth, height = make.sizes("cs to_step depth height")
    places = writer.allocate("i64", lanes)

    def lines(number: Value) -> None:  # its rows of A stay in the cache until all squares are done
        p = number * lanes
        _put_places(make, places, p, depth, step)

        def square(number: Value) -> None:
            i = number * lanes
            at, count = make.at(target, i * to_step + p), least(height - i, lanes)
            make.call_piece("square", make.at(source, i), places, count, at, to_step)

        make.each(block_count(height, lanes), square)

    make.each(block_count(depth, lanes), lines)
    return make.text("pack_rows(ptr %a, i64 %cs, ptr %to, i64 %to_step, i64 %depth, i64 %height)")
