"""The inner parts of a matrix product as LLVM IR: the tile in registers, and packing.

A tile of `rows` x V vectors of C is held in registers; for each p it takes one row of vectors of B
and one element of each row of A, by broadcast. Meanwhile the lines of C that the sums go to are
fetched. Packed blocks of B hold one panel behind the other, a panel's rows being contiguous; the
rows of A are contiguous, or packed.

Names in signatures: rs, cs, bs are steps in elements from row to row, from p to p, and between the
rows of B; `height` and `tail` count the rows, and the lanes of the last vector, that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from rune.lowering.codegen.llvm import Machine
from rune.lowering.codegen.llvm_names import suffix
from rune.lowering.codegen.llvm_text import Value, Writer

BLOCK_BYTES = 1536  # of one row of a packed block of B
FETCHED = 32  # vectors of B that are used while one line of C is fetched
LINE_BYTES = 64
ROWS = 8  # of a tile, at most: each takes an address
BYTES = {"float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class Shape:
    """The tile for one machine and type."""

    scalar: str
    lanes: int
    sums: int  # vectors of C in registers
    vectors: int  # in one panel of B, at most
    width: int  # columns of a packed block, a multiple of a panel's
    masked: bool

    @property
    def vector(self) -> str:
        """The type of one vector."""
        return f"<{self.lanes} x {self.scalar}>"

    @property
    def panel(self) -> int:
        """Columns of one panel of B."""
        return self.vectors * self.lanes

    def rows(self, vectors: int) -> int:
        """Rows of a tile of so many vectors."""
        return min(ROWS, self.sums // vectors)

    @property
    def bytes(self) -> int:
        """Bytes of one element, to which everything is aligned."""
        return BYTES[self.scalar]


def shape_for(machine: Machine, scalar: str) -> Shape:
    """As many sums as the registers hold: 32 of them on AVX-512 and ARM, 16 on AVX2.

    Four vectors of AVX-512 are 64 columns of f32, which divide the usual sizes.
    """
    lanes = machine.vector_bytes // BYTES[scalar]
    sums, vectors = {64: (24, 4), 32: (12, 3), 16: (24, 3)}[machine.vector_bytes]
    panel = vectors * lanes
    width = (BLOCK_BYTES // BYTES[scalar]) // panel * panel
    return Shape(scalar, lanes, sums, vectors, width, machine.masked)


@dataclass(frozen=True, slots=True)
class Maker:
    """A writer of one function over elements of one shape."""

    shape: Shape
    writer: Writer

    def pointers(self, names: str) -> Iterator[Value]:
        """Parameters that are pointers, by names divided by spaces."""
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
        text = index if isinstance(index, int) else index.text
        type = type or self.shape.scalar
        return self.writer.emit("ptr", f"getelementptr {type}, ptr {pointer.text}, i64 {text}")

    def scalar(self, at: Value) -> Value:
        """Read an element."""
        return self.writer.load(self.shape.scalar, at)

    def vector(self, at: Value, count: Value | None = None) -> Value:
        """Read a vector; with `count`, so many lanes of it, and 0 in the others."""
        shape, writer = self.shape, self.writer
        if count is None:
            return writer.load(shape.vector, at, shape.bytes)
        zero = writer.constant(shape.vector, 0.0)
        if shape.masked:
            name = f"@llvm.masked.load.{suffix(shape.vector)}.p0"
            align = writer.constant("i32", shape.bytes)
            return writer.call(shape.vector, name, at, align, self.mask(count), zero)
        held = writer.allocate(shape.vector)
        writer.store(zero, held)
        self.each(count, lambda k: writer.store(self.scalar(self.at(at, k)), self.at(held, k)))
        return writer.load(shape.vector, held)

    def put(self, value: Value, at: Value) -> None:
        """Write a vector."""
        self.writer.store(value, at, self.shape.bytes)

    def put_some(self, value: Value, at: Value, count: Value) -> None:
        """Write `count` lanes of a vector."""
        shape, writer = self.shape, self.writer
        if shape.masked:
            name = f"@llvm.masked.store.{suffix(shape.vector)}.p0"
            writer.run(name, value, at, writer.constant("i32", shape.bytes), self.mask(count))
            return
        held = writer.allocate(shape.vector)
        writer.store(value, held)
        self.each(count, lambda k: writer.store(self.scalar(self.at(held, k)), self.at(at, k)))

    def mask(self, count: Value) -> Value:
        """The first `count` lanes."""
        lanes = self.shape.lanes
        alive = self.writer.splat(count.cast("trunc", "i32"), lanes)
        return self.writer.iota(lanes, "i32").compare("ult", alive)

    def each(self, count: Value, body: Callable[[Value], None]) -> None:
        """body(0), ..., body(count - 1)."""
        self.writer.count_up(self.number(0), count, 1, body)

    def call(self, function: str, *args: Value) -> None:
        """Call a function of this module."""
        listed = ", ".join(f"{v.type} {v.text}" for v in args)
        self.writer.do(f"call void @{function}({listed})")

    def text(self, signature: str) -> str:
        """The whole function."""
        writer = self.writer
        head = [f"define internal void @{signature} #0 {{", "entry:", *writer.entry]
        body = ["  br label %start", "start:", *writer.lines, "  ret void", "}"]
        return "\n".join([*head, *body])


def maker(shape: Shape) -> Maker:
    """A new function."""
    return Maker(shape, Writer(block="start"))


def least(a: Value, b: Value | int) -> Value:
    """The smaller of two sizes."""
    return a.call("smin", b)


def block_count(length: Value, size: int) -> Value:
    """How many blocks of `size` cover a length."""
    return (length + (size - 1)).binary("udiv", length + (size - 1), size)


def widest(make: Maker, height: Value) -> Value:
    """Vectors of a panel: one less than the most, where tiles of more rows then waste fewer."""
    shape, select = make.shape, make.writer.select
    low, high = (shape.rows(shape.vectors - k) for k in (0, 1))
    computed, otherwise = (block_count(height, rows) * rows for rows in (low, high))
    return select(computed * 16 > otherwise * 17, make.number(shape.vectors - 1), shape.vectors)


def each_panel(make: Maker, columns: Value, body: Callable[[Value, Value, Value], None]) -> None:
    """body(first column, columns, vectors) of panels of %most vectors, or all of about as many."""
    lanes, (most,) = make.shape.lanes, make.sizes("most")
    total = block_count(columns, lanes)
    count = (total + (most - 1)).binary("udiv", total + (most - 1), most)

    def panel(number: Value) -> None:
        low, after = (x.binary("udiv", x, count) for x in (number * total, (number + 1) * total))
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
    # Rows beyond the last repeat it: computed, never stored.
    lines = [make.at(a, least(height - 1, r) * row_step) for r in range(rows)]
    sums = [[writer.allocate(shape.vector) for _ in range(vectors)] for _ in lines]
    for slot in (s for row in sums for s in row):
        writer.store(writer.constant(shape.vector, 0.0), slot)

    def step(p: Value) -> None:
        line, offset = make.at(b, p * b_step), p * depth_step
        columns = [make.vector(make.at(line, v * shape.lanes)) for v in range(vectors)]
        for row, slots in zip(lines, sums, strict=True):
            x = writer.splat(make.scalar(make.at(row, offset)), shape.lanes)
            for column, slot in zip(columns, slots, strict=True):
                writer.store(x.fma(column, writer.load(shape.vector, slot)), slot)

    several = FETCHED // vectors
    whole = depth.binary("udiv", depth, several)

    def steps(number: Value) -> None:
        _fetch_line(make, number, rows, vectors)
        writer.count_up(number * several, number * several + several, 1, step)

    make.each(whole, steps)
    writer.count_up(whole * several, depth, 1, step)
    # The sums go through memory, so that one loop stores any number of rows.
    held = writer.allocate(shape.vector, rows * vectors)
    for number, slot in enumerate(s for row in sums for s in row):
        writer.store(writer.load(shape.vector, slot), make.at(held, number, shape.vector))

    def put_row(r: Value) -> None:
        line, total = make.at(c, ldc * r), make.at(held, r * vectors, shape.vector)
        for v in range(vectors):
            value = writer.load(shape.vector, make.at(total, v, shape.vector))
            _put_sum(make, value, make.at(line, v * shape.lanes), v == vectors - 1)

    make.each(height, put_row)
    return make.text(
        f"{name}(ptr %a, i64 %rs, i64 %cs, ptr %b, i64 %bs, ptr %c, i64 %ldc, i64 %depth, "
        "i64 %height, i64 %tail, i1 %add)"
    )


def _fetch_line(make: Maker, number: Value, rows: int, vectors: int) -> None:
    """Have one line of the tile's C brought to the first cache, to be written."""
    shape, (c,), (ldc,) = make.shape, make.pointers("c"), make.sizes("ldc")
    lanes = LINE_BYTES // shape.bytes
    last = vectors * shape.lanes // lanes
    row = number.binary("urem", number, rows)
    line = least(number.binary("udiv", number, rows), last)
    at = make.at(c, row * ldc + line * lanes)
    make.writer.do(f"call void @llvm.prefetch.p0(ptr {at.text}, i32 1, i32 3, i32 1)")


def _put_sum(make: Maker, value: Value, at: Value, is_last: bool) -> None:
    """Store a vector of sums, or add it to what is there; of the last one, `tail` lanes."""
    writer, shape, add = make.writer, make.shape, make.flag("add")
    (tail,) = make.sizes("tail")

    def whole() -> None:
        writer.either(
            add, lambda: make.put(make.vector(at) + value, at), lambda: make.put(value, at)
        )

    def part() -> None:
        def more() -> None:
            make.put_some(make.vector(at, tail) + value, at, tail)

        writer.either(add, more, lambda: make.put_some(value, at, tail))

    if not is_last:
        whole()
    elif shape.masked:
        part()
    else:
        writer.either(tail.equals(shape.lanes), whole, part)


# --- packing ----------------------------------------------------------------------------------


def pack_function(shape: Shape) -> str:
    """Copy `depth` x `columns` of B to panels: the rows of one panel, then those of the next.

    The rows of a panel have as many vectors as its columns need. What stands in lanes beyond the
    columns, and in rows beyond the depth, which the next panel overwrites, is of no consequence.
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
            swapped[i], swapped[i + distance] = (
                writer.shuffle(a, b, low),
                writer.shuffle(a, b, high),
            )
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
