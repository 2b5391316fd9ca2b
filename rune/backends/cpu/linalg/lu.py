"""P A = L U of one matrix with partial pivoting, right-looking by blocks of columns.

A block of columns is copied to scratch memory, where its rows are close together, and eliminated
column by column. Its exchanges are applied to all other columns. Rows of U are products with the
inverse of its unit triangle, or are computed by substitution if a product is not finite. Then the
product of both is subtracted from the remaining rows and columns.
Source: Golub & Van Loan 4e, §3.4.
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, by_vectors, least, maker
from rune.backends.cpu.linalg.numbers import Number, Numbers
from rune.backends.cpu.linalg.rows import rows_maker
from rune.lowering.codegen.llvm.ir.names import bits_type, suffix
from rune.lowering.codegen.llvm.ir.text import Value

# The bits that follow those of infinity.
_FIRST_NAN = {"i32": 0x7F800001, "i64": 0x7FF0000000000001}
WIDTH = 64  # the most parts of columns right of a block that are updated at once


def eliminate_function(shape: Shape, numbers: Numbers, block: int) -> str:
    """Eliminates columns 0..width of rows `block` apart. Row k is exchanged with row pivots[k]."""
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    (p, pivots, sizes), (height, width, base) = make.pointers("p pivots sizes"), make.sizes("height width base")
    firsts = range(0, block * of.parts, shape.lanes)
    places = [writer.iota(shape.lanes, "i64") + k for k in firsts]

    def measure(j: Value, i: Value) -> None:
        # Sizes are contiguous, so that vectors can search them. j may be one past the block's last
        # column; these sizes are not used.
        number = of.read(of.at(p, i * block + least(j, block - 1)))
        writer.store(numbers.size(number), make.at(sizes, i))

    def column(j: Value) -> None:
        pivot_row = _greatest(make, sizes, j, height)
        writer.store((pivot_row + base).cast("trunc", "i32"), make.at(pivots, j, "i32"))
        _exchange(make, of.at(p, j * block), of.at(p, pivot_row * block), make.number(block * of.parts))
        diagonal = [writer.splat(of.parts_of(j) + k, shape.lanes) for k in range(of.parts)]
        row = of.at(p, j * block)
        right = [make.vector(make.at(row, k)) for k in firsts]
        turns = [numbers.turns(writer.select(x > diagonal[-1], y, 0.0)) for x, y in zip(places, right, strict=True)]
        pivot = of.read(of.at(row, j))

        def below(divisor: Number, i: Value) -> None:
            line = of.at(p, i * block)
            factor = of.splats(numbers.quotient(of.read(of.at(line, j)), divisor))
            for k, place, upper in zip(firsts, places, turns, strict=True):
                before = make.vector(make.at(line, k))
                # Finished columns are kept: zero times a factor that is not finite would be NaN.
                value = writer.select(place > diagonal[-1], of.plus(before, of.negative(factor), upper), before)
                for part, at in zip(factor, diagonal, strict=True):
                    value = writer.select(place.equals(at), part, value)
                make.put(value, make.at(line, k))
            measure(j + 1, i)

        def eliminate() -> None:
            writer.count_up(j + 1, height, 1, partial(below, numbers.divisor(pivot)))

        def skip() -> None:
            writer.count_up(j + 1, height, 1, partial(measure, j + 1))

        # If the pivot is zero, so are all below it, and the column stays.
        writer.either(numbers.is_zero(pivot), skip, eliminate)

    make.put(writer.constant(shape.vector, 0.0), make.at(sizes, height))  # no row comes after the last
    make.each(height, partial(measure, make.number(0)))
    make.each(least(width, height), column)
    return make.text("eliminate(ptr %p, ptr %pivots, ptr %sizes, i64 %height, i64 %width, i64 %base)")


def _greatest(make: Maker, sizes: Value, j: Value, height: Value) -> Value:
    """The first row of j..height with the greatest size. NaN counts as the greatest.

    Sizes are not negative, so their bits, compared as integers, have the same order. All NaNs are
    replaced by the least one, so that the first NaN is found.
    """
    writer, lanes = make.writer, make.shape.lanes
    bits = bits_type(make.shape.scalar)
    vector, (greatest, rows) = f"<{lanes} x {bits}>", (writer.allocate(f"<{lanes} x {bits}>") for _ in range(2))
    first, nan = j.cast("trunc", bits), writer.constant(vector, _FIRST_NAN[bits])
    writer.store(writer.constant(vector, 0), greatest)
    writer.store(writer.splat(first, lanes), rows)

    def compare(number: Value) -> None:
        at = j + number * lanes
        size, best = writer.load(vector, make.at(sizes, at), make.shape.bytes), writer.load(vector, greatest)
        size = size.call("umin", nan)
        is_more, start = size.compare("ugt", best), writer.splat(at.cast("trunc", bits), lanes)
        writer.store(writer.select(is_more, size, best), greatest)
        writer.store(writer.select(is_more, start + writer.iota(lanes, bits), writer.load(vector, rows)), rows)

    make.each(block_count(height - j, lanes), compare)
    best, row = writer.load(vector, greatest), writer.load(vector, rows)
    most = writer.splat(_of_lanes(best, "umax"), lanes)
    first_row = _of_lanes(writer.select(best.equals(most), row, writer.constant(vector, -1)), "umin")
    return first_row.cast("zext", "i64")


def _of_lanes(value: Value, kind: str) -> Value:
    """The greatest (umax) or least (umin) of the lanes."""
    return value.writer.call(value.scalar_type, f"@llvm.vector.reduce.{kind}.{suffix(value.type)}", value)


def is_greater(value: Value, best: Value) -> Value:
    """Whether a size is greater than the best so far. NaN is greater than any number."""
    # "ugt" is also true for NaN; a best that is NaN stays, as the first one counts.
    return value.compare("ugt", best) & best.compare("ord", best)


def _exchange(make: Maker, first: Value, second: Value, count: Value) -> None:
    """Exchange the elements of two rows, which may be the same row."""

    def piece(at: Value, length: Value | None) -> None:
        places = [make.at(x, at) for x in (first, second)]
        values = [make.vector(x, length) for x in places]
        for value, place in zip(values, reversed(places), strict=True):
            make.put(value, place, length)

    by_vectors(make, count, piece)


def exchange_function(shape: Shape) -> str:
    """Exchanges rows of `count` elements, `step` apart: row k with row pivots[k] - base."""
    make = maker(shape)
    writer, (at, pivots) = make.writer, make.pointers("at pivots")
    step, base, rows, count = make.sizes("step base rows count")

    def row(k: Value) -> None:
        other = writer.load("i32", make.at(pivots, k, "i32")).cast("sext", "i64") - base
        different = other.compare("ne", k)
        writer.either(different, lambda: _exchange(make, make.at(at, k * step), make.at(at, other * step), count))

    make.each(rows, row)
    return make.text("exchange(ptr %at, ptr %pivots, i64 %step, i64 %base, i64 %rows, i64 %count)")


def order_function(shape: Shape) -> str:
    """The permutation of `height` rows that results from `count` exchanges in order."""
    make = maker(shape)
    writer, (pivots, order), (height, count) = make.writer, make.pointers("pivots order"), make.sizes("height count")
    make.each(height, lambda i: writer.store(i.cast("trunc", "i32"), make.at(order, i, "i32")))

    def exchange(k: Value) -> None:
        other = writer.load("i32", make.at(pivots, k, "i32")).cast("sext", "i64")
        places = [make.at(order, x, "i32") for x in (k, other)]
        values = [writer.load("i32", x) for x in places]
        for value, place in zip(values, reversed(places), strict=True):
            writer.store(value, place)

    make.each(count, exchange)
    return make.text("order(ptr %pivots, ptr %order, i64 %height, i64 %count)")


def lu_function(shape: Shape, numbers: Numbers, block: int, most: int) -> str:
    """Factors the matrices begin..end of a batch, each [m, n], with at most `most` rows."""
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    (source, target, swaps, orders), (m, n), watch = make.words_of_task(4, 2)
    count, most_columns = least(m, n), WIDTH // of.parts
    panel, inverse = of.scratch(most * block), of.scratch(block * block)
    right, upper = (of.right(block, most_columns) for _ in range(2))
    sizes = writer.allocate(shape.scalar, most + shape.lanes)
    step, one_step, yes = make.number(block), make.number(1), Value(writer, "i1", "true")
    # Their last vectors are rarely full, and whole vectors are read.
    for rows in (right, upper):
        make.clear(rows.at, make.number(block * WIDTH * shape.bytes))

    def one(number: Value) -> None:
        out, pivots = of.at(target, number * m * n), make.at(swaps, number * count, "i32")
        order = make.at(orders, number * m, "i32")
        make.copy(out, of.at(source, number * m * n), of.parts_of(m * n * shape.bytes))

        def columns(start: Value) -> None:
            width, height = least(count - start, block), m - start
            line, block_pivots = of.at(out, start * n), make.at(pivots, start, "i32")
            corner, end = of.at(line, start), start + width
            of.copied("copied", corner, n, panel, step, height, width)
            make.call("eliminate", panel, block_pivots, sizes, height, width, start)
            of.copied("copied", panel, step, corner, n, height, width)
            row = of.parts_of(n)
            make.call("exchange", line, block_pivots, row, start, width, of.parts_of(start))
            make.call("exchange", of.at(line, end), block_pivots, row, start, width, of.parts_of(n - end))
            make.call("inverse", panel, step, one_step, inverse, step, make.number(0), one_step, width, yes)

            def update(first: Value) -> None:
                column_count, top = least(n - first, most_columns), of.at(line, first)
                of.copied("copied", top, n, right.at, right.step, width, column_count)
                of.turn(right, width, column_count)
                of.tiles((inverse, step, one_step), right, (upper.at, upper.step), (width, column_count, width), False)
                whole_parts = column_count + (of.lanes - 1)
                whole_parts = of.parts_of(whole_parts.round_down(of.lanes))
                arguments = (right.at, upper.at, upper.step, width, whole_parts, yes)
                make.call("substitute_unless_finite", panel, step, one_step, *arguments)
                of.copied("copied", upper.at, upper.step, top, n, width, column_count)
                of.copied("negated", upper.at, upper.step, right.at, right.step, width, column_count)
                of.turn(right, width, column_count)
                below, lhs = of.at(top, width * n), (of.at(panel, width * block), step, one_step)
                sizes = (height - width, column_count, width)
                writer.either(height > width, lambda: of.tiles(lhs, right, (below, n), sizes, True))

            writer.count_up(end, n, most_columns, update)

        writer.count_up(make.number(0), count, block, make.watched(watch, columns))
        make.call("order", pivots, order, m, count)

    return make.task("lu", watch, one)
