"""Factorisations of small matrices, with one matrix in each lane of a vector.

A vector has the same element of several matrices, or the same part of a complex element. Matrices
are copied to scratch memory in this layout, factored or solved by the textbook algorithms, and
copied back. The last group of lanes ends with the last matrix, so it may compute some matrices a
second time.
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import in_groups, least, maker
from rune.backends.cpu.linalg.cholesky import root_of
from rune.backends.cpu.linalg.lu import is_greater
from rune.backends.cpu.linalg.numbers import Number, Numbers
from rune.lowering.codegen.llvm.ir.text import Value
from rune.ops.linalg.dense import MOST_SMALL

TOGETHER = 4  # sums that are computed at once: independent ones hide the latency of fma


class _Lanes:
    """A function over groups of lanes, being written."""

    def __init__(self, shape: Shape, numbers: Numbers, pointers: int, sizes: int):
        self.make = maker(shape)
        self.writer, self.shape, self.numbers = self.make.writer, shape, numbers
        self.pointers, (self.batch, *self.sizes), self.watch = self.make.words_of_task(pointers, sizes + 1)

    def scratch(self, count: int) -> Value:
        """Memory for `count` numbers, and for one more square of vectors, which copies may
        write."""
        return self.writer.allocate(self.shape.vector, count * self.numbers.parts + self.shape.lanes)

    def slots(self, count: int) -> list[Value]:
        """Memory for one number each."""
        return [self.writer.allocate(self.shape.vector, self.numbers.parts) for _ in range(count)]

    def places(self, numbers: Value, index: Value | int) -> list[Value]:
        """The addresses of a number's parts."""
        parts, lanes = self.numbers.parts, self.shape.lanes
        first = self.make.at(numbers, index * (parts * lanes))
        return [first, *(self.make.at(first, part * lanes) for part in range(1, parts))]

    def read(self, numbers: Value, index: Value | int = 0) -> Number:
        """Read a number."""
        return tuple(map(self.make.vector, self.places(numbers, index)))

    def write(self, value: Number, numbers: Value, index: Value | int = 0) -> None:
        """Write a number."""
        for part, place in zip(value, self.places(numbers, index), strict=True):
            self.make.put(part, place)

    def constant(self, value: float, other: float = 0.0) -> Number:
        """The same number in all lanes: a real part, and an imaginary one."""
        return tuple(self.writer.constant(self.shape.vector, x) for x in (value, other)[: self.numbers.parts])

    def select(self, condition: Value, a: Number, b: Number) -> Number:
        """a in the lanes in which the condition is true, else b."""
        return tuple(self.writer.select(condition, x, y) for x, y in zip(a, b, strict=True))

    def load_group(self, first: Value, array: Value, numbers: Value, count: Value) -> None:
        """Copy the matrices of a group, each of `count` numbers, to scratch memory."""
        count = count * self.numbers.parts
        self.make.call("to_lanes", self.make.at(array, first * count), count, numbers, count)

    def store_group(self, first: Value, array: Value, numbers: Value, count: Value) -> None:
        """Copy a group back to the array."""
        count = count * self.numbers.parts
        self.make.call("from_lanes", numbers, self.make.at(array, first * count), count, count)

    def text(self, name: str, group: Callable[[Value], None]) -> str:
        """The text of the function; group(number of the first matrix) writes the code of a
        group."""
        lanes = self.shape.lanes
        return self.make.task(name, self.watch, lambda k: group(least(k * lanes, self.batch - lanes)))


def cholesky_lanes_function(shape: Shape, numbers: Numbers) -> str:
    """L of [n, n], column by column. The diagonal is real."""
    task = _Lanes(shape, numbers, pointers=2, sizes=1)
    make, writer, (n,) = task.make, task.writer, task.sizes
    s = task.scratch(MOST_SMALL * MOST_SMALL)

    def column(j: Value) -> None:
        root = root_of(make, _less_products(task, s, [j], j, n)[0][0])
        zeros = task.constant(0.0)
        task.write((root, *zeros[1:]), s, j * n + j)
        # One division for the column: the products with it are much faster.
        factor = root.like(1.0) / root

        def below(rows: list[Value]) -> None:
            for i, value in zip(rows, _less_products(task, s, rows, j, n), strict=True):
                task.write(tuple(part * factor for part in value), s, i * n + j)

        in_groups(make, j + 1, n, below, TOGETHER)

    def group(first: Value) -> None:
        task.load_group(first, task.pointers[0], s, n * n)
        make.each(n, column)
        # A pivot that failed is NaN, which sums have spread to the last element.
        has_failed = task.read(s, n * n - 1)[0].is_nan()
        nan, zero = task.constant(float("nan"), float("nan")), task.constant(0.0)

        def finish(i: Value) -> None:
            def spoil(j: Value) -> None:
                task.write(task.select(has_failed, nan, task.read(s, i * n + j)), s, i * n + j)

            make.each(i + 1, spoil)
            writer.count_up(i + 1, n, 1, lambda j: task.write(zero, s, i * n + j))

        make.each(n, finish)
        task.store_group(first, task.pointers[1], s, n * n)

    return task.text("cholesky_lanes", group)


def _less_products(task: _Lanes, s: Value, rows: list[Value], j: Value, n: Value) -> list[Number]:
    """Elements of column j minus the products of their rows with the conjugate of row j.

    Only the columns before j take part.
    """
    numbers, slots = task.numbers, task.slots(len(rows))
    for i, slot in zip(rows, slots, strict=True):
        task.write(task.read(s, i * n + j), slot)

    def less(p: Value) -> None:
        other = numbers.conjugate(task.read(s, j * n + p))
        for i, slot in zip(rows, slots, strict=True):
            task.write(numbers.less_product(task.read(slot), other, task.read(s, i * n + p)), slot)

    task.make.each(j, less)
    return list(map(task.read, slots))


def solve_lanes_function(shape: Shape, numbers: Numbers) -> str:
    """X with A X = B, [n, n] and [n, k]."""
    task = _Lanes(shape, numbers, pointers=3, sizes=4)
    make, writer, (n, k, lower, unit) = task.make, task.writer, task.sizes
    matrix, x = task.scratch(MOST_SMALL * MOST_SMALL), task.scratch(MOST_SMALL * MOST_SMALL)
    is_lower, divides = lower.compare("ne", 0), unit.equals(0)

    def row(number: Value) -> None:
        i = writer.select(is_lower, number, n - 1 - number)
        # The unknowns solved so far are those before row i, or those after it.
        low = writer.select(is_lower, make.number(0), i + 1)
        # The diagonal of a unit triangle may contain anything, so it is replaced by 1.
        diagonal = task.select(divides, task.read(matrix, i * n + i), task.constant(1.0))
        divisor = numbers.divisor(diagonal)

        def columns(places: list[Value]) -> None:
            slots = task.slots(len(places))
            for c, slot in zip(places, slots, strict=True):
                task.write(task.read(x, i * k + c), slot)

            def less(p: Value) -> None:
                factor = task.read(matrix, i * n + p)
                for c, slot in zip(places, slots, strict=True):
                    task.write(numbers.less_product(task.read(slot), factor, task.read(x, p * k + c)), slot)

            writer.count_up(low, low + number, 1, less)
            for c, slot in zip(places, slots, strict=True):
                task.write(numbers.quotient(task.read(slot), divisor), x, i * k + c)

        in_groups(make, make.number(0), k, columns, TOGETHER)

    def group(first: Value) -> None:
        task.load_group(first, task.pointers[0], matrix, n * n)
        task.load_group(first, task.pointers[1], x, n * k)
        make.each(n, row)
        task.store_group(first, task.pointers[2], x, n * k)

    return task.text("solve_lanes", group)


def lu_lanes_function(shape: Shape, numbers: Numbers) -> str:
    """P A = L U of [m, n], with separate exchanges in each lane."""
    task = _Lanes(shape, numbers, pointers=4, sizes=2)
    make, writer, (m, n) = task.make, task.writer, task.sizes
    s, count = task.scratch(MOST_SMALL * MOST_SMALL), least(m, n)
    # As wide as the elements: the mask of a comparison of sizes also selects row numbers.
    pivot_type = f"<{shape.lanes} x i{8 * shape.bytes}>"

    def column(first: Value, j: Value) -> None:
        # Each lane is another matrix with a pivot of its own, so rows are exchanged by selection.
        pivots = _chosen_rows(task, s, j, (m, n), pivot_type)
        _exchange_lanes(task, s, j, (m, n), pivots)
        for lane in range(shape.lanes):
            at = make.at(task.pointers[2], (first + lane) * count + j, "i32")
            number = writer.lane(pivots, lane)
            writer.store(number if number.type == "i32" else number.cast("trunc", "i32"), at)
        pivot = task.read(s, j * n + j)
        # A zero pivot means that the rest of the column is zero, too: division by 1 keeps it.
        divisor = numbers.divisor(task.select(numbers.is_zero(pivot), task.constant(1.0), pivot))

        def below(i: Value) -> None:
            factor = numbers.quotient(task.read(s, i * n + j), divisor)
            task.write(factor, s, i * n + j)

            def right(columns: list[Value]) -> None:
                for c in columns:
                    value, upper = task.read(s, i * n + c), task.read(s, j * n + c)
                    task.write(numbers.less_product(value, factor, upper), s, i * n + c)

            in_groups(make, j + 1, n, right, TOGETHER)

        writer.count_up(j + 1, m, 1, below)

    def group(first: Value) -> None:
        task.load_group(first, task.pointers[0], s, m * n)
        make.each(count, lambda j: column(first, j))
        task.store_group(first, task.pointers[1], s, m * n)

        def order(lane: Value) -> None:
            number = first + lane
            pivots = make.at(task.pointers[2], number * count, "i32")
            make.call("order", pivots, make.at(task.pointers[3], number * m, "i32"), m, count)

        make.each(make.number(shape.lanes), order)

    return task.text("lu_lanes", group)


def _chosen_rows(task: _Lanes, s: Value, j: Value, sizes: tuple[Value, Value], type: str) -> Value:
    """The row number of each lane's pivot, the first greatest element of column j."""
    writer, shape, (m, n) = task.writer, task.shape, sizes
    row_type = type[type.index(" x ") + 3 : -1]

    def number(i: Value) -> Value:
        return writer.splat(i if row_type == "i64" else i.cast("trunc", row_type), shape.lanes)

    place, size = writer.allocate(type), writer.allocate(shape.vector)
    writer.store(number(j), place)
    writer.store(task.numbers.size(task.read(s, j * n + j)), size)

    def compare(i: Value) -> None:
        value, best = task.numbers.size(task.read(s, i * n + j)), writer.load(shape.vector, size)
        is_more = is_greater(value, best)
        writer.store(writer.select(is_more, value, best), size)
        writer.store(writer.select(is_more, number(i), writer.load(type, place)), place)

    writer.count_up(j + 1, m, 1, compare)
    return writer.load(type, place)


def _exchange_lanes(task: _Lanes, s: Value, j: Value, sizes: tuple[Value, Value], pivots: Value) -> None:
    """Exchange row j with the pivot row, in each lane separately."""
    writer, (m, n) = task.writer, sizes
    lanes = task.shape.lanes

    def row(i: Value) -> None:
        number = i if pivots.scalar_type == "i64" else i.cast("trunc", pivots.scalar_type)
        mask = pivots.equals(writer.splat(number, lanes))

        def exchange(c: Value) -> None:
            first, second = task.read(s, j * n + c), task.read(s, i * n + c)
            task.write(task.select(mask, second, first), s, j * n + c)
            task.write(task.select(mask, first, second), s, i * n + c)

        # A row that is not the pivot of any lane needs no exchange.
        writer.either(writer.any_lane(mask), lambda: task.make.each(n, exchange))

    writer.count_up(j + 1, m, 1, row)
