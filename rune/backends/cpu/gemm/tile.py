"""The innermost part of a matrix product as LLVM IR: the tile in registers, and its writer.

A tile of some rows x V vectors of C is in registers; for each p it takes one row of vectors of B
and one element of each row of A, by broadcast. Meanwhile the cache lines of C for the sums are
prefetched. Packed blocks of B have one panel after the other, each with contiguous rows.

Names in signatures: rs, cs, bs are strides in elements between rows, between consecutive p, and
between rows of B; `height` and `tail` are the numbers of existing rows, and of existing lanes of
the last vector; a panel has at most `most` vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from rune.backends.cpu.gemm.shape import Shape
from rune.lowering.codegen.llvm.ir.names import suffix
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.records import dataclass

FETCHING = 256  # the least steps of p for which lines of C are prefetched
FETCHED = 3  # rows of C that are prefetched together: as many lines as a processor requests at once
LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Maker:
    """Writes one function over elements of one shape."""

    shape: Shape
    writer: Writer

    def pointers(self, names: str) -> Iterator[Value]:
        """Parameters that are pointers, by names separated by spaces."""
        return (Value(self.writer, "ptr", f"%{x}") for x in names.split())

    def sizes(self, names: str) -> Iterator[Value]:
        """Parameters that are i64."""
        return (Value(self.writer, "i64", f"%{x}") for x in names.split())

    def flag(self, name: str) -> Value:
        """A parameter that is i1."""
        return Value(self.writer, "i1", f"%{name}")

    def number(self, value: int) -> Value:
        """A constant size."""
        return self.writer.constant("i64", value)

    def at(self, pointer: Value, index: Value | int, type: str | None = None) -> Value:
        """The address `index` elements on."""
        return self.writer.item(pointer, type or self.shape.scalar, index)

    def scalar(self, at: Value) -> Value:
        """Read an element."""
        return self.writer.load(self.shape.scalar, at)

    def vector(self, at: Value, count: Value | None = None) -> Value:
        """Read a vector; with `count`, only its first `count` lanes, and 0 in the others."""
        shape, writer = self.shape, self.writer
        if count is None:
            return writer.load(shape.vector, at, shape.bytes)
        zero = writer.constant(shape.vector, 0.0)
        if shape.masked:
            name = f"@llvm.masked.load.{suffix(shape.vector)}.p0"
            align = writer.constant("i32", shape.bytes)
            return writer.call(shape.vector, name, at, align, self.mask(count), zero)
        # Lane by lane: a full vector may cross into a page that is not mapped.
        stack_vector = writer.allocate(shape.vector)
        writer.store(zero, stack_vector)
        self.each(count, lambda k: writer.store(self.scalar(self.at(at, k)), self.at(stack_vector, k)))
        return writer.load(shape.vector, stack_vector)

    def put(self, value: Value, at: Value, count: Value | None = None) -> None:
        """Write a vector; with `count`, only its first `count` lanes."""
        shape, writer = self.shape, self.writer
        if count is None:
            writer.store(value, at, shape.bytes)
            return
        if shape.masked:
            name = f"@llvm.masked.store.{suffix(shape.vector)}.p0"
            writer.run(name, value, at, writer.constant("i32", shape.bytes), self.mask(count))
            return
        stack_vector = writer.allocate(shape.vector)
        writer.store(value, stack_vector)
        self.each(count, lambda k: writer.store(self.scalar(self.at(stack_vector, k)), self.at(at, k)))

    def mask(self, count: Value) -> Value:
        """The first `count` lanes."""
        return self.writer.first_lanes(count, self.shape.lanes)

    def each(self, count: Value, body: Callable[[Value], None]) -> None:
        """body(0), ..., body(count - 1)."""
        self.writer.count_up(self.number(0), count, 1, body)

    def watched(self, watch: Value, body: Callable[[Value], None]) -> Callable[[Value], None]:
        """The function `watched` for this function's writer."""
        return watched(self.writer, watch, body)

    def word(self, words: Value, number: Value | int, type: str = "i64") -> Value:
        """One of the words of a task or a table."""
        return self.writer.load(type, self.at(words, number, "i64"))

    def words_of_task(self, pointers: int, sizes: int) -> tuple[list[Value], list[Value], Value]:
        """The words of this task: its pointers, its sizes, and its watch."""
        (words,) = self.pointers("words")
        types = ["ptr"] * pointers + ["i64"] * sizes
        values = [self.word(words, k, type) for k, type in enumerate(types)]
        return values[:pointers], values[pointers:], self.watch_of(words)

    def watch_of(self, words: Value) -> Value:
        """The watch of a task, which is stored before its words."""
        return self.word(words, -1, "ptr")

    def task(self, name: str, watch: Value, one: Callable[[Value], None]) -> str:
        """The text of a task of the pool, which does one(begin), ..., one(end - 1)."""
        begin, end = self.sizes("begin end")
        self.writer.count_up(begin, end, 1, self.watched(watch, one))
        return self.text(f"{name}_task(ptr %words, i64 %begin, i64 %end)")

    def zero_slots(self, count: int) -> list[Value]:
        """Memory for vectors of sums, which LLVM promotes to registers, filled with zeros."""
        slots = [self.writer.allocate(self.shape.vector) for _ in range(count)]
        for slot in slots:
            self.writer.store(self.writer.constant(self.shape.vector, 0.0), slot)
        return slots

    def words(self, count: int, watch: Value) -> Value:
        """Memory for the words of a task, with its watch before them."""
        words = self.at(self.writer.allocate("i64", count + 1), 1, "i64")
        self.writer.store(watch, self.at(words, -1, "i64"))
        return words

    def clear(self, at: Value, nbytes: Value) -> None:
        """Fill memory with zeros."""
        zero, no = Value(self.writer, "i8", "0"), Value(self.writer, "i1", "false")
        self.writer.run("@llvm.memset.p0.i64", at, zero, nbytes, no)

    def copy(self, target: Value, source: Value, nbytes: Value) -> None:
        """Copy memory that does not overlap."""
        self.writer.run("@llvm.memcpy.p0.p0.i64", target, source, nbytes, Value(self.writer, "i1", "false"))

    def call(self, function: str, *args: Value) -> None:
        """Call a function of this module by its name, or by an address in a register."""
        operands = ", ".join(f"{v.type} {v.text}" for v in args)
        name = function if function[0] == "%" else f"@{function}"
        self.writer.do(f"call void {name}({operands})")

    def call_piece(self, piece: str | Value, *args: Value) -> None:
        """Call a piece through the table, by its name or its number in `pieces`."""
        number = self.shape.pieces.index(piece) if isinstance(piece, str) else piece
        function = self.writer.load("ptr", self.at(self.writer.at(self.shape.table), number, "ptr"))
        self.call(function.text, *args)

    def text(self, signature: str) -> str:
        """The function as text."""
        self.writer.do("ret void")
        return self.writer.definition(f"internal void @{signature}")


def maker(shape: Shape) -> Maker:
    """A new function."""
    return Maker(shape, Writer(block="start"))


def least(a: Value, b: Value | int) -> Value:
    """The smaller of two sizes."""
    return a.call("smin", b)


def by_vectors(make: Maker, count: Value, body: Callable[[Value, Value | None], None]) -> None:
    """body(first, None) for each whole vector of elements, body(first, length) for the rest."""
    lanes, writer = make.shape.lanes, make.writer
    remainder = count.binary("urem", lanes)
    even = count - remainder
    writer.count_up(make.number(0), even, lanes, lambda at: body(at, None))
    writer.either(remainder > 0, lambda: body(even, remainder))


def in_groups(make: Maker, begin: Value, end: Value, body: Callable[[list[Value]], None], size: int) -> None:
    """body([i, ...]) for `size` indices at once, then for single ones."""
    span = end - begin
    even = end - span.binary("urem", size)
    make.writer.count_up(begin, even, size, lambda i: body([i + r for r in range(size)]))
    make.writer.count_up(even, end, 1, lambda i: body([i]))


def sum_of_lanes(value: Value) -> Value:
    """The sum of the lanes, by halves: the same order for every width of vector."""
    count = value.lanes
    while count > 1:
        count //= 2
        value = value.writer.part(value, 0, count) + value.writer.part(value, count, count)
    return value.writer.lane(value, 0)


def block_count(length: Value, size: Value | int) -> Value:
    """How many blocks of `size` cover a length."""
    return length.ceil_div(size)


def widest(make: Maker, height: Value) -> Value:
    """Vectors of a panel: one less than the most, if tiles of more rows then waste fewer rows."""
    shape, select = make.shape, make.writer.select
    # Of 8 rows tiles of six compute 12, and tiles of eight 8. A narrower panel loads more of A for
    # each product, so it has to save more than a row in sixteen.
    low, high = (shape.rows(shape.vectors - k) for k in (0, 1))
    rows_computed, otherwise = (block_count(height, rows) * rows for rows in (low, high))
    return select(rows_computed * 16 > otherwise * 17, make.number(shape.vectors - 1), shape.vectors)


def each_panel(make: Maker, columns: Value, body: Callable[[Value, Value, Value], None]) -> None:
    """body(first column, columns, vectors) for panels of at most %most vectors, of similar
    widths."""
    lanes, (most,) = make.shape.lanes, make.sizes("most")
    total = block_count(columns, lanes)
    count = total.ceil_div(most)

    def panel(number: Value) -> None:
        low, after = (x.binary("udiv", count) for x in (number * total, (number + 1) * total))
        # Evenly: a panel of one vector has too few sums for all multipliers (decision 0038).
        first, vectors = low * lanes, after - low
        body(first, least(columns - first, vectors * lanes), vectors)

    make.each(count, panel)


# --- the tile ---------------------------------------------------------------------------------


def tile_function(shape: Shape, vectors: int, rows: int, name: str) -> str:
    """C[height, columns] = A B over `depth`, or += with `add`, for one tile."""
    make = maker(shape)
    writer = make.writer
    a, b, c = make.pointers("a b c")
    row_step, depth_step, b_step, ldc, depth, height = make.sizes("rs cs bs ldc depth height")
    # Rows beyond the last repeat it: they are computed, but never stored.
    lines = [make.at(a, least(height - 1, r) * row_step) for r in range(rows)]
    sums = zeros(make, rows, vectors)

    def step(p: Value) -> None:
        multiply(make, lines, p * depth_step, make.at(b, p * b_step), sums)

    # In a short product C is in the first-level cache anyway, and each end of the inner loop costs
    # a branch misprediction.
    fetches, pauses = depth >= FETCHING, -(-rows // FETCHED)
    steps_per_pause = writer.select(fetches, block_count(depth, pauses), depth)

    def steps(number: Value) -> None:
        first = make.at(c, number * ldc * FETCHED)
        writer.either(fetches, partial(_fetch_rows, make, first, min(FETCHED, rows), vectors))
        # Not unrolled: LLVM moves loads of several steps up until registers overflow. Nor is A
        # fetched ahead, which won 1 % (decision 0038).
        writer.count_up(number * steps_per_pause, least(number * steps_per_pause + steps_per_pause, depth), 1, step)

    make.each(writer.select(fetches, make.number(pauses), 1), steps)
    put = partial(_put_tile, make, sums)
    writer.either(make.flag("add"), partial(put, True), partial(put, False))
    return make.text(
        f"{name}(ptr %a, i64 %rs, i64 %cs, ptr %b, i64 %bs, ptr %c, i64 %ldc, i64 %depth, "
        "i64 %height, i64 %tail, i1 %add)"
    )


def zeros(make: Maker, rows: int, vectors: int) -> list[list[Value]]:
    """The sums of a tile by rows."""
    slots = make.zero_slots(rows * vectors)
    return [slots[first : first + vectors] for first in range(0, rows * vectors, vectors)]


def multiply(make: Maker, lines: list[Value], offset: Value, b: Value, sums: list[list[Value]]) -> None:
    """Add to a tile's sums the products of one p: an element of each line by vectors from `b`
    on."""
    shape, writer = make.shape, make.writer
    columns = [make.vector(make.at(b, v * shape.lanes)) for v in range(len(sums[0]))]
    for row, slots in zip(lines, sums, strict=True):
        x = writer.splat(make.scalar(make.at(row, offset)), shape.lanes)
        for column, slot in zip(columns, slots, strict=True):
            writer.store(x.fma(column, writer.load(shape.vector, slot)), slot)


def _fetch_rows(make: Maker, first: Value, rows: int, vectors: int) -> None:
    """Prefetch rows of the tile's C into the first-level cache, for writing."""
    shape, (ldc,) = make.shape, make.sizes("ldc")
    row_bytes = vectors * shape.lanes * shape.bytes
    # One line more than the row is long, because it may begin in the middle of a line.
    for row, place in product(range(rows), range(0, row_bytes + 1, LINE_BYTES)):
        at = make.at(make.at(first, ldc * row), place // shape.bytes)
        make.writer.do(f"call void @llvm.prefetch.p0(ptr {at.text}, i32 1, i32 3, i32 1)")


def _put_tile(make: Maker, sums: list[list[Value]], adds: bool) -> None:
    """Store `height` rows of sums to C, or add them to C."""
    shape, writer = make.shape, make.writer
    (c,), (ldc, height) = make.pointers("c"), make.sizes("ldc height")

    def put_rows_from(r: int) -> None:
        line = make.at(c, ldc * r)
        for v, slot in enumerate(sums[r]):
            value, at = writer.load(shape.vector, slot), make.at(line, v * shape.lanes)
            _put_sum(make, value, at, v == len(sums[r]) - 1, adds)
        # Nested, so that one text serves any number of existing rows (decision 0040).
        if r + 1 < len(sums):
            writer.either(height > r + 1, partial(put_rows_from, r + 1))

    put_rows_from(0)


def _put_sum(make: Maker, value: Value, at: Value, is_last: bool, adds: bool) -> None:
    """Store a vector of sums to C, or add it to C; of the last one only `tail` lanes."""
    (tail,) = make.sizes("tail")

    def full() -> None:
        make.put(make.vector(at) + value if adds else value, at)

    def part() -> None:
        make.put(make.vector(at, tail) + value if adds else value, at, tail)

    if not is_last:
        full()
    elif make.shape.masked:
        part()
    else:
        make.writer.either(tail.equals(make.shape.lanes), full, part)


def watched(writer: Writer, watch: Value, body: Callable[[Value], None]) -> Callable[[Value], None]:
    """The body of a loop, which does nothing once the watch says that all is over (pulse.py)."""
    # Skipping iterations, and not leaving the loop, keeps its control flow simple.
    over = writer.allocate("i1")

    def ask() -> None:
        function = writer.load("ptr", watch)
        writer.store(writer.effect("i1", f"call i1 {function.text}(ptr {watch.text})"), over)

    def unless_over(number: Value) -> None:
        writer.store(Value(writer, "i1", "false"), over)
        writer.either(watch.compare("ne", Value(writer, "ptr", "null")), ask)
        writer.either(writer.load("i1", over).invert(), lambda: body(number))

    return unless_over
