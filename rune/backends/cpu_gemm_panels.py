"""Packing of dense operands of a matrix product, in LLVM IR: B to panels, a transposed A to rows.

What stands in lanes beyond the columns, and in rows beyond the depth, is of no consequence: nobody
reads it, or the next panel overwrites it.
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu_gemm_tile import Maker, Shape, block_count, each_panel, least, maker
from rune.lowering.codegen.llvm_text import Value


def pack_function(shape: Shape) -> str:
    """Copy `depth` x `columns` of B to panels: the rows of one panel, then those of the next.

    The rows of a panel have as many vectors as its columns need.
    """
    make = maker(shape)
    source, target = make.pointers("b to")
    depth, columns, column_step = make.sizes("depth columns cs")

    def panel(first: Value, wide: Value, vectors: Value) -> None:
        start = make.at(target, first * depth)

        def vector(v: Value) -> None:
            done = v * shape.lanes
            take = make.at(source, (first + done) * column_step)
            alive = least(wide - done, shape.lanes)
            _pack_vector(make, take, make.at(start, done), vectors * shape.lanes, alive)

        def copied(count: int) -> None:
            _copy_panel(make, make.at(source, first), start, count)

        def copied_or_not(count: int) -> None:
            whole = column_step.equals(1) & wide.equals(count * shape.lanes)
            rest = partial(copied_or_not, count - 1) if count == shape.vectors else each_vector
            make.writer.either(whole, partial(copied, count), rest)

        def each_vector() -> None:
            make.each(vectors, vector)

        copied_or_not(shape.vectors)

    each_panel(make, columns, panel)
    return make.text("pack(ptr %b, i64 %rs, i64 %cs, ptr %to, i64 %depth, i64 %columns, i64 %most)")


def _copy_panel(make: Maker, take: Value, put: Value, vectors: int) -> None:
    """A panel of whole vectors, row by row."""
    (depth, row_step), columns = make.sizes("depth rs"), vectors * make.shape.lanes

    def row(p: Value) -> None:
        source, target = make.at(take, p * row_step), make.at(put, p * columns)
        for v in range(0, columns, make.shape.lanes):
            make.put(make.vector(make.at(source, v)), make.at(target, v))

    make.each(depth, row)


def _pack_vector(make: Maker, take: Value, put: Value, step: Value, alive: Value) -> None:
    """One vector of columns, all rows: copied where its rows are contiguous, else transposed."""
    writer, lanes = make.writer, make.shape.lanes
    depth, row_step, column_step = make.sizes("depth rs cs")

    def copied(count: Value | None) -> None:
        def row(p: Value) -> None:
            make.put(make.vector(make.at(take, p * row_step), count), make.at(put, p * step))

        make.each(depth, row)

    def transposed(block: Value, count: Value | None) -> None:
        first = block * lanes
        places = [least(alive - 1, k) * column_step + first for k in range(lanes)]
        lines = [make.vector(make.at(take, x), count) for x in places]
        for k, line in enumerate(transpose(lines)):
            make.put(line, make.at(put, (first + k) * step))

    def all_transposed() -> None:
        if make.shape.masked:
            blocks = block_count(depth, lanes)
            make.each(blocks, lambda x: transposed(x, least(depth - x * lanes, lanes)))
            return
        full = depth.binary("udiv", depth, lanes)
        rest = depth - full * lanes
        make.each(full, lambda block: transposed(block, None))
        writer.either(rest > 0, lambda: transposed(full, rest))

    def contiguous() -> None:
        writer.either(alive.equals(lanes), lambda: copied(None), lambda: copied(alive))

    writer.either(column_step.equals(1), contiguous, all_transposed)


def transpose(lines: list[Value]) -> list[Value]:
    """The columns of a square of vectors, by exchanging halves, quarters, and so on."""
    count, writer = len(lines), lines[0].writer
    distance = count // 2
    while distance:
        low = [k if not k & distance else k - distance + count for k in range(count)]
        high = [k + distance if not k & distance else k + count for k in range(count)]
        swapped = list(lines)
        for i in (k for k in range(count) if not k & distance):
            a, b = lines[i], lines[i + distance]
            swapped[i] = writer.shuffle(a, b, low)
            swapped[i + distance] = writer.shuffle(a, b, high)
        lines, distance = swapped, distance // 2
    return lines


def pack_rows_function(shape: Shape) -> str:
    """Copy `height` rows x `depth` of a transposed A to rows that lie `to_step` apart, by squares.

    A square may write beyond its row, and rows beyond the last: nothing is there yet.
    """
    make = maker(shape)
    writer, lanes, (source, target) = make.writer, shape.lanes, make.pointers("a to")
    step, to_step, depth, height = make.sizes("cs to_step depth height")

    def square(i: Value, number: Value) -> None:
        p = number * lanes
        places = [least(depth - 1, p + k) * step + i for k in range(lanes)]

        def copied(count: Value | None) -> None:
            lines = transpose([make.vector(make.at(source, x), count) for x in places])
            for k, line in enumerate(lines):
                make.put(line, make.at(target, (i + k) * to_step + p))

        alive = least(height - i, lanes)
        writer.either(alive.equals(lanes), lambda: copied(None), lambda: copied(alive))

    def some_rows(number: Value) -> None:
        make.each(block_count(depth, lanes), partial(square, number * lanes))

    make.each(block_count(height, lanes), some_rows)
    return make.text("pack_rows(ptr %a, i64 %cs, ptr %to, i64 %to_step, i64 %depth, i64 %height)")
