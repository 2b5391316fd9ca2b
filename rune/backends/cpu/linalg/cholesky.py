"""The Cholesky factor of one matrix, by blocks of columns, left-looking.

For each block of columns, the product of the columns before it is subtracted. Its triangle is
factored, and the rows below are multiplied by the inverse of the result. The triangle is factored
as rows of Lᴴ, so that vectors are along rows. Only the lower triangle is read. A pivot that is not
positive becomes NaN, which spreads to everything after it.
Source: Golub & Van Loan 4e, §4.2.
"""

from __future__ import annotations

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, least
from rune.backends.cpu.linalg.numbers import Numbers
from rune.backends.cpu.linalg.rows import Rows, rows_maker
from rune.lowering.codegen.llvm.ir.text import Value

DEPTH = 512  # the most parts of earlier columns in one packed panel
GROUP = 48  # the most rows below the triangle in one product


def root_of(make: Maker, pivot: Value) -> Value:
    """The square root of a pivot; NaN if it is not positive, so for zero as well."""
    writer = make.writer
    positive = writer.select(pivot > 0.0, pivot, float("nan"))
    return writer.intrinsic("sqrt", pivot.type, positive)


def triangle_function(shape: Shape, numbers: Numbers, block: int) -> str:
    """Replaces A by U with A = Uᴴ U and zeros below the diagonal, in rows `block` apart."""
    of = rows_maker(shape, numbers)
    make, writer, lanes = of.make, of.make.writer, shape.lanes
    (t,), (count,) = make.pointers("t"), make.sizes("count")
    places, end = writer.iota(lanes, "i64"), of.parts_of(count)

    def vectors_from(first: Value) -> Value:
        start = of.parts_of(first)
        return start.round_down(lanes)

    def step(j: Value) -> None:
        pivot_row = of.at(t, j * block)
        root = root_of(make, make.scalar(of.at(pivot_row, j)))
        # One division for the whole row: products with the reciprocal are much faster.
        factor, root = writer.splat(root.like(1.0) / root, lanes), writer.splat(root, lanes)
        diagonal = [writer.splat(of.parts_of(j) + k, lanes) for k in range(of.parts)]
        start = vectors_from(j)

        def clear(at: Value) -> None:
            make.put(writer.constant(shape.vector, 0.0), make.at(pivot_row, at))

        def scale(at: Value) -> None:
            place = writer.splat(at, lanes) + places
            value = make.vector(make.at(pivot_row, at)) * factor
            for part, at_part in zip((root, root.like(0.0)), diagonal, strict=False):
                value = writer.select(place.equals(at_part), part, value)
            make.put(writer.select(place < diagonal[0], 0.0, value), make.at(pivot_row, at))

        writer.count_up(make.number(0), start, lanes, clear)
        writer.count_up(start, end, lanes, scale)

        def update(i: Value) -> None:
            # Uᴴ: the conjugate of the element above row i.
            negative = of.splats(of.negative(numbers.conjugate(of.read(of.at(pivot_row, i)))))
            row = of.at(t, i * block)

            def piece(at: Value) -> None:
                turns = numbers.turns(make.vector(make.at(pivot_row, at)))
                make.put(of.plus(make.vector(make.at(row, at)), negative, turns), make.at(row, at))

            writer.count_up(vectors_from(i), end, lanes, piece)

        writer.count_up(j + 1, count, 1, update)

    make.each(count, step)
    return make.text("triangle(ptr %t, i64 %count)")


def cholesky_function(shape: Shape, numbers: Numbers, block: int) -> str:
    """Factors the matrices begin..end of a batch, each [n, n]."""
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    (source, target), (n,), watch = make.words_of_task(2, 1)
    triangle, factor = (of.scratch(block * (block + of.lanes)) for _ in range(2))
    depths = DEPTH // of.parts
    inverse, earlier = of.right(block + of.lanes, block), of.right(depths + of.lanes, block)
    rows, step, one_step = of.scratch(block * (GROUP + 1)), make.number(block), make.number(1)

    def one(number: Value) -> None:
        a, out = of.at(source, number * n * n), of.at(target, number * n * n)

        def columns(start: Value) -> None:
            width = least(n - start, block)
            corner, height = of.at(out, start * (n + 1)), n - start
            of.copied("copied", of.at(a, start * (n + 1)), n, corner, n, height, width)

            def less_products(p: Value) -> None:
                depth, lines = least(start - p, depths), of.at(out, start * n + p)
                # Negated, because tiles add their product.
                make.call("negated_adjoint", lines, n, earlier.at, step, width, depth)
                of.turn(earlier, depth, width)
                of.tiles((lines, n, one_step), earlier, (corner, n), (height, width, depth), True)

            writer.count_up(make.number(0), start, depths, less_products)
            make.call("adjoint", corner, n, triangle, step, width, width)
            make.call("triangle", triangle, width)
            make.call("adjoint", triangle, step, factor, step, width, width)
            of.copied("copied", factor, step, corner, n, width, width)
            # The result is new memory, and nothing else writes there.
            _clear_right(of, of.at(corner, width), n, width, height - width)
            last = width - 1
            # @inverse takes a lower triangle: this upper one is read from its last element on.
            d, v = (of.at(x, last * (block + y)) for x, y in ((triangle, 1), (inverse.at, 0)))
            back = make.number(-block)
            no = Value(writer, "i1", "false")
            make.call("inverse", d, back, make.number(-1), v, back, last, make.number(-1), width, no)
            of.turn(inverse, width, width)

            def below(first: Value) -> None:
                count, at = least(n - first, GROUP), of.at(out, first * n + start)
                # The product is written over its left factor.
                of.copied("copied", at, n, rows, step, count, width)
                of.tiles((rows, step, one_step), inverse, (at, n), (count, width, width), False)

            writer.count_up(start + width, n, GROUP, below)

        writer.count_up(make.number(0), n, block, make.watched(watch, columns))
        _spoil_failed(of, out, n)

    return make.task("cholesky", watch, one)


def _clear_right(of: Rows, at: Value, step: Value, rows: Value, count: Value) -> None:
    """Zeros right of a triangle."""
    nbytes = of.parts_of(count * of.make.shape.bytes)
    of.make.each(rows, lambda i: of.make.clear(of.at(at, i * step), nbytes))


def _spoil_failed(of: Rows, out: Value, n: Value) -> None:
    """NaN in the whole triangle where something failed: it has reached the last element."""
    make = of.make
    last = make.scalar(of.at(out, n * n - 1))

    def spoil() -> None:
        nan = (make.writer.constant(make.shape.scalar, float("nan")),) * of.parts
        make.each(n, lambda i: make.each(i + 1, lambda j: of.write(nan, of.at(out, i * n + j))))

    make.writer.either(last.is_nan(), spoil)
