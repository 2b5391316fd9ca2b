"""X with A X = B for one triangular matrix, by blocks of rows, for panels of columns of B.

An upper triangle is read from its last element to the first, with negative steps, so the rest of
the code only needs to solve lower ones. Diagonal blocks are inverted first. A panel contains -X of
the finished blocks, because the product of tiles adds: R = B + A (-X) is the remainder, and the
next block of -X is A⁻¹ (-R).

The product also multiplies zeros of an inverse, and an inverse may have elements that overflow. So
if a product has an element that is not finite, substitution solves the block again.

A single column is solved by substitution: sums of four rows over vectors, then these four in order.
Source: Golub & Van Loan 4e, §3.1; inverted diagonal blocks: Du Croz & Higham 1992,
        IMA J. Numer. Anal. 12(1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, by_vectors, least, maker, sum_of_lanes
from rune.backends.cpu.linalg.numbers import Numbers
from rune.backends.cpu.linalg.rows import Right, rows_maker
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

TOGETHER = 4  # rows that are summed at once: vectors of the unknowns are read once for all of them


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix seen as a lower triangle, by its steps."""

    at: Value
    rows: Value  # step from row to row
    columns: Value


def solve_function(shape: Shape, numbers: Numbers, block: int, width: int, most: int) -> str:
    """Solves the panels begin..end of a batch, each `width` columns of one matrix of right sides.

    most: the most rows of a matrix
    """
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    sources, (n, k, lower, unit, panels), watch = make.words_of_task(3, 5)
    panel, inverses, right = of.right(most, width), of.scratch(most * block), of.right(block, width)
    is_lower, flag = lower.compare("ne", 0), unit.compare("ne", 0)

    def turned(at: Value, columns: Value, is_both: bool) -> _Matrix:
        """The array or, for an upper triangle, the array from its last row backwards.

        is_both: columns are reversed, too
        """
        back = at_end = (n - 1) * columns
        if is_both:
            at_end = back + (columns - 1)
        start = of.at(at, writer.select(is_lower, make.number(0), at_end))
        steps = [writer.select(is_lower, x, -x) for x in (columns, make.number(1))]
        return _Matrix(start, steps[0], steps[1] if is_both else make.number(1))

    def one(number: Value) -> None:
        matrix = number.binary("udiv", panels)
        first = (number - matrix * panels) * width
        a = turned(of.at(sources[0], matrix * n * n), n, True)
        b, out = (turned(of.at(x, matrix * n * k), k, False) for x in sources[1:])
        columns = least(k - first, width)
        # The last vectors of a panel's rows are padded with zeros, which stay finite.
        make.clear(panel.at, of.parts_of(n * (width * shape.bytes)))
        of.copied("copied", of.at(b.at, first), b.rows, panel.at, panel.step, n, columns)
        panel_width = columns + (of.lanes - 1)
        panel_width = panel_width.round_down(of.lanes)

        def rows(start: Value) -> None:
            height = least(n - start, block)
            lines, inverse = of.at(a.at, start * a.rows), of.at(inverses, start * block)
            corner, block_at = of.at(lines, start * a.columns), of.at(panel.at, start * width)
            step, zero = make.number(block), make.number(0)
            make.call("inverse", corner, a.rows, a.columns, inverse, step, zero, make.number(1), height, flag)
            lhs, out = (lines, a.rows, a.columns), (block_at, panel.step)
            writer.either(start > 0, partial(of.tiles, lhs, panel, out, (height, panel_width, start), True))
            of.copied("negated", block_at, panel.step, right.at, right.step, height, panel_width)
            of.turn(right, height, panel_width)
            sizes = (height, panel_width, height)
            of.tiles((inverse, step, make.number(1)), right, out, sizes, False)
            triangle, vectors = (corner, a.rows, a.columns), (right.at, block_at, panel.step)
            make.call("substitute_unless_finite", *triangle, *vectors, height, of.parts_of(panel_width), flag)
            of.turn(Right(block_at, panel.step, panel.apart), height, panel_width)  # later blocks need i times it

        writer.count_up(make.number(0), n, block, make.watched(watch, rows))
        of.copied("negated", panel.at, panel.step, of.at(out.at, first), out.rows, n, columns)

    return make.task("solve", watch, one)


def substitute_function(shape: Shape, numbers: Numbers) -> str:
    """Solves the block `b` for a lower triangle, and replaces x, if x is not all finite.

    Rows of b and x are vs numbers apart and have `width` parts, which are whole vectors.
    """
    of = rows_maker(shape, numbers)
    make, writer = of.make, of.make.writer
    d, b, x = make.pointers("d b x")
    rs, cs, vs, count, width = make.sizes("rs cs vs count width")
    # x times zero is NaN if x is not finite, else zero. One sum for each of several rows, so that
    # the products do not wait for each other.
    nothing, products = writer.constant(shape.vector, 0.0), make.zero_slots(TOGETHER)

    def vectors(body: Callable[[Value], None]) -> None:
        writer.count_up(make.number(0), width, shape.lanes, body)

    def look(start: Value) -> None:
        lines = [of.at(x, least(start + r, count - 1) * vs) for r in range(TOGETHER)]

        def add(at: Value) -> None:
            for line, slot in zip(lines, products, strict=True):
                writer.store(make.vector(make.at(line, at)).fma(nothing, writer.load(shape.vector, slot)), slot)

        vectors(add)

    def row(i: Value) -> None:
        source, target = of.at(b, i * vs), of.at(x, i * vs)
        vectors(lambda at: make.put(make.vector(make.at(source, at)), make.at(target, at)))

        def less(p: Value) -> None:
            factor = of.splats(of.negative(of.read(of.at(d, i * rs + p * cs))))

            def piece(at: Value) -> None:
                turns = numbers.turns(make.vector(make.at(of.at(x, p * vs), at)))
                place = make.at(target, at)
                make.put(of.plus(make.vector(place), factor, turns), place)

            vectors(piece)

        make.each(i, less)
        writer.either(make.flag("unit").invert(), lambda: divide(i, target))

    def divide(i: Value, target: Value) -> None:
        divisor = of.splats(numbers.divisor(of.read(of.at(d, i * (rs + cs)))))
        vectors(lambda at: make.put(numbers.quotients(make.vector(make.at(target, at)), divisor), make.at(target, at)))

    writer.count_up(make.number(0), count, TOGETHER, look)
    first, *others = (writer.load(shape.vector, slot) for slot in products)
    is_finite = sum_of_lanes(sum(others, first)).equals(0.0)
    writer.either(is_finite.invert(), lambda: make.each(count, row))
    signature = "ptr %d, i64 %rs, i64 %cs, ptr %b, ptr %x, i64 %vs, i64 %count, i64 %width, i1 %unit"
    return make.text(f"substitute_unless_finite({signature})")


def solve_column_function(shape: Shape) -> str:
    """Solves the matrices begin..end of a batch, each with a single column."""
    make = maker(shape)
    writer, ((matrices, sides, target), (n, _, lower, unit), watch) = make.writer, make.words_of_task(3, 4)
    sums, is_lower, divides = writer.allocate(shape.vector, TOGETHER), lower.compare("ne", 0), unit.equals(0)

    def one(number: Value) -> None:
        a, b, x = (make.at(p, number * s) for p, s in ((matrices, n * n), (sides, n), (target, n)))

        def place(k: Value) -> Value:
            return writer.select(is_lower, k, n - 1 - k)

        def several(start: Value) -> None:
            """The next rows, in the order of solution. The unknowns before them are solved."""
            count = least(n - start, TOGETHER)
            low = writer.select(is_lower, make.number(0), n - start)
            # Rows beyond the last repeat it, so that reads stay within A; their sums are not used.
            lines = [make.at(a, place(least(start + r, n - 1)) * n) for r in range(TOGETHER)]
            slots = [make.at(sums, r, shape.vector) for r in range(TOGETHER)]
            for slot in slots:
                writer.store(writer.constant(shape.vector, 0.0), slot)

            def piece(first: Value, length: Value | None) -> None:
                known = make.vector(make.at(x, low + first), length)
                for line, slot in zip(lines, slots, strict=True):
                    value = make.vector(make.at(line, low + first), length)
                    writer.store(value.fma(known, writer.load(shape.vector, slot)), slot)

            by_vectors(make, start, piece)
            totals = [sum_of_lanes(writer.load(shape.vector, slot)) for slot in slots]
            _substitute(make, (a, b, x), [(place(start + r), t) for r, t in enumerate(totals)], (n, count, divides))

        writer.count_up(make.number(0), n, TOGETHER, several)

    return make.task("solve_column", watch, one)


def _substitute(
    make: Maker, arrays: tuple[Value, Value, Value], rows: list[tuple[Value, Value]], sizes: tuple[Value, Value, Value]
) -> None:
    """Solve a few rows, one after the other, given their sums over the unknowns before them."""
    writer, (a, b, x), (n, count, divides) = make.writer, arrays, sizes

    def solve_from(r: int) -> None:
        row, total = rows[r]
        difference = make.scalar(make.at(b, row)) - total
        for before, _ in rows[:r]:
            difference = (-make.scalar(make.at(a, row * n + before))).fma(make.scalar(make.at(x, before)), difference)
        at = make.at(x, row)
        pivot = make.at(a, row * n + row)
        # The diagonal of a unit triangle may hold anything, and is not even read.
        writer.either(
            divides, lambda: writer.store(difference / make.scalar(pivot), at), lambda: writer.store(difference, at)
        )
        if r + 1 < len(rows):
            writer.either(count > r + 1, partial(solve_from, r + 1))

    solve_from(0)
