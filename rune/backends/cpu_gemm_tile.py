"""The inner parts of a matrix product as LLVM IR: the tile in registers, and packing.

A tile of `rows` x V vectors of C is held in registers; for each p it takes one row of vectors of B
and one element of each row of A, by broadcast. Packed blocks of B hold one panel behind the other,
a panel's rows being contiguous; packed rows of A lie by tiles, the elements of one p together.

Names in signatures: rs, cs, bs are steps in elements from row to row, from p to p, and between the
rows of B; `height` and `tail` count the rows, and the lanes of the last vector, that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from rune.lowering.codegen.llvm import Machine
from rune.lowering.codegen.llvm_names import suffix
from rune.lowering.codegen.llvm_text import Value, Writer

PANELS = 3  # vectors in one panel of B
BYTES = {"float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class Shape:
    """The tile for one machine and type."""

    scalar: str
    lanes: int
    rows: int
    width: int  # columns of a packed block, a multiple of a panel's
    masked: bool

    @property
    def vector(self) -> str:
        """The type of one vector."""
        return f"<{self.lanes} x {self.scalar}>"

    @property
    def panel(self) -> int:
        """Columns of one panel of B."""
        return PANELS * self.lanes

    @property
    def bytes(self) -> int:
        """Bytes of one element, to which everything is aligned."""
        return BYTES[self.scalar]


def shape_for(machine: Machine, scalar: str) -> Shape:
    """As many rows as the registers hold: 32 of them on AVX-512 and ARM, 16 on AVX2."""
    lanes = machine.vector_bytes // BYTES[scalar]
    rows = 4 if machine.vector_bytes == 32 else 8
    panel = PANELS * lanes
    width = (1920 // BYTES[scalar]) // panel * panel
    return Shape(scalar, lanes, rows, width, machine.masked)


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


# --- the tile ---------------------------------------------------------------------------------


def tile_function(shape: Shape, vectors: int, name: str) -> str:
    """C[height, columns] = A B over `depth`, or += with `add`, for one tile."""
    make = maker(shape)
    writer = make.writer
    a, b, c = make.pointers("a b c")
    row_step, depth_step, b_step, ldc, depth, height = make.sizes("rs cs bs ldc depth height")
    # Rows beyond the last repeat it: computed, never stored.
    rows = [make.at(a, least(height - 1, r) * row_step) for r in range(shape.rows)]
    sums = [[writer.allocate(shape.vector) for _ in range(vectors)] for _ in rows]
    for slot in (s for row in sums for s in row):
        writer.store(writer.constant(shape.vector, 0.0), slot)

    def step(p: Value) -> None:
        line, offset = make.at(b, p * b_step), p * depth_step
        columns = [make.vector(make.at(line, v * shape.lanes)) for v in range(vectors)]
        for row, slots in zip(rows, sums, strict=True):
            x = writer.splat(make.scalar(make.at(row, offset)), shape.lanes)
            for column, slot in zip(columns, slots, strict=True):
                writer.store(x.fma(column, writer.load(shape.vector, slot)), slot)

    make.each(depth, step)
    # The sums go through memory, so that one loop stores any number of rows.
    held = writer.allocate(shape.vector, shape.rows * vectors)
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

    def panel(number: Value) -> None:
        first = number * shape.panel
        vectors = block_count(least(columns - first, shape.panel), shape.lanes)
        start = make.at(target, first * depth)

        def vector(v: Value) -> None:
            column = first + v * shape.lanes
            alive = least(columns - column, shape.lanes)
            take, put = make.at(source, column * column_step), make.at(start, v * shape.lanes)
            _pack_vector(make, take, put, vectors * shape.lanes, alive)

        make.each(vectors, vector)

    make.each(block_count(columns, shape.panel), panel)
    return make.text("pack(ptr %b, i64 %rs, i64 %cs, ptr %to, i64 %depth, i64 %columns)")


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
    """Copy `height` rows x `depth` of a transposed A: `rows` neighbours for each p, by tiles."""
    make = maker(replace(shape, lanes=shape.rows, masked=False))
    source, target = make.pointers("a to")
    step, depth, height = make.sizes("cs depth height")

    def tile(number: Value) -> None:
        first = number * shape.rows
        alive = least(height - first, shape.rows)
        start = make.at(target, first * depth)

        def copied(count: Value | None) -> None:
            def one(p: Value) -> None:
                line = make.vector(make.at(source, p * step + first), count)
                make.put(line, make.at(start, p * shape.rows))

            make.each(depth, one)

        make.writer.either(alive.equals(shape.rows), partial(copied, None), partial(copied, alive))

    make.each(block_count(height, shape.rows), tile)
    return make.text("pack_rows(ptr %a, i64 %cs, ptr %to, i64 %depth, i64 %height)")
