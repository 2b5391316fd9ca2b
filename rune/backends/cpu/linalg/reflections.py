"""Householder reflections of one matrix: a factorisation by blocks of columns, and their product.

A block of columns is transposed in scratch memory, so that vectors are along a column. Its
reflections are H₁ H₂ … = I - V T Vᴴ. The columns v are stored there with their zeros and ones, and
R separately. All other columns are changed by products of tiles. Columns are scaled by their
greatest element, so that squares neither overflow nor underflow. Signs are LAPACK's.
Source: Golub & Van Loan 4e, §5.2; Schreiber & Van Loan 1989, SIAM J. Sci. Stat. Comput. 10(1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, in_groups, least, sum_of_lanes, zeros
from rune.backends.cpu.linalg.numbers import Number, Numbers
from rune.backends.cpu.linalg.rows import Matrix, Right, Rows, rows_maker
from rune.lowering.codegen.llvm.ir.text import Value

WIDTH = 32  # the most parts of other columns that are reflected at once
TOGETHER = 4  # columns of a block that are reflected at once: v is read once for all of them
TINY = {"float": float(np.finfo(np.float32).tiny), "double": float(np.finfo(np.float64).tiny)}
GREATEST = {"float": float(np.finfo(np.float32).max), "double": float(np.finfo(np.float64).max)}


def _from(of: Rows, first: Value, end: Value, body: Callable[[Value], None]) -> None:
    """body(first part) for each vector that has some of the numbers first..end of a column."""
    first, end, lanes = of.parts_of(first), of.parts_of(end), of.make.shape.lanes
    start = first.round_down(lanes)
    # Rounded up, as the step of count_up must divide its span.
    span = end - start + (lanes - 1)
    of.make.writer.count_up(start, start + span.round_down(lanes), lanes, body)


def greatest_of_lanes(value: Value) -> Value:
    """The greatest of the lanes."""
    writer, count = value.writer, value.lanes
    while count > 1:
        count //= 2
        low, high = writer.part(value, 0, count), writer.part(value, count, count)
        value = writer.select(low > high, low, high)
    return writer.lane(value, 0)


def _size(of: Rows, head: Sequence[Value], greatest: Value) -> Value:
    """What a column is divided by, so that squares neither overflow nor underflow.

    greatest: the greatest part below the head of the column
    """
    writer, scalar = of.make.writer, of.make.shape.scalar
    size, tiny = greatest, TINY[scalar]
    for part in head:
        size = writer.select(part.abs() > size, part.abs(), size)
    size = writer.select(size > tiny, size, tiny)
    is_finite = size <= GREATEST[scalar]
    size = writer.select(size < 1 / tiny, size, 1 / tiny)
    # Beside an infinity the other numbers must not become 0, or the column would seem reflected.
    return writer.select(is_finite, size, tiny)


def reflect_function(shape: Shape, numbers: Numbers, block: int) -> str:
    """Reflects column j of `width` columns, each with `height` numbers, and the columns after it.

    The column becomes v. Its part of R goes to column j of `r`, and its factor to `tau`.
    """
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    (p, r, tau), (step, height, width, j) = make.pointers("p r tau"), make.sizes("ld height width j")
    x, first, places = of.at(p, j * step), of.parts_of(j), writer.iota(shape.lanes, "i64")
    diagonal = [writer.splat(first + k, shape.lanes) for k in range(of.parts)]
    slot = writer.allocate(shape.vector)

    def below(at: Value) -> Value:
        return (writer.splat(at, shape.lanes) + places) > diagonal[-1]

    def reduced(combine: Callable[[Value, Value], Value]) -> Value:
        writer.store(writer.constant(shape.vector, 0.0), slot)

        def piece(at: Value) -> None:
            value = writer.select(below(at), make.vector(make.at(x, at)), 0.0)
            writer.store(combine(value, writer.load(shape.vector, slot)), slot)

        _from(of, j, height, piece)
        return writer.load(shape.vector, slot)

    def greater(value: Value, best: Value) -> Value:
        return writer.select(value.abs() > best, value.abs(), best)

    head = of.read(of.at(x, j))
    size = _size(of, head, greatest_of_lanes(reduced(greater)))
    inverse = size.like(1.0) / size
    wide = writer.splat(inverse, shape.lanes)
    squares = sum_of_lanes(reduced(lambda value, total: (value * wide).fma(value * wide, total)))
    is_done, factor, beta, scale = _scalars(of, tuple(part * inverse for part in head), squares)
    zeros, scale = of.constant(0.0), of.splats(scale)
    of.write(factor, tau)
    # What is above the head belongs to R, and v has zeros there.
    make.each(j, lambda i: of.write(of.read(of.at(x, i)), of.at(r, j * block + i)))
    of.write((writer.select(is_done, head[0], beta * size), *zeros[1:]), of.at(r, j * (block + 1)))
    make.each(j, lambda i: of.write(zeros, of.at(x, i)))

    def normalise(at: Value) -> None:
        zero = writer.constant(shape.vector, 0.0)
        turns = numbers.turns(make.vector(make.at(x, at)) * wide)
        value = writer.select(below(at), of.product(scale, turns), 0.0)
        is_head = (writer.splat(at, shape.lanes) + places).equals(diagonal[0])
        make.put(writer.select(is_head, zero.like(1.0), value), make.at(x, at))

    _from(of, j, height, normalise)

    def apply() -> None:
        _reflect_others(of, (p, x), (step, height, j), numbers.conjugate(factor), j + 1, width)

    # Rows above it in its first vector would see the zeros of one that is not finite.
    writer.either(_is_finite(factor), apply, lambda: _spoilt(of, p, step, (j + 1, width), (j, height)))
    return make.text("reflect(ptr %p, ptr %r, ptr %tau, i64 %ld, i64 %height, i64 %width, i64 %j)")


def _scalars(of: Rows, head: Number, squares: Value) -> tuple[Value, Number, Value, Number]:
    """Whether the column is already reflected, the factor, the head of the reflected column, which
    is real, and the scale for its other numbers.

    squares: the sum of the squares of the other numbers
    """
    writer, numbers, (re, *others) = of.make.writer, of.numbers, head
    is_done, total = squares.equals(0.0), re.fma(re, squares)
    for part in others:
        is_done, total = is_done & part.equals(0.0), part.fma(part, total)
    beta = -(total.call("sqrt").copysign(re))  # of the opposite sign: the gap has no cancellation
    gap = (re - beta, *others)
    factor = tuple(part / beta for part in of.negative(gap))
    scale = numbers.quotient(of.constant(1.0), numbers.divisor(gap))
    factor, scale = (tuple(writer.select(is_done, 0.0, x) for x in number) for number in (factor, scale))
    return is_done, factor, beta, scale


def _reflect_others(
    of: Rows, arrays: tuple[Value, Value], sizes: tuple[Value, Value, Value], factor: Number, begin: Value, end: Value
) -> None:
    """Subtract from the columns begin..end their parts along v."""
    make, (p, x), (step, height, j) = of.make, arrays, sizes

    def several(columns: list[Value]) -> None:
        others = [of.at(p, c * step) for c in columns]
        totals = [of.splats(of.negative(of.numbers.product(total, factor))) for total in dots(of, x, others, j, height)]

        def piece(at: Value) -> None:
            v = of.numbers.turns(make.vector(make.at(x, at)))
            for other, total in zip(others, totals, strict=True):
                make.put(of.plus(make.vector(make.at(other, at)), total, v), make.at(other, at))

        _from(of, j, height, piece)

    in_groups(make, begin, end, several, TOGETHER)


def dots(of: Rows, x: Value, others: list[Value], first: Value, height: Value) -> list[Number]:
    """The products of a conjugate column with others, from the vector with number `first` on."""
    make, writer, shape = of.make, of.make.writer, of.make.shape
    slots = zeros(make, len(others), of.parts)

    def piece(at: Value) -> None:
        # The imaginary part of x̄ y is the real product of i x and y, so both sums are real.
        turns = of.numbers.turns(make.vector(make.at(x, at)))
        for other, row in zip(others, slots, strict=True):
            value = make.vector(make.at(other, at))
            for turn, slot in zip(turns, row, strict=True):
                writer.store(turn.fma(value, writer.load(shape.vector, slot)), slot)

    _from(of, first, height, piece)
    return [tuple(sum_of_lanes(writer.load(shape.vector, slot)) for slot in row) for row in slots]


def triangle_of_factors_function(shape: Shape, numbers: Numbers, block: int) -> str:
    """The upper triangular T of the columns v with these factors, in rows `block` apart."""
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    (p, taus, t), (step, height, width) = make.pointers("p taus t"), make.sizes("ld height width")
    products, total, zero = of.scratch(block), of.scratch(1), of.constant(0.0)

    def column(j: Value) -> None:
        tau, v = of.read(of.at(taus, j)), of.at(p, j * step)

        def several(columns: list[Value]) -> None:
            values = dots(of, v, [of.at(p, i * step) for i in columns], j, height)
            for i, value in zip(columns, values, strict=True):
                of.write(numbers.conjugate(value), of.at(products, i))

        in_groups(make, make.number(0), j, several, TOGETHER)

        def row(i: Value) -> None:
            of.write(zero, total)

            def less(q: Value) -> None:
                factors = of.read(of.at(t, i * block + q)), of.read(of.at(products, q))
                of.write(numbers.less_product(of.read(total), *factors), total)

            # T[:j, j] = -τ T[:j, :j] Vᴴ v, and T is upper triangular: row i begins at i.
            writer.count_up(i, j, 1, less)
            of.write(numbers.product(tau, of.read(total)), of.at(t, i * block + j))
            of.write(zero, of.at(t, j * block + i))

        make.each(j, row)
        of.write(tau, of.at(t, j * (block + 1)))

    make.each(width, column)
    return make.text("triangle_of_factors(ptr %p, ptr %taus, ptr %t, i64 %ld, i64 %height, i64 %width)")


def apply_function(shape: Shape, numbers: Numbers, block: int, most: int, name: str) -> str:
    """Subtracts V T Vᴴ C, or V Tᴴ Vᴴ C, from C, which has `count` columns and rows cn apart.

    name: "apply" or "apply_adjoint"
    """
    of = rows_maker(shape, numbers)
    make, is_adjoint = of.make, name != "apply"
    (p, t, c), (step, height, width) = make.pointers("p t c"), make.sizes("ld height width")
    cn, count = make.sizes("cn count")
    most_columns, one, row = WIDTH // of.parts, make.number(1), make.number(block)
    panel, first_product, second_product = (of.right(x, most_columns) for x in (most, block, block))
    factors = (t, one, row) if is_adjoint else (t, row, one)

    def columns(first: Value) -> None:
        column_count, at = least(count - first, most_columns), of.at(c, first)
        of.copied("copied", at, cn, panel.at, panel.step, height, column_count)
        # For a conjugate left factor the second turn is -i times the rows.
        of.turn(panel, height, column_count, "turned_back")
        _tiles_into(of, (p, step, one), panel, first_product, (width, column_count, height))
        of.turn(first_product, width, column_count, "turned_back" if is_adjoint else "turned")
        _tiles_into(of, factors, first_product, second_product, (width, column_count, width))
        of.copied("negated", second_product.at, panel.step, first_product.at, panel.step, width, column_count)
        of.turn(first_product, width, column_count)
        of.tiles((p, one, step), first_product, (at, cn), (height, column_count, width), True)

    _by_steps(make, count, most_columns, columns)
    return make.text(f"{name}(ptr %p, ptr %t, ptr %c, i64 %ld, i64 %height, i64 %width, i64 %cn, i64 %count)")


def _tiles_into(of: Rows, lhs: Matrix, right: Right, out: Right, sizes: tuple[Value, Value, Value]) -> None:
    of.tiles(lhs, right, (out.at, out.step), sizes, False)


def _by_steps(make: Maker, end: Value, step: int, body: Callable[[Value], None]) -> None:
    """body(0), body(step), ..., for all numbers less than the end."""
    span = end + (step - 1)
    make.each(span.binary("udiv", step), lambda k: body(k * step))


def columns_function(shape: Shape, numbers: Numbers) -> str:
    """Copies `width` columns of `height` rows, n apart, to columns ld apart, each followed by
    zeros.

    Vectors at the end of a column read these zeros.
    """
    of = rows_maker(shape, numbers)
    make = of.make
    (source, p), (n, step, height, width) = make.pointers("from p"), make.sizes("n ld height width")
    make.call("transposed", source, n, p, step, height, width)
    zero = make.writer.constant(shape.vector, 0.0)
    make.each(width, lambda c: make.put(zero, of.at(p, c * step + height)))
    return make.text("columns(ptr %from, ptr %p, i64 %n, i64 %ld, i64 %height, i64 %width)")


def geqrf_function(shape: Shape, numbers: Numbers, block: int, most: int) -> str:
    """Factors the matrices begin..end of a batch, each [m, n]: R, the vectors below it, factors."""
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    (source, target, factors), (m, n), watch = make.words_of_task(3, 2)
    count, (step, p) = least(m, n), _columns_of(of, block, most)
    r, t = (of.scratch(block * block) for _ in range(2))

    def one(number: Value) -> None:
        out, taus = of.at(target, number * m * n), of.at(factors, number * count)
        # The factors replace the matrix, and the operand must keep its elements.
        make.copy(out, of.at(source, number * m * n), of.parts_of(m * n * shape.bytes))

        def columns(start: Value) -> None:
            width, height = least(count - start, block), m - start
            corner, block_taus = of.at(out, start * (n + 1)), of.at(taus, start)
            # Columns of the block are copied to rows, so that reflections are products of vectors.
            make.call("columns", corner, p, n, step, height, width)
            make.each(width, lambda j: make.call("reflect", p, r, of.at(block_taus, j), step, height, width, j))

            def more() -> None:
                finite_count, remainder, others = (
                    _finite_count(of, block_taus, width),
                    of.at(corner, width),
                    n - start - width,
                )

                def apply() -> None:
                    make.call("triangle_of_factors", p, block_taus, t, step, height, finite_count)
                    make.call("apply_adjoint", p, t, remainder, step, height, finite_count, n, others)

                # 0 times a reflection that is not finite would make NaN of the rows above it.
                writer.either(finite_count > 0, apply)
                spoil = partial(_spoilt, of, remainder, n, (finite_count, height), (make.number(0), others))
                writer.either(finite_count < width, spoil)

            writer.either(n > start + width, more)

            def put_column(c: Value) -> None:
                column, upper = of.at(p, c * step), of.at(r, c * block)

                def put(source: Value, i: Value) -> None:
                    of.write(of.read(of.at(source, i)), of.at(corner, i * n + c))

                writer.count_up(c + 1, height, 1, partial(put, column))
                make.each(c + 1, partial(put, upper))

            make.each(width, put_column)

        _by_steps(make, count, block, make.watched(watch, columns))

    return make.task("geqrf", watch, one)


def _finite_count(of: Rows, taus: Value, width: Value) -> Value:
    """How many factors come before the first one that is not finite."""
    make, writer = of.make, of.make.writer
    count = writer.allocate("i64")
    writer.store(make.number(0), count)

    def one(j: Value) -> None:
        before = writer.load("i64", count)
        is_next = _is_finite(of.read(of.at(taus, j))) & before.equals(j)
        writer.store(writer.select(is_next, j + 1, before), count)

    make.each(width, one)
    return writer.load("i64", count)


def _is_finite(number: Number) -> Value:
    first, *others = (part - part for part in number)
    return sum(others, first).equals(0.0)


def _spoilt(of: Rows, at: Value, step: Value, lines: tuple[Value, Value], places: tuple[Value, Value]) -> None:
    """NaN at some places of each of some lines, which are `step` apart."""
    make, writer = of.make, of.make.writer
    nan = writer.constant(make.shape.scalar, float("nan"))
    first, end = map(of.parts_of, places)

    def line(number: Value) -> None:
        start = of.at(at, number * step)
        writer.count_up(first, end, 1, lambda k: writer.store(nan, make.at(start, k)))

    writer.count_up(*lines, 1, line)


def _columns_of(of: Rows, block: int, most: int) -> tuple[Value, Value]:
    """The step between columns of a block, with room for one more vector each, and their memory."""
    # A vector of zeros is behind each column, and a transposition writes entire squares.
    step = most + 2 * of.lanes
    return of.make.number(step), of.scratch((block + of.lanes) * step)


def reflections_product_function(shape: Shape, numbers: Numbers, block: int, most: int) -> str:
    """Q of the matrices begin..end: the first n columns of the product of reflections of [m, k]."""
    of = rows_maker(shape, numbers)
    make = of.make
    (source, factors, target), (m, k, n), watch = make.words_of_task(3, 3)
    (step, p), t = _columns_of(of, block, most), of.scratch(block * block)
    blocks, zeros, unit = k.ceil_div(block), of.constant(0.0), of.constant(1.0)

    def one(number: Value) -> None:
        out, taus = of.at(target, number * m * n), of.at(factors, number * k)
        make.clear(out, of.parts_of(m * n * shape.bytes))
        make.each(least(m, n), lambda i: of.write(unit, of.at(out, i * (n + 1))))

        # From the last block to the first: then columns left of `start` are still those of the
        # identity, and only the part from `start` on changes.
        def reflect(turn: Value) -> None:
            start = (blocks - 1 - turn) * block
            width, height = least(k - start, block), m - start
            make.call("columns", of.at(source, number * m * k + start * (k + 1)), p, k, step, height, width)

            def complete(c: Value) -> None:
                column = of.at(p, c * step)
                make.each(c, lambda i: of.write(zeros, of.at(column, i)))
                of.write(unit, of.at(column, c))

            make.each(width, complete)
            make.call("triangle_of_factors", p, of.at(taus, start), t, step, height, width)
            make.call("apply", p, t, of.at(out, start * (n + 1)), step, height, width, n, n - start)

        make.each(blocks, make.watched(watch, reflect))

    return make.task("reflections_product", watch, one)
