"""Householder reflections of one matrix: a factorisation by blocks of columns, and their product.

A block of columns lies transposed in scratch memory, so that vectors lie along a column. Its
reflections are H₁ H₂ … = I - V T Vᵀ; the columns v stand there with their zeros and ones, and R
apart. All other columns see products of tiles. Columns are scaled by their greatest element, so
that squares neither overflow nor vanish; signs are LAPACK's.
Source: Golub & Van Loan 4e, §5.2; Schreiber & Van Loan 1989, SIAM J. Sci. Stat. Comput. 10(1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune.backends.cpu.gemm.blocks import sum_of_lanes
from rune.backends.cpu.gemm.tile import Maker, Shape, least, maker
from rune.backends.cpu.linalg.cholesky import scratch, tiles
from rune.lowering.codegen.llvm_text import Value

WIDTH = 32  # other columns that are reflected together
TOGETHER = 4  # columns of a block that are reflected together
TINY = {"float": float(np.finfo(np.float32).tiny), "double": float(np.finfo(np.float64).tiny)}


def _from(make: Maker, first: Value, end: Value, body: Callable[[Value], None]) -> None:
    """body of each vector that has elements first..end of a column."""
    start = first - first.binary("urem", first, make.shape.lanes)
    # Rounded up by hand: a loop's step divides its span.
    span = end - start + (make.shape.lanes - 1)
    make.writer.count_up(start, start + span - span.binary("urem", span, make.shape.lanes), make.shape.lanes, body)


def _greatest_of_lanes(value: Value) -> Value:
    writer, count = value.writer, value.lanes
    while count > 1:
        count //= 2
        low, high = writer.part(value, 0, count), writer.part(value, count, count)
        value = writer.select(low > high, low, high)
    return writer.lane(value, 0)


def reflect_function(shape: Shape, block: int) -> str:
    """The reflection of column j of `width`, of `height` elements, and the columns after it.

    The column becomes v, its part of R goes to column j of `r`, and its factor to `tau`.
    """
    make = maker(shape)
    writer, (p, r, tau) = make.writer, make.pointers("p r tau")
    step, height, width, j = make.sizes("ld height width j")
    x, here, places = make.at(p, j * step), writer.splat(j, shape.lanes), writer.iota(shape.lanes, "i64")
    slot = writer.allocate(shape.vector)

    def below(at: Value) -> Value:
        return (writer.splat(at, shape.lanes) + places) > here

    def reduced(combine: Callable[[Value, Value], Value], first: Value) -> Value:
        writer.store(writer.constant(shape.vector, 0.0), slot)

        def piece(at: Value) -> None:
            value = writer.select(below(at), make.vector(make.at(x, at)), 0.0)
            writer.store(combine(value, writer.load(shape.vector, slot)), slot)

        _from(make, first, height, piece)
        return writer.load(shape.vector, slot)

    def greater(value: Value, best: Value) -> Value:
        return writer.select(value.abs() > best, value.abs(), best)

    head = make.scalar(make.at(x, j))
    size = _greatest_of_lanes(reduced(greater, j))
    size = writer.select(head.abs() > size, head.abs(), size)
    tiny = TINY[shape.scalar]
    size = writer.select(size > tiny, size, tiny)
    size = writer.select(size < 1 / tiny, size, 1 / tiny)
    inverse = size.like(1.0) / size
    wide = writer.splat(inverse, shape.lanes)
    squares = sum_of_lanes(reduced(lambda value, total: (value * wide).fma(value * wide, total), j))
    unit, nothing = head * inverse, squares.equals(0.0)
    beta = -(unit.fma(unit, squares).call("sqrt").copysign(unit))
    factor = writer.select(nothing, 0.0, (beta - unit) / beta)
    scale = writer.splat(writer.select(nothing, 0.0, unit.like(1.0) / (unit - beta)), shape.lanes)
    writer.store(factor, tau)
    make.each(j, lambda i: writer.store(make.scalar(make.at(x, i)), make.at(r, j * block + i)))
    writer.store(writer.select(nothing, head, beta * size), make.at(r, j * (block + 1)))
    make.each(j, lambda i: writer.store(head.like(0.0), make.at(x, i)))

    def normalise(at: Value) -> None:
        value = (make.vector(make.at(x, at)) * wide) * scale
        is_here = (writer.splat(at, shape.lanes) + places).equals(here)
        value = writer.select(below(at), value, writer.select(is_here, writer.constant(shape.vector, 1.0), 0.0))
        make.put(value, make.at(x, at))

    _from(make, j, height, normalise)
    _reflect_others(make, (p, x), (step, height, j), factor, j + 1, width)
    return make.text("reflect(ptr %p, ptr %r, ptr %tau, i64 %ld, i64 %height, i64 %width, i64 %j)")


def _reflect_others(
    make: Maker, arrays: tuple[Value, Value], sizes: tuple[Value, Value, Value], factor: Value, begin: Value, end: Value
) -> None:
    """Columns begin..end less their parts along v."""
    writer, shape, (p, x), (step, height, j) = make.writer, make.shape, arrays, sizes

    def several(numbers: list[Value]) -> None:
        others = [make.at(p, c * step) for c in numbers]
        totals = [-(total * factor) for total in dots(make, x, others, j, height)]
        wides = [writer.splat(total, shape.lanes) for total in totals]

        def piece(at: Value) -> None:
            v = make.vector(make.at(x, at))
            for other, wide in zip(others, wides, strict=True):
                make.put(wide.fma(v, make.vector(make.at(other, at))), make.at(other, at))

        _from(make, j, height, piece)

    in_groups(make, begin, end, several)


def in_groups(make: Maker, begin: Value, end: Value, body: Callable[[list[Value]], None]) -> None:
    """body of several numbers at once, then of one."""
    span = end - begin
    even = end - span.binary("urem", span, TOGETHER)
    make.writer.count_up(begin, even, TOGETHER, lambda i: body([i + r for r in range(TOGETHER)]))
    make.writer.count_up(even, end, 1, lambda i: body([i]))


def dots(make: Maker, x: Value, others: list[Value], first: Value, height: Value) -> list[Value]:
    """The products of a column with others, from the vector of element `first` on."""
    writer, shape = make.writer, make.shape
    slots = [writer.allocate(shape.vector) for _ in others]
    for slot in slots:
        writer.store(writer.constant(shape.vector, 0.0), slot)

    def piece(at: Value) -> None:
        value = make.vector(make.at(x, at))
        for other, slot in zip(others, slots, strict=True):
            writer.store(value.fma(make.vector(make.at(other, at)), writer.load(shape.vector, slot)), slot)

    _from(make, first, height, piece)
    return [sum_of_lanes(writer.load(shape.vector, slot)) for slot in slots]


def triangle_of_factors_function(shape: Shape, block: int) -> str:
    """T of columns v with these factors: rows `block` apart, upper triangular."""
    make = maker(shape)
    writer, (p, taus, t) = make.writer, make.pointers("p taus t")
    step, height, width = make.sizes("ld height width")
    products, total = scratch(make, block), writer.allocate(shape.scalar)

    def column(j: Value) -> None:
        tau, v = make.scalar(make.at(taus, j)), make.at(p, j * step)

        def several(numbers: list[Value]) -> None:
            values = dots(make, v, [make.at(p, i * step) for i in numbers], j, height)
            for i, value in zip(numbers, values, strict=True):
                writer.store(value, make.at(products, i))

        in_groups(make, make.number(0), j, several)

        def row(i: Value) -> None:
            writer.store(tau.like(0.0), total)

            def add(q: Value) -> None:
                factor = make.scalar(make.at(t, i * block + q))
                value = factor.fma(make.scalar(make.at(products, q)), writer.load(shape.scalar, total))
                writer.store(value, total)

            writer.count_up(i, j, 1, add)
            writer.store(-(tau * writer.load(shape.scalar, total)), make.at(t, i * block + j))
            writer.store(tau.like(0.0), make.at(t, j * block + i))

        make.each(j, row)
        writer.store(tau, make.at(t, j * (block + 1)))

    make.each(width, column)
    return make.text("triangle_of_factors(ptr %p, ptr %taus, ptr %t, i64 %ld, i64 %height, i64 %width)")


def apply_function(shape: Shape, block: int, most: int) -> str:
    """C less V T Vᵀ C, of `count` columns; T lies behind steps rs and cs, C's rows are cn apart."""
    make = maker(shape)
    (p, t, c), (step, height, width) = make.pointers("p t c"), make.sizes("ld height width")
    rs, cs, cn, count = make.sizes("rs cs cn count")
    packed = scratch(make, most * WIDTH)
    first_product, second_product = (scratch(make, block * WIDTH) for _ in range(2))
    row, one = make.number(WIDTH), make.number(1)

    def columns(first: Value) -> None:
        some, at = least(count - first, WIDTH), make.at(c, first)
        make.call("copied", at, cn, packed, row, height, some)
        tiles(make, (p, step, one), (packed, row), (first_product, row), (width, some, height), False)
        tiles(make, (t, rs, cs), (first_product, row), (second_product, row), (width, some, width), False)
        make.call("negated", second_product, row, first_product, row, width, some)
        tiles(make, (p, one, step), (first_product, row), (at, cn), (height, some, width), True)

    _by_steps(make, count, WIDTH, columns)
    return make.text(
        "apply(ptr %p, ptr %t, ptr %c, i64 %ld, i64 %height, i64 %width, i64 %rs, i64 %cs, i64 %cn, i64 %count)"
    )


def _by_steps(make: Maker, end: Value, step: int, body: Callable[[Value], None]) -> None:
    """body(0), body(step), ... below the end."""
    span = end + (step - 1)
    make.each(span.binary("udiv", span, step), lambda k: body(k * step))


def columns_function(shape: Shape) -> str:
    """`width` columns of `height` rows n apart to columns ld apart, with zeros after each."""
    make = maker(shape)
    (source, p), (n, step, height, width) = make.pointers("from p"), make.sizes("n ld height width")
    make.call("transposed", source, n, p, step, height, width)
    zero = make.writer.constant(shape.vector, 0.0)
    make.each(width, lambda c: make.put(zero, make.at(p, c * step + height)))
    return make.text("columns(ptr %from, ptr %p, i64 %n, i64 %ld, i64 %height, i64 %width)")


def geqrf_function(shape: Shape, block: int, most: int) -> str:
    """Matrices begin..end of a batch, [m, n] each: R with the vectors below it, and the factors."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("words")
    source, target, factors = (writer.load("ptr", make.at(words, k, "i64")) for k in range(3))
    m, n = (writer.load("i64", make.at(words, k, "i64")) for k in (3, 4))
    count, (begin, end) = least(m, n), make.sizes("begin end")
    step, one_step, watch = make.number(most + 2 * shape.lanes), make.number(1), make.watch_of(words)
    p = scratch(make, (block + shape.lanes) * (most + 2 * shape.lanes))
    r, t = scratch(make, block * block), scratch(make, block * block)
    no = Value(writer, "i1", "false")

    def one(number: Value) -> None:
        out, taus = make.at(target, number * m * n), make.at(factors, number * count)
        nbytes = m * n * shape.bytes
        writer.run("@llvm.memcpy.p0.p0.i64", out, make.at(source, number * m * n), nbytes, no)

        def columns(start: Value) -> None:
            width, height = least(count - start, block), m - start
            corner, here = make.at(out, start * (n + 1)), make.at(taus, start)
            make.call("columns", corner, p, n, step, height, width)
            make.each(width, lambda j: make.call("reflect", p, r, make.at(here, j), step, height, width, j))

            def more() -> None:
                make.call("triangle_of_factors", p, here, t, step, height, width)
                behind, block_step = make.at(corner, width), make.number(block)
                others = n - start - width
                make.call("apply", p, t, behind, step, height, width, one_step, block_step, n, others)

            writer.either(n > start + width, more)

            def put_column(c: Value) -> None:
                column = make.at(p, c * step)

                def element(i: Value) -> None:
                    writer.store(make.scalar(make.at(column, i)), make.at(corner, i * n + c))

                writer.count_up(c + 1, height, 1, element)
                upper = make.at(r, c * block)
                make.each(c + 1, lambda i: writer.store(make.scalar(make.at(upper, i)), make.at(corner, i * n + c)))

            make.each(width, put_column)

        _by_steps(make, count, block, make.watched(watch, columns))

    writer.count_up(begin, end, 1, make.watched(watch, one))
    return make.text("geqrf_task(ptr %words, i64 %begin, i64 %end)")


def reflections_product_function(shape: Shape, block: int, most: int) -> str:
    """Q of matrices begin..end: the first columns of the product of reflections of [m, k]."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("words")
    source, factors, target = (writer.load("ptr", make.at(words, w, "i64")) for w in range(3))
    m, k, n = (writer.load("i64", make.at(words, w, "i64")) for w in (3, 4, 5))
    begin, end = make.sizes("begin end")
    step, block_step, watch = make.number(most + 2 * shape.lanes), make.number(block), make.watch_of(words)
    p = scratch(make, (block + shape.lanes) * (most + 2 * shape.lanes))
    t = scratch(make, block * block)
    zero, no = Value(writer, "i8", "0"), Value(writer, "i1", "false")
    blocks = (k + (block - 1)).binary("udiv", k + (block - 1), block)
    nothing, unit = writer.constant(shape.scalar, 0.0), writer.constant(shape.scalar, 1.0)

    def one(number: Value) -> None:
        out, taus = make.at(target, number * m * n), make.at(factors, number * k)
        writer.run("@llvm.memset.p0.i64", out, zero, m * n * shape.bytes, no)
        make.each(least(m, n), lambda i: writer.store(unit, make.at(out, i * (n + 1))))

        def reflect(turn: Value) -> None:
            start = (blocks - 1 - turn) * block
            width, height = least(k - start, block), m - start
            make.call("columns", make.at(source, number * m * k + start * (k + 1)), p, k, step, height, width)

            def complete(c: Value) -> None:
                column = make.at(p, c * step)
                make.each(c, lambda i: writer.store(nothing, make.at(column, i)))
                writer.store(unit, make.at(column, c))

            make.each(width, complete)
            make.call("triangle_of_factors", p, make.at(taus, start), t, step, height, width)
            corner, one_step = make.at(out, start * (n + 1)), make.number(1)
            make.call("apply", p, t, corner, step, height, width, block_step, one_step, n, n - start)

        make.each(blocks, make.watched(watch, reflect))

    writer.count_up(begin, end, 1, make.watched(watch, one))
    return make.text("reflections_product_task(ptr %words, i64 %begin, i64 %end)")
