"""P A = L U of one matrix with partial pivoting, right-looking by blocks of columns.

A block of columns is copied to where its rows are close, and eliminated column by column; its
exchanges are done to all other columns; rows of U come by the inverse of its unit triangle, and
what remains loses a product.
Source: Golub & Van Loan 4e, §3.4.
"""

from __future__ import annotations

from rune.backends.cpu.gemm.tile import Maker, Shape, least, maker
from rune.backends.cpu.linalg.cholesky import scratch, tiles
from rune.backends.cpu.linalg.moves import by_vectors, put
from rune.lowering.codegen.llvm_text import Value

WIDTH = 64  # columns right of a block that are updated together


def eliminate_function(shape: Shape, block: int) -> str:
    """Columns 0..width of rows that lie `block` apart; row k was exchanged with row pivots[k]."""
    make = maker(shape)
    writer, (p, pivots) = make.writer, make.pointers("p pivots")
    height, width, base = make.sizes("height width base")
    places = [writer.iota(shape.lanes, "i64") + k for k in range(0, block, shape.lanes)]
    firsts = range(0, block, shape.lanes)

    def column(j: Value) -> None:
        chosen = _greatest(make, p, j, height, block)
        writer.store((chosen + base).cast("trunc", "i32"), make.at(pivots, j, "i32"))
        _exchange(make, make.at(p, j * block), make.at(p, chosen * block), make.number(block))
        here = writer.splat(j, shape.lanes)
        rows = [make.vector(make.at(p, j * block + k)) for k in firsts]
        pivot_row = [writer.select(x > here, row, 0.0) for x, row in zip(places, rows, strict=True)]
        pivot = make.scalar(make.at(p, j * block + j))

        def below(i: Value) -> None:
            row = make.at(p, i * block)
            factor = writer.splat(make.scalar(make.at(row, j)) / pivot, shape.lanes)
            for k, place, upper in zip(firsts, places, pivot_row, strict=True):
                value = (-factor).fma(upper, make.vector(make.at(row, k)))
                make.put(writer.select(place.equals(here), factor, value), make.at(row, k))

        # Where all are zero the column stays as it is.
        writer.either(pivot.compare("une", 0.0), lambda: writer.count_up(j + 1, height, 1, below))

    make.each(least(width, height), column)
    return make.text("eliminate(ptr %p, ptr %pivots, i64 %height, i64 %width, i64 %base)")


def _greatest(make: Maker, p: Value, j: Value, height: Value, block: int) -> Value:
    """The first row from j on with the greatest size in column j; NaN counts as greatest."""
    writer = make.writer
    place, size = writer.allocate("i64"), writer.allocate(make.shape.scalar)
    writer.store(j, place)
    writer.store(make.scalar(make.at(p, j * block + j)).abs(), size)

    def compare(i: Value) -> None:
        value, best = make.scalar(make.at(p, i * block + j)).abs(), writer.load(make.shape.scalar, size)
        is_more = is_greater(value, best)
        writer.store(writer.select(is_more, value, best), size)
        writer.store(writer.select(is_more, i, writer.load("i64", place)), place)

    writer.count_up(j + 1, height, 1, compare)
    return writer.load("i64", place)


def is_greater(value: Value, best: Value) -> Value:
    """Whether a size is greater than the best of those before; NaN is greater than any number."""
    # Not less or equal, and the best is a number.
    return value.compare("ugt", best) & best.compare("ord", best)


def _exchange(make: Maker, first: Value, second: Value, count: Value) -> None:
    """Exchange the elements of two rows, which may be one."""

    def piece(at: Value, length: Value | None) -> None:
        places = [make.at(x, at) for x in (first, second)]
        values = [make.vector(x, length) for x in places]
        for value, place in zip(values, reversed(places), strict=True):
            put(make, value, place, length)

    by_vectors(make, count, piece)


def exchange_function(shape: Shape) -> str:
    """Exchanges of rows of `count` elements, `step` apart: row k with row pivots[k] - base."""
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
    """The permutation of `height` rows that comes of `count` exchanges, one after the other."""
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


def lu_function(shape: Shape, block: int, most: int) -> str:
    """Matrices begin..end of a batch, [m, n] each, of at most `most` rows."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("words")
    source, target, swaps, orders = (writer.load("ptr", make.at(words, k, "i64")) for k in range(4))
    m, n = (writer.load("i64", make.at(words, k, "i64")) for k in (4, 5))
    count, (begin, end) = least(m, n), make.sizes("begin end")
    panel, inverse = scratch(make, most * block), scratch(make, block * block)
    right = scratch(make, block * WIDTH)
    step, wide, one_step = make.number(block), make.number(WIDTH), make.number(1)
    watch = make.watch_of(words)
    yes, no = Value(writer, "i1", "true"), Value(writer, "i1", "false")

    def one(number: Value) -> None:
        out, pivots = make.at(target, number * m * n), make.at(swaps, number * count, "i32")
        order, nbytes = make.at(orders, number * m, "i32"), m * n * shape.bytes
        writer.run("@llvm.memcpy.p0.p0.i64", out, make.at(source, number * m * n), nbytes, no)

        def columns(start: Value) -> None:
            width, height = least(count - start, block), m - start
            line, here = make.at(out, start * n), make.at(pivots, start, "i32")
            corner, end = make.at(line, start), start + width
            make.call("copied", corner, n, panel, step, height, width)
            make.call("eliminate", panel, here, height, width, start)
            make.call("copied", panel, step, corner, n, height, width)
            make.call("exchange", line, here, n, start, width, start)
            make.call("exchange", make.at(line, end), here, n, start, width, n - end)
            make.call("inverse", panel, step, one_step, inverse, step, make.number(0), one_step, width, yes)

            def update(first: Value) -> None:
                some, top = least(n - first, WIDTH), make.at(line, first)
                make.call("copied", top, n, right, wide, width, some)
                tiles(make, (inverse, step, one_step), (right, wide), (top, n), (width, some, width), False)
                make.call("negated", top, n, right, wide, width, some)
                below, lhs = make.at(top, width * n), (make.at(panel, width * block), step, one_step)
                more = height > width
                sizes = (height - width, some, width)
                writer.either(more, lambda: tiles(make, lhs, (right, wide), (below, n), sizes, True))

            writer.count_up(end, n, WIDTH, update)

        writer.count_up(make.number(0), count, block, make.watched(watch, columns))
        make.call("order", pivots, order, m, count)

    writer.count_up(begin, end, 1, make.watched(watch, one))
    return make.text("lu_task(ptr %words, i64 %begin, i64 %end)")
