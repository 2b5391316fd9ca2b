"""The Cholesky factor of one matrix, by blocks of columns, left-looking.

A block of columns loses its product with the rows before it; its triangle is factored, and what is
below is multiplied by the inverse of that. The triangle is factored as rows of Lᵀ, so that vectors
lie along rows. Only the lower triangle is read. A pivot that is not positive becomes NaN, which
reaches everything after it.
Source: Golub & Van Loan 4e, §4.2.
"""

from __future__ import annotations

from rune.backends.cpu.gemm.tile import Maker, Shape, least, maker
from rune.lowering.codegen.llvm_text import Value

DEPTH = 512  # earlier columns that are packed together
GROUP = 48  # rows below the triangle that are multiplied together


def root_of(make: Maker, pivot: Value) -> Value:
    """The root of a pivot, NaN where it is not positive."""
    writer = make.writer
    positive = writer.select(pivot > 0.0, pivot, float("nan"))
    return writer.intrinsic("sqrt", pivot.type, positive)


def triangle_function(shape: Shape, block: int) -> str:
    """The upper triangle U of rows `block` apart, A = Uᵀ U, in place; zeros below it."""
    make = maker(shape)
    writer, lanes, (t,), (count,) = make.writer, shape.lanes, make.pointers("t"), make.sizes("count")
    places = writer.iota(lanes, "i64")

    def vectors_from(first: Value) -> Value:
        return first - first.binary("urem", first, lanes)

    def step(j: Value) -> None:
        pivot_row = make.at(t, j * block)
        root = root_of(make, make.scalar(make.at(pivot_row, j)))
        factor, root = writer.splat(root.like(1.0) / root, lanes), writer.splat(root, lanes)
        here = writer.splat(j, lanes)
        start = vectors_from(j)

        def clear(at: Value) -> None:
            make.put(writer.constant(shape.vector, 0.0), make.at(pivot_row, at))

        def scale(at: Value) -> None:
            place = writer.splat(at, lanes) + places
            value = make.vector(make.at(pivot_row, at)) * factor
            value = writer.select(place.equals(here), root, value)
            make.put(writer.select(place < here, 0.0, value), make.at(pivot_row, at))

        writer.count_up(make.number(0), start, lanes, clear)
        writer.count_up(start, count, lanes, scale)

        def update(i: Value) -> None:
            negative = -writer.splat(make.scalar(make.at(pivot_row, i)), lanes)
            row = make.at(t, i * block)

            def piece(at: Value) -> None:
                value = make.vector(make.at(row, at))
                make.put(negative.fma(make.vector(make.at(pivot_row, at)), value), make.at(row, at))

            writer.count_up(vectors_from(i), count, lanes, piece)

        writer.count_up(j + 1, count, 1, update)

    make.each(count, step)
    return make.text("triangle(ptr %t, i64 %count)")


def cholesky_function(shape: Shape, block: int) -> str:
    """Matrices begin..end of a batch, [n, n] each."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("words")
    source, target = (writer.load("ptr", make.at(words, k, "i64")) for k in range(2))
    n = writer.load("i64", make.at(words, 2, "i64"))
    triangle, inverse, factor = (scratch(make, block * (block + shape.lanes)) for _ in range(3))
    packed, rows = scratch(make, block * (DEPTH + shape.lanes)), scratch(make, block * (GROUP + 1))
    begin, end = make.sizes("begin end")
    step, watch = make.number(block), make.watch_of(words)

    def one(number: Value) -> None:
        a, out = make.at(source, number * n * n), make.at(target, number * n * n)

        def columns(start: Value) -> None:
            width = least(n - start, block)
            corner, height = make.at(out, start * (n + 1)), n - start
            make.call("copied", make.at(a, start * (n + 1)), n, corner, n, height, width)

            def less_products(p: Value) -> None:
                depth, lines = least(start - p, DEPTH), make.at(out, start * n + p)
                make.call("negated_transposed", lines, n, packed, step, width, depth)
                tiles(make, (lines, n, make.number(1)), (packed, step), (corner, n), (height, width, depth), True)

            writer.count_up(make.number(0), start, DEPTH, less_products)
            make.call("transposed", corner, n, triangle, step, width, width)
            make.call("triangle", triangle, width)
            make.call("transposed", triangle, step, factor, step, width, width)
            make.call("copied", factor, step, corner, n, width, width)
            _clear_right(make, make.at(corner, width), n, width, height - width)
            last = width - 1
            d, v = (make.at(x, last * (block + y)) for x, y in ((triangle, 1), (inverse, 0)))
            back = make.number(-block)
            no = Value(writer, "i1", "false")
            make.call("inverse", d, back, make.number(-1), v, back, last, make.number(-1), width, no)

            def below(first: Value) -> None:
                count, at = least(n - first, GROUP), make.at(out, first * n + start)
                make.call("copied", at, n, rows, step, count, width)
                tiles(make, (rows, step, make.number(1)), (inverse, step), (at, n), (count, width, width), False)

            writer.count_up(start + width, n, GROUP, below)

        writer.count_up(make.number(0), n, block, make.watched(watch, columns))
        spoil_failed(make, out, n)

    writer.count_up(begin, end, 1, make.watched(watch, one))
    return make.text("cholesky_task(ptr %words, i64 %begin, i64 %end)")


def scratch(make: Maker, count: int) -> Value:
    """Memory of this function for so many elements."""
    return make.writer.allocate(make.shape.scalar, count)


def tiles(
    make: Maker,
    lhs: tuple[Value, Value, Value],
    rhs: tuple[Value, Value],
    out: tuple[Value, Value],
    sizes: tuple[Value, Value, Value],
    adds: bool,
) -> None:
    """out = lhs @ rhs, or += it: a pointer and steps of each, and height, width and depth."""
    flag = Value(make.writer, "i1", "true" if adds else "false")
    make.call_piece("tiles", *lhs, *rhs, *out, *sizes, make.number(make.shape.vectors), flag)


def _clear_right(make: Maker, at: Value, step: Value, rows: Value, count: Value) -> None:
    """Zeros right of a triangle."""
    writer = make.writer
    zero, no = Value(writer, "i8", "0"), Value(writer, "i1", "false")
    nbytes = count * make.shape.bytes
    make.each(rows, lambda i: writer.run("@llvm.memset.p0.i64", make.at(at, i * step), zero, nbytes, no))


def spoil_failed(make: Maker, out: Value, n: Value) -> None:
    """NaN in the whole triangle where something failed: it has reached the last element."""
    last = make.scalar(make.at(out, n * n - 1))

    def spoil() -> None:
        nan = make.writer.constant(make.shape.scalar, float("nan"))
        make.each(n, lambda i: make.each(i + 1, lambda j: make.writer.store(nan, make.at(out, i * n + j))))

    make.writer.either(last.is_nan(), spoil)
