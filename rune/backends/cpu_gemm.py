"""Matrix multiplication in LLVM IR, run by our own pool, for every pair of layouts.

    C[i, j] = sum over p of A[i, p] B[p, j]        A, B: a pair of strides each, one of them 1

The inner kernel holds a tile of ROWS x V vectors of C in registers and adds one outer product for
each p; A is read by broadcast, B from a packed block whose rows are contiguous. Blocks: DEPTH of
p, so that one panel of B stays in the first cache, and WIDTH columns, so that the block stays in
the second. Each core computes a stripe of C, of columns where there are enough, else of rows, and
packs for itself: no core waits for another.

Why own code beside BLAS: OpenBLAS's threads spin and fight with the pool's for the same cores.
The order of the sum depends on DEPTH alone, never on how the work was split.
Source: the blocking is Goto & van de Geijn 2008, ACM TOMS 34(3).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rune import dtypes
from rune.backends import cpu_compile
from rune.lowering.codegen.llvm import Machine
from rune.lowering.codegen.llvm_text import Value, Writer, suffix

DEPTH = 256
PANELS = 3  # vectors in one panel of B
FEW = 4  # rows of A up to which contiguous columns of B are not packed
PARALLEL_OPERATIONS = 400_000  # multiply-adds from which a product is split between cores
SCALARS = {dtypes.f32: "float", dtypes.f64: "double"}
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


def shape_for(machine: Machine, scalar: str) -> Shape:
    """As many rows as the registers hold: 32 of them on AVX-512 and ARM, 16 on AVX2."""
    lanes = machine.vector_bytes // BYTES[scalar]
    many = machine.vector_bytes != 32
    panel = PANELS * lanes
    width = (480 * 4 // BYTES[scalar]) // panel * panel
    return Shape(scalar, lanes, 8 if many else 4, width, machine.masked)


def _value(writer: Writer, type: str, name: str) -> Value:
    return Value(writer, type, f"%{name}")


def _function(head: str, writer: Writer) -> str:
    lines = [f"define internal void {head} #0 {{", "entry:", *writer.entry, "  br label %start"]
    return "\n".join([*lines, "start:", *writer.lines, "  ret void", "}"])


def _at(pointer: Value, index: Value | int, type: str) -> Value:
    """The address of the element `index` elements on."""
    text = index if isinstance(index, int) else index.text
    return pointer.writer.emit("ptr", f"getelementptr {type}, ptr {pointer.text}, i64 {text}")


def _listed(*values: Value) -> str:
    """Values as the arguments of a call."""
    return ", ".join(f"{v.type} {v.text}" for v in values)


def _least(a: Value, b: Value | int) -> Value:
    return a.call("smin", b)


# --- the inner kernel -------------------------------------------------------------------------


def tile_kernel(shape: Shape, vectors: int) -> str:
    """A tile of `rows` x `vectors`: `height` rows and `tail` columns of the last vector count."""
    writer = Writer(block="start")
    a, b, c = (_value(writer, "ptr", x) for x in "abc")
    row_step, depth_step, depth = (_value(writer, "i64", x) for x in ("rs", "cs", "depth"))
    b_step, ldc, height, tail = (_value(writer, "i64", x) for x in ("bs", "ldc", "height", "tail"))
    last = height - 1
    # Rows beyond the last repeat it: computed, never stored.
    rows = [_at(a, _least(last, r) * row_step, shape.scalar) for r in range(shape.rows)]
    sums = [[writer.allocate(shape.vector) for _ in range(vectors)] for _ in rows]
    zero = writer.constant(shape.vector, 0.0)
    for slot in (s for row in sums for s in row):
        writer.store(zero, slot)

    def step(p: Value) -> None:
        line = _at(b, p * b_step, shape.scalar)
        columns = [
            writer.load(shape.vector, _at(line, v * shape.lanes, shape.scalar), BYTES[shape.scalar])
            for v in range(vectors)
        ]
        offset = p * depth_step
        for row, slots in zip(rows, sums, strict=True):
            x = writer.splat(writer.load(shape.scalar, _at(row, offset, shape.scalar)), shape.lanes)
            for column, slot in zip(columns, slots, strict=True):
                writer.store(x.fma(column, writer.load(shape.vector, slot)), slot)

    writer.count_up(writer.constant("i64", 0), depth, 1, step)
    for r, slots in enumerate(sums):
        line = _at(c, ldc * r, shape.scalar)
        totals = [writer.load(shape.vector, slot) for slot in slots]
        writer.either(height > r, functools.partial(_put_row, writer, shape, line, totals, tail))
    head = f"@tile{vectors}(ptr %a, i64 %rs, i64 %cs, ptr %b, i64 %bs, ptr %c, i64 %ldc, "
    return _function(head + "i64 %depth, i64 %height, i64 %tail, i1 %add)", writer)


def _put_row(
    writer: Writer, shape: Shape, line: Value, totals: list[Value], tail: Value
) -> None:
    """Store a row of the tile, or add it to what is there."""
    add = _value(writer, "i1", "add")
    for v, total in enumerate(totals):
        at = _at(line, v * shape.lanes, shape.scalar)
        if v < len(totals) - 1:
            _put(writer, shape, at, total, add, None)
        elif shape.masked:
            _put(writer, shape, at, total, add, tail)
        else:
            writer.either(
                tail.equals(shape.lanes),
                functools.partial(_put, writer, shape, at, total, add, None),
                functools.partial(_put_by_one, writer, shape, at, total, add, tail),
            )


def _mask(alive: Value, shape: Shape) -> Value:
    """The first `alive` lanes."""
    writer = alive.writer
    count = writer.splat(alive.cast("trunc", "i32"), shape.lanes)
    return writer.iota(shape.lanes, "i32").compare("ult", count)


def _put(
    writer: Writer, shape: Shape, at: Value, total: Value, add: Value, count: Value | None
) -> None:
    align = BYTES[shape.scalar]

    def write(value: Value) -> None:
        if count is None:
            writer.store(value, at, align)
        else:
            name = f"@llvm.masked.store.{suffix(shape.vector)}.p0"
            writer.run(name, value, at, writer.constant("i32", align), _mask(count, shape))

    def read() -> Value:
        return _load_some(writer, shape, at, count)

    writer.either(add, lambda: write(read() + total), lambda: write(total))


def _put_by_one(
    writer: Writer, shape: Shape, at: Value, total: Value, add: Value, count: Value
) -> None:
    held = writer.allocate(shape.vector)
    writer.store(total, held)

    def one(k: Value) -> None:
        here, x = _at(at, k, shape.scalar), writer.load(shape.scalar, _at(held, k, shape.scalar))
        old = writer.load(shape.scalar, here)
        writer.store(x + writer.select(add, old, 0.0), here)

    writer.count_up(writer.constant("i64", 0), count, 1, one)


# --- packing ----------------------------------------------------------------------------------


def pack_function(shape: Shape) -> str:
    """Copy `depth` x `columns` of B to panels: the rows of one panel, then those of the next.

    The rows of a panel have as many vectors as its columns need. What stands in lanes beyond the
    columns, and in rows beyond the depth, which the next panel overwrites, is of no consequence.
    """
    writer = Writer(block="start")
    source, target = _value(writer, "ptr", "b"), _value(writer, "ptr", "to")
    depth, columns = _value(writer, "i64", "depth"), _value(writer, "i64", "columns")
    column_step = _value(writer, "i64", "cs")
    zero = writer.constant("i64", 0)

    def panel(number: Value) -> None:
        first = number * shape.panel
        vectors = _blocks(_least(columns - first, shape.panel), shape.lanes)
        start = _at(target, first * depth, shape.scalar)

        def vector(v: Value) -> None:
            column = first + v * shape.lanes
            alive = _least(columns - column, shape.lanes)
            put = _at(start, v * shape.lanes, shape.scalar)
            take = _at(source, column * column_step, shape.scalar)
            _pack_vector(writer, shape, take, put, vectors * shape.lanes, alive)

        writer.count_up(zero, vectors, 1, vector)

    writer.count_up(zero, _blocks(columns, shape.panel), 1, panel)
    return _function("@pack(ptr %b, i64 %rs, i64 %cs, ptr %to, i64 %depth, i64 %columns)", writer)


def _pack_vector(
    writer: Writer, shape: Shape, take: Value, put: Value, step: Value, alive: Value
) -> None:
    """One vector of columns, all rows: copied where its rows are contiguous, else transposed."""
    row_step, column_step = _value(writer, "i64", "rs"), _value(writer, "i64", "cs")
    depth, zero = _value(writer, "i64", "depth"), writer.constant("i64", 0)
    lanes, align = shape.lanes, BYTES[shape.scalar]

    def copied(count: Value | None) -> None:
        def row(p: Value) -> None:
            line = _load_some(writer, shape, _at(take, p * row_step, shape.scalar), count)
            writer.store(line, _at(put, p * step, shape.scalar), align)

        writer.count_up(zero, depth, 1, row)

    def transposed(block: Value, count: Value | None) -> None:
        first = block * lanes
        places = [_least(alive - 1, k) * column_step + first for k in range(lanes)]
        lines = [_load_some(writer, shape, _at(take, x, shape.scalar), count) for x in places]
        for k, line in enumerate(transpose(lines)):
            writer.store(line, _at(put, (first + k) * step, shape.scalar), align)

    def all_transposed() -> None:
        full = depth.binary("udiv", depth, lanes)
        rest = depth - full * lanes
        writer.count_up(zero, full, 1, lambda block: transposed(block, None))
        writer.either(rest > 0, lambda: transposed(full, rest))

    def contiguous() -> None:
        whole = alive.equals(lanes)
        writer.either(whole, lambda: copied(None), lambda: copied(alive))

    writer.either(column_step.equals(1), contiguous, all_transposed)


def _load_some(writer: Writer, shape: Shape, at: Value, count: Value | None) -> Value:
    """A vector of which the first `count` lanes are read, all for None; the others are 0."""
    align, zero = BYTES[shape.scalar], writer.constant(shape.vector, 0.0)
    if count is None:
        return writer.load(shape.vector, at, align)
    if shape.masked:
        name = f"@llvm.masked.load.{suffix(shape.vector)}.p0"
        alignment = writer.constant("i32", align)
        return writer.call(shape.vector, name, at, alignment, _mask(count, shape), zero)
    held = writer.allocate(shape.vector)
    writer.store(zero, held)

    def one(k: Value) -> None:
        value = writer.load(shape.scalar, _at(at, k, shape.scalar))
        writer.store(value, _at(held, k, shape.scalar))

    writer.count_up(writer.constant("i64", 0), count, 1, one)
    return writer.load(shape.vector, held)


def transpose(lines: list[Value]) -> list[Value]:
    """The columns of a square of vectors, by exchanging halves, quarters, and so on."""
    count, writer = len(lines), lines[0].writer
    distance = count // 2
    while distance:
        swapped = list(lines)
        for i in (k for k in range(count) if not k & distance):
            a, b = lines[i], lines[i + distance]
            low = [k if not k & distance else k - distance + count for k in range(count)]
            high = [k + distance if not k & distance else k + count for k in range(count)]
            swapped[i] = writer.shuffle(a, b, low)
            swapped[i + distance] = writer.shuffle(a, b, high)
        lines, distance = swapped, distance // 2
    return lines


# --- the loops around -------------------------------------------------------------------------

_WORDS = ("a", "b", "c", "m", "n", "k", "ars", "acs", "brs", "bcs", "by_rows", "units")


def stripe_function(shape: Shape) -> str:
    """Task of the pool: stripes begin..end of the batch, each a number of rows or of columns."""
    writer = Writer(block="start")
    words = _value(writer, "ptr", "words")
    w = {
        name: writer.load("ptr" if name in "abc" else "i64", _at(words, k, "i64"))
        for k, name in enumerate(_WORDS)
    }
    begin, end = _value(writer, "i64", "begin"), _value(writer, "i64", "end")
    by_rows = w["by_rows"].compare("ne", 0)
    unit = writer.select(by_rows, writer.constant("i64", shape.rows), shape.panel)
    length = writer.select(by_rows, w["m"], w["n"])

    def one_batch(i: Value) -> None:
        low = (begin - i * w["units"]).call("smax", 0) * unit
        high = _least(_least(end - i * w["units"], w["units"]) * unit, length)
        a = _at(w["a"], i * w["m"] * w["k"], shape.scalar)
        b = _at(w["b"], i * w["k"] * w["n"], shape.scalar)
        c = _at(w["c"], i * w["m"] * w["n"], shape.scalar)
        i0, i1 = writer.select(by_rows, low, 0), writer.select(by_rows, high, w["m"])
        j0, j1 = writer.select(by_rows, 0, low), writer.select(by_rows, w["n"], high)
        steps = [w[x] for x in ("k", "ars", "acs", "brs", "bcs")]
        given = _listed(a, b, c, w["n"], i0, i1, j0, j1, *steps)
        few = (w["m"] <= FEW) & w["acs"].equals(1) & w["brs"].equals(1)
        writer.either(
            few,
            lambda: writer.do(f"call void @rows({given})"),
            lambda: writer.do(f"call void @block({given})"),
        )

    units = w["units"]
    last = (end + (units - 1)).binary("udiv", end + (units - 1), units)
    writer.count_up(begin.binary("udiv", begin, units), last, 1, one_batch)
    return _function("@stripes(ptr %words, i64 %begin, i64 %end)", writer)


def rows_function(shape: Shape) -> str:
    """A few rows of A by columns of B that are contiguous: FEW sums over vectors of p at once."""
    writer = Writer(block="start")
    a, b, c = (_value(writer, "ptr", x) for x in "abc")
    n, i0, i1, j0, j1, k = (_value(writer, "i64", x) for x in ("n", "i0", "i1", "j0", "j1", "k"))
    ars, bcs = _value(writer, "i64", "ars"), _value(writer, "i64", "bcs")
    zero = writer.constant("i64", 0)
    whole = k.binary("udiv", k, shape.lanes)
    rest = k - whole * shape.lanes

    def four(i: Value, block: Value) -> None:
        j = j0 + block * FEW
        left = _at(a, i * ars, shape.scalar)
        lines = [_at(b, _least(j1 - 1, j + r) * bcs, shape.scalar) for r in range(FEW)]
        slots = [writer.allocate(shape.vector) for _ in lines]
        for slot in slots:
            writer.store(writer.constant(shape.vector, 0.0), slot)

        def step(number: Value, count: Value | None) -> None:
            p = number * shape.lanes
            x = _load_some(writer, shape, _at(left, p, shape.scalar), count)
            for line, slot in zip(lines, slots, strict=True):
                y = _load_some(writer, shape, _at(line, p, shape.scalar), count)
                writer.store(x.fma(y, writer.load(shape.vector, slot)), slot)

        writer.count_up(zero, whole, 1, lambda number: step(number, None))
        writer.either(rest > 0, lambda: step(whole, rest))
        for r, slot in enumerate(slots):
            total = _sum_of_lanes(writer.load(shape.vector, slot))
            at = _at(c, i * n + j + r, shape.scalar)
            writer.either(j1 > j + r, functools.partial(writer.store, total, at))

    def row(i: Value) -> None:
        writer.count_up(zero, _blocks(j1 - j0, FEW), 1, functools.partial(four, i))

    writer.count_up(i0, i1, 1, row)
    names = "ptr %a, ptr %b, ptr %c, i64 %n, i64 %i0, i64 %i1, i64 %j0, i64 %j1, i64 %k, "
    return _function(f"@rows({names}i64 %ars, i64 %acs, i64 %brs, i64 %bcs)", writer)


def _sum_of_lanes(value: Value) -> Value:
    """The lanes added by halves."""
    count = value.lanes
    while count > 1:
        count //= 2
        value = value.writer.part(value, 0, count) + value.writer.part(value, count, count)
    return value.writer.lane(value, 0)


def block_function(shape: Shape) -> str:
    """One stripe: loops over blocks of columns, of depth, panels and tiles."""
    writer = Writer(block="start")
    a, b, c = (_value(writer, "ptr", x) for x in "abc")
    n, i0, i1, j0, j1, k = (_value(writer, "i64", x) for x in ("n", "i0", "i1", "j0", "j1", "k"))
    ars, acs, brs, bcs = (_value(writer, "i64", x) for x in ("ars", "acs", "brs", "bcs"))
    slack = shape.lanes * PANELS  # vectors that a transposed last panel may write beyond its end
    packed = writer.allocate(shape.vector, DEPTH * shape.width // shape.lanes + slack)
    zero = writer.constant("i64", 0)

    def columns(block: Value) -> None:
        j = j0 + block * shape.width
        wide = _least(j1 - j, shape.width)

        def deep(number: Value) -> None:
            p = number * DEPTH
            depth = _least(k - p, DEPTH)
            start = _at(b, p * brs + j * bcs, shape.scalar)
            writer.do(f"call void @pack({_listed(start, brs, bcs, packed, depth, wide)})")
            add = number.compare("ne", 0)
            left = _at(a, p * acs, shape.scalar)
            corner = _at(c, j, shape.scalar)
            _tiles(writer, shape, (left, corner, packed), (i0, i1, wide, depth, n), add)

        writer.count_up(zero, _blocks(k, DEPTH), 1, deep)

    writer.count_up(zero, _blocks(j1 - j0, shape.width), 1, columns)
    names = "ptr %a, ptr %b, ptr %c, i64 %n, i64 %i0, i64 %i1, i64 %j0, i64 %j1, i64 %k, "
    return _function(f"@block({names}i64 %ars, i64 %acs, i64 %brs, i64 %bcs)", writer)


def _blocks(length: Value, size: int) -> Value:
    return (length + (size - 1)).binary("udiv", length + (size - 1), size)


def _tiles(
    writer: Writer,
    shape: Shape,
    at: tuple[Value, Value, Value],
    extents: tuple[Value, Value, Value, Value, Value],
    add: Value,
) -> None:
    """All tiles of one packed block."""
    a, c, packed = at
    i0, i1, wide, depth, ldc = extents
    ars, acs = _value(writer, "i64", "ars"), _value(writer, "i64", "acs")
    zero = writer.constant("i64", 0)

    def panel(number: Value) -> None:
        first = number * shape.panel
        columns = _least(wide - first, shape.panel)
        vectors = _blocks(columns, shape.lanes)
        tail = columns - (vectors - 1) * shape.lanes
        b = _at(packed, first * depth, shape.scalar)
        step = vectors * shape.lanes

        def rows(count: int, block: Value) -> None:
            i = i0 + block * shape.rows
            height = _least(i1 - i, shape.rows)
            left, corner = _at(a, i * ars, shape.scalar), _at(c, i * ldc + first, shape.scalar)
            text = _listed(left, ars, acs, b, step, corner, ldc, depth, height, tail, add)
            writer.do(f"call void @tile{count}({text})")

        blocks = _blocks(i1 - i0, shape.rows)

        def choose(count: int) -> None:
            def loop() -> None:
                writer.count_up(zero, blocks, 1, functools.partial(rows, count))

            if count == PANELS:
                loop()
            else:
                writer.either(vectors.equals(count), loop, lambda: choose(count + 1))

        choose(1)

    writer.count_up(zero, _blocks(wide, shape.panel), 1, panel)


def dot_function(shape: Shape, cores: int, parallel: int) -> str:
    """The entry: batch matrix products, split between the cores where that pays."""
    writer = Writer(block="start")
    names = ("batch", "m", "n", "k")
    batch, m, n, k = (_value(writer, "i64", x) for x in names)
    trans_a, trans_b = _value(writer, "i1", "ta"), _value(writer, "i1", "tb")
    select, one = writer.select, writer.constant("i64", 1)
    # A product with one column is the transposed one with one row.
    flip = n.equals(1) & (m > 1)
    left, right = _value(writer, "ptr", "a"), _value(writer, "ptr", "b")
    a_steps = select(trans_a, one, k), select(trans_a, m, one)
    b_steps = select(trans_b, one, n), select(trans_b, k, one)
    left, right = select(flip, right, left), select(flip, left, right)
    steps = [
        select(flip, b_steps[1], a_steps[0]), select(flip, b_steps[0], a_steps[1]),
        select(flip, a_steps[1], b_steps[0]), select(flip, a_steps[0], b_steps[1]),
    ]  # fmt: skip
    m, n = select(flip, n, m), select(flip, m, n)
    rows, columns = _blocks(m, shape.rows), _blocks(n, shape.panel)
    by_rows = (columns < 2 * cores) & (rows > columns)
    units = select(by_rows, rows, columns)
    words = writer.allocate("i64", len(_WORDS))
    values = [
        left, right, _value(writer, "ptr", "c"), m, n, k, *steps,
        by_rows.cast("zext", "i64"), units,
    ]  # fmt: skip
    for number, value in enumerate(values):
        writer.store(value, _at(words, number, "i64"))
    total = batch * units

    def compute() -> None:
        each = (total + (cores - 1)).binary("udiv", total + (cores - 1), cores)
        task = f"ptr @stripes, ptr {words.text}, i64 {total.text}, i64 {each.text}"
        split = f"call void inttoptr (i64 {parallel} to ptr)({task})"
        alone = f"call void @stripes(ptr {words.text}, i64 0, i64 {total.text})"
        if cores == 1:
            writer.do(alone)
        else:
            large = (batch * m * n * k) >= PARALLEL_OPERATIONS
            writer.either(large, lambda: writer.do(split), lambda: writer.do(alone))

    def clear() -> None:
        count = batch * m * n * BYTES[shape.scalar]
        no = Value(writer, "i1", "false")
        writer.run(
            "@llvm.memset.p0.i64", _value(writer, "ptr", "c"), Value(writer, "i8", "0"), count, no
        )

    writer.either(k.equals(0), clear, lambda: writer.either(total > 0, compute))
    head = "@dot(ptr %a, ptr %b, ptr %c, i64 %batch, i64 %m, i64 %n, i64 %k, i1 %ta, i1 %tb)"
    return _function(head, writer).replace("define internal", "define", 1)


Part = Callable[[Shape], str]


@functools.cache
def gemm_address(dtype: np.dtype, cores: int, parallel: int) -> int:
    """The address of @dot for f32 or f64; compiled on first use, kept for the process."""
    return _compiled(dtype, cores, parallel).address("dot")


@functools.cache
def _compiled(dtype: np.dtype, cores: int, parallel: int) -> cpu_compile.Code:
    return cpu_compile.compile_module(f"gemm_{dtype}", module_text(dtype, cores, parallel))


def module_text(dtype: np.dtype, cores: int, parallel: int) -> str:
    """The whole module."""
    shape = shape_for(cpu_compile.machine(), SCALARS[dtype])
    parts = [tile_kernel(shape, v) for v in range(1, PANELS + 1)]
    parts += [pack_function(shape), rows_function(shape)]
    parts += [stripe_function(shape), block_function(shape)]
    parts += [dot_function(shape, cores, parallel)]
    v = suffix(shape.vector)
    declared = [
        f"declare {shape.vector} @llvm.fma.{v}({', '.join([shape.vector] * 3)})",
        f"declare void @llvm.masked.store.{v}.p0({shape.vector}, ptr, i32, <{shape.lanes} x i1>)",
        f"declare {shape.vector} @llvm.masked.load.{v}.p0(ptr, i32, <{shape.lanes} x i1>, {shape.vector})",
        "declare i64 @llvm.smin.i64(i64, i64)", "declare i64 @llvm.smax.i64(i64, i64)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ]  # fmt: skip
    return "\n\n".join([*declared, *parts])
