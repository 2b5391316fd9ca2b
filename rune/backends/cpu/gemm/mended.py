"""Tiles that meet denormal numbers, in LLVM IR: sums in f64, where f32 would wait.

Processors of x86 take some 150 cycles for a fused step with a denormal operand. They set a flag
(MXCSR, bit 1) whenever one is read, so a product without any pays for a look at the flag after each
tile. An element of C is special if its row of A or its column of B has a denormal number among the
p of a block of depth: it is the sum of these products in f64, which is rounded once. Converting
denormal numbers takes no longer than others.

A product that met special elements leaves a hint in the table of pieces: the next tiles look first.
Where all elements are special no sum in f32 is made, and where some are, special rows are zeros in
it. The hint changes no bit.

Invariant: an element depends on its row and its column alone, never on the tile around it.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3 and 11.5.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rune.backends.cpu.float_mode import flushes, mode, set_mode
from rune.backends.cpu.gemm.product import DEPTH
from rune.backends.cpu.gemm.shape import ROWS, Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, by_vectors, least, maker, sum_of_lanes
from rune.lowering.codegen.llvm.ir.text import Value, Writer

_READ = 2  # the flag for denormal operands in MXCSR
GROUP = 8  # rows that are summed in f64 together
# Elements from one of these to the next, as f64: no power of 2, with which rows would compete for
# the same cache sets.
WIDE_ROW = DEPTH + 16
HINTED = 64  # tiles that look first after one that had special elements
_MANTISSA = 23
SOME, ALL = 1, 2  # results of `mend`: some elements of the tile are special, or all of them

OPERANDS = "ptr %a, i64 %rs, i64 %cs, ptr %b, i64 %bs, ptr %c, i64 %ldc, i64 %depth, i64 %height"


def forget_denormals(writer: Writer) -> None:
    """Clear the flag of this thread."""
    set_mode(writer, mode(writer) & ~_READ)


def met_denormals(writer: Writer) -> Value:
    """Whether this thread has read a denormal number since."""
    return (mode(writer) & _READ).compare("ne", 0)


def is_denormal(x: Value) -> Value:
    """Whether an f32 is denormal, by its bits, as -1 or 0 in an i32."""
    size = x.cast("bitcast", "i32") & 0x7FFFFFFF
    return (size - 1).compare("ult", (1 << _MANTISSA) - 1).cast("sext", "i32")


def mended_tile(
    make: Maker, tile: Callable[..., None], operands: tuple[Value, ...], width: Value, columns: Value
) -> None:
    """A tile, and its special elements in f64.

    tile: writes a tile of A with these strides. operands: those of OPERANDS.
    columns: notes on the panel of B (`forget_panel`)
    """
    shape, writer, hint = make.shape, make.writer, _hint(make)
    a, rs, cs, *_, c, ldc, depth, height = operands
    before = writer.allocate(shape.vector, ROWS * shape.vectors)
    ordinary = writer.allocate(shape.scalar, ROWS * DEPTH)

    def mend(first: bool) -> Value:
        function = writer.load("ptr", make.at(writer.at(shape.table), shape.pieces.index("mend"), "ptr"))
        flags = make.flag("add"), Value(writer, "i1", "true" if first else "false")
        values = ", ".join(f"{v.type} {v.text}" for v in (*operands, width, before, ordinary, columns, *flags))
        return writer.effect("i64", f"call i64 {function.text}({values})")

    def look() -> Value:
        special = mend(True)
        writer.store(writer.select(special.equals(0), writer.load("i64", hint) - 1, HINTED), hint)
        return special

    def after() -> None:
        special = mend(False)
        writer.store(writer.select(special.equals(0), writer.load("i64", hint), HINTED), hint)
        forget_denormals(writer)

    def compute() -> None:
        is_mixed = special.equals(SOME) & (depth <= DEPTH)
        tile(
            *(writer.select(is_mixed, x, y) for x, y in ((ordinary, a), (make.number(DEPTH), rs), (make.number(1), cs)))
        )
        writer.either(met_denormals(writer) | is_mixed, after)

    writer.either(make.flag("add"), partial(_save, make, c, ldc, height, width, before))
    special = writer.where(_is_hinted(make), look)
    writer.either(special.compare("ne", ALL), compute)


def _hint(make: Maker) -> Value:
    """Where the table has the number of tiles that look first."""
    return make.at(make.writer.at(make.shape.table), len(make.shape.pieces), "ptr")


def _is_hinted(make: Maker) -> Value:
    """Whether to look first. Where denormal numbers are 0, no sum is special."""
    return (make.writer.load("i64", _hint(make)) > 0) & flushes(make.writer).invert()


def _save(make: Maker, c: Value, ldc: Value, height: Value, width: Value, before: Value) -> None:
    """Copy a tile of C."""

    def row(r: Value) -> None:
        line, copy = make.at(c, r * ldc), make.at(before, r * make.shape.panel)
        by_vectors(make, width, lambda at, n: make.put(make.vector(make.at(line, at), n), make.at(copy, at)))

    make.each(height, row)


def mend_function(shape: Shape) -> str:
    """Write the special elements of a tile to C. The result is 0, SOME or ALL.

    With %first, no sums have been computed yet. If only some elements are special, they are left
    for a second call, and a copy of A with zeros for special rows goes to %ordinary.
    """
    make = maker(shape)
    writer = make.writer
    rows, widened, (columns,) = writer.allocate("i32", ROWS), writer.allocate("i64"), make.pointers("columns")
    some_row, every_row = writer.allocate("i32"), writer.allocate("i32")
    is_known, some_column, every_column = _notes(make, columns)
    for place, value in ((some_row, 0), (every_row, -1)):
        writer.store(writer.constant("i32", value), place)
    (height, width), first = make.sizes("height width"), make.flag("first")
    vectors = block_count(width, shape.lanes)

    def note(flag: Value) -> None:
        writer.store(writer.load("i32", some_row) | flag, some_row)
        writer.store(writer.load("i32", every_row) & flag, every_row)

    def look_at_panel() -> None:
        for place, value in ((is_known, 1), (some_column, 0), (every_column, -1)):
            writer.store(writer.constant("i32", value), place)
        make.each(vectors, partial(_look_at_columns, make, columns, some_column, every_column))

    make.each(height, partial(_look_at_row, make, rows, note))
    writer.either(writer.load("i32", is_known).equals(0), look_at_panel)
    has_some = (writer.load("i32", some_row) | writer.load("i32", some_column)).compare("ne", 0)
    has_all = (writer.load("i32", every_row) | writer.load("i32", every_column)).compare("ne", 0)

    def group(number: Value) -> None:
        writer.store(make.number(0), widened)
        make.each(vectors, partial(_sums, make, rows, columns, widened, number * GROUP))

    def apart() -> None:
        (depth,) = make.sizes("depth")
        writer.either(depth <= DEPTH, lambda: make.each(height, partial(_copy_ordinary, make, rows)))

    writer.either(
        first & has_all.invert(),
        lambda: writer.either(has_some, apart),
        lambda: writer.either(has_some, lambda: make.each(block_count(height, GROUP), group)),
    )
    result = writer.select(has_some, writer.select(has_all, make.number(ALL), SOME), 0)
    writer.do(f"ret i64 {result.text}")
    return writer.definition(
        f"internal i64 @mend({OPERANDS}, i64 %width, ptr %before, ptr %ordinary, ptr %columns, i1 %add, i1 %first)"
    )


def _notes(make: Maker, columns: Value) -> list[Value]:
    """Where it is noted whether a panel of B is known, has special columns, and has no others.

    columns: flags of the lanes of its vectors, which these notes follow
    """
    flags = make.shape.vectors * make.shape.lanes
    return [make.at(columns, flags + n, "i32") for n in range(3)]


def forget_panel(make: Maker) -> Value:
    """Room for notes on a panel of B, which has not been looked at yet."""
    flags = make.shape.vectors * make.shape.lanes
    columns = make.writer.allocate("i32", flags + 3)
    make.writer.store(make.writer.constant("i32", 0), _notes(make, columns)[0])
    return columns


def _copy_ordinary(make: Maker, rows: Value, r: Value) -> None:
    """Copy a row of A, or zeros if it has denormal numbers."""
    writer, (a, target) = make.writer, make.pointers("a ordinary")
    row_step, depth_step, depth = make.sizes("rs cs depth")
    line, copy = make.at(a, r * row_step), make.at(target, r * DEPTH)

    def copy_row() -> None:
        def one(p: Value) -> None:
            writer.store(make.scalar(make.at(line, p * depth_step)), make.at(copy, p))

        near = partial(make.copy, copy, line, depth * make.shape.bytes)
        writer.either(depth_step.equals(1), near, partial(make.each, depth, one))

    is_special = writer.load("i32", make.at(rows, r, "i32")).compare("ne", 0)
    writer.either(is_special, partial(make.clear, copy, depth * make.shape.bytes), copy_row)


def _look_at_row(make: Maker, rows: Value, note: Callable[[Value], None], r: Value) -> None:
    """rows[r] = whether a row of A has a denormal number."""
    writer, (a,) = make.writer, make.pointers("a")
    step, depth_step, depth = make.sizes("rs cs depth")
    line, flag = make.at(a, r * step), make.at(rows, r, "i32")

    def one(p: Value) -> None:
        denormal = is_denormal(make.scalar(make.at(line, p * depth_step)))
        writer.store(writer.load("i32", flag) | denormal, flag)

    def neighbours() -> None:
        writer.store(_has_denormal(make, line, depth).cast("sext", "i32"), flag)

    def others() -> None:
        writer.store(writer.constant("i32", 0), flag)
        make.each(depth, one)

    writer.either(depth_step.equals(1), neighbours, others)
    note(writer.load("i32", flag))


def _look_at_columns(make: Maker, columns: Value, some: Value, every: Value, v: Value) -> None:
    """columns[v] = which lanes of a vector of B have a denormal number."""
    shape, writer, (b,) = make.shape, make.writer, make.pointers("b")
    b_step, depth, width = make.sizes("bs depth width")
    type, start = f"<{shape.lanes} x i32>", make.at(b, v * shape.lanes)
    flags = make.at(columns, v, type)
    writer.store(writer.constant(type, 0), flags)

    def row(p: Value) -> None:
        writer.store(writer.load(type, flags) | is_denormal(make.vector(make.at(start, p * b_step))), flags)

    make.each(depth, row)
    # Lanes beyond the last column hold anything.
    lanes = make.mask(least(width - v * shape.lanes, shape.lanes))
    denormal = writer.load(type, flags).compare("ne", 0) & lanes
    writer.store(denormal.cast("sext", "i32"), flags)
    any_lane, all_lanes = (writer.any_lane(x).cast("sext", "i32") for x in (denormal, denormal.invert() & lanes))
    writer.store(writer.load("i32", some) | any_lane, some)
    writer.store(writer.load("i32", every) & all_lanes.invert(), every)


def _sums(make: Maker, rows: Value, columns: Value, widened: Value, first: Value, v: Value) -> None:
    """The special elements of GROUP rows and a vector of columns."""
    shape, writer, (height,) = make.shape, make.writer, make.sizes("height")
    lanes = writer.load(f"<{shape.lanes} x i32>", make.at(columns, v, f"<{shape.lanes} x i32>"))
    numbers = [least(height - 1, first + r) for r in range(GROUP)]
    flags = [writer.load("i32", make.at(rows, r, "i32")) for r in numbers]
    some = writer.any_lane(lanes.compare("ne", 0))
    for flag in flags:
        some = some | flag.compare("ne", 0)

    def compute() -> None:
        for r, (flag, total) in enumerate(zip(flags, _in_f64(make, numbers, widened, v), strict=True)):
            special = (lanes | writer.splat(flag, shape.lanes)).compare("ne", 0)
            writer.either(height > first + r, partial(_put, make, first + r, v, special, total))

    writer.either(some, compute)


def _in_f64(make: Maker, numbers: list[Value], widened: Value, v: Value) -> list[Value]:
    """The sums of products of rows of A and a vector of columns, rounded to f32.

    widened: where it says whether the rows have been copied as f64
    """
    shape, writer, (b,) = make.shape, make.writer, make.pointers("b")
    b_step, depth = make.sizes("bs depth")
    wide, rows = f"<{shape.lanes} x double>", writer.allocate("double", len(numbers) * WIDE_ROW)
    slots = [writer.allocate(wide) for _ in numbers]
    for slot in slots:
        writer.store(writer.constant(wide, 0.0), slot)

    def block(number: Value) -> None:
        first = number * DEPTH
        length = least(depth - first, DEPTH)
        # Rows of one block stay as they are for all vectors of columns.
        stale = writer.load("i64", widened).equals(0) | (depth > DEPTH)
        writer.either(stale, partial(_widen, make, numbers, rows, widened, first, length))

        def step(p: Value) -> None:
            y = make.vector(make.at(b, (first + p) * b_step + v * shape.lanes)).cast("fpext", "double")
            for r, slot in enumerate(slots):
                x = writer.load("double", writer.item(rows, "double", p + r * WIDE_ROW))
                writer.store(writer.splat(x, shape.lanes).fma(y, writer.load(wide, slot)), slot)

        make.each(length, step)

    make.each(block_count(depth, DEPTH), block)
    return [writer.load(wide, slot).cast("fptrunc", "float") for slot in slots]


def _widen(make: Maker, numbers: list[Value], rows: Value, widened: Value, first: Value, length: Value) -> None:
    """Copy a block of rows of A as f64."""
    writer, (a,) = make.writer, make.pointers("a")
    row_step, depth_step = make.sizes("rs cs")

    def row(number: Value, copy: Value) -> None:
        line = make.at(a, number * row_step + first * depth_step)

        def several(at: Value, count: Value | None) -> None:
            # A copy has room for whole vectors.
            wide = make.vector(make.at(line, at), count).cast("fpext", "double")
            writer.store(wide, writer.item(copy, "double", at), 8)

        def one(p: Value) -> None:
            wide = make.scalar(make.at(line, p * depth_step)).cast("fpext", "double")
            writer.store(wide, writer.item(copy, "double", p))

        writer.either(depth_step.equals(1), lambda: by_vectors(make, length, several), lambda: make.each(length, one))

    writer.store(make.number(1), widened)
    for r, number in enumerate(numbers):
        row(number, writer.item(rows, "double", r * WIDE_ROW))


def _put(make: Maker, r: Value, v: Value, special: Value, total: Value) -> None:
    """Store special elements of a row of C; with %add, add them to the earlier ones."""
    shape, writer, (c, before) = make.shape, make.writer, make.pointers("c before")
    ldc, width = make.sizes("ldc width")
    at, count = make.at(c, r * ldc + v * shape.lanes), least(width - v * shape.lanes, shape.lanes)
    earlier = make.vector(make.at(before, r * shape.panel + v * shape.lanes))
    value = writer.select(make.flag("add"), earlier + total, total)
    make.put(writer.select(special, value, make.vector(at, count)), at, count)


# --- a few rows -------------------------------------------------------------------------------


def sums_of_lanes(make: Maker, row: Value, lines: list[Value], k: Value, scalar: str | None = None) -> list[Value]:
    """The sums of products of a row of A and lines of B, over lanes of p.

    scalar: the type of the sums; by default that of the elements
    """
    shape, writer = make.shape, make.writer
    wide = scalar or shape.scalar
    type = f"<{shape.lanes} x {wide}>"
    slots = [writer.allocate(type) for _ in lines]
    for slot in slots:
        writer.store(writer.constant(type, 0.0), slot)

    def elements(line: Value, at: Value, count: Value | None) -> Value:
        vector = make.vector(make.at(line, at), count)
        return vector if wide == shape.scalar else vector.cast("fpext", wide)

    def step(at: Value, count: Value | None) -> None:
        x = elements(row, at, count)
        for line, slot in zip(lines, slots, strict=True):
            writer.store(x.fma(elements(line, at, count), writer.load(type, slot)), slot)

    by_vectors(make, k, step)
    totals = [sum_of_lanes(writer.load(type, slot)) for slot in slots]
    return totals if wide == shape.scalar else [total.cast("fptrunc", shape.scalar) for total in totals]


def put_sums(make: Maker, totals: list[Value], places: list[Value], exist: list[Value]) -> None:
    """Store those sums that exist."""
    for total, at, exists in zip(totals, places, exist, strict=True):
        make.writer.either(exists, partial(make.writer.store, total, at))


def mended_sums(make: Maker, row: Value, lines: list[Value], k: Value, places: list[Value], exist: list[Value]) -> None:
    """Store the sums of a row of A and lines of B; special ones are made in f64."""
    writer, hint = make.writer, _hint(make)

    def look() -> Value:
        denormal = _has_denormal(make, row, k)
        writer.store(writer.select(denormal, HINTED, writer.load("i64", hint) - 1), hint)
        return denormal

    def mend() -> None:
        of_row = _has_denormal(make, row, k)
        special = [of_row | _has_denormal(make, line, k) for line in lines]
        totals = sums_of_lanes(make, row, lines, k, "double")
        put_sums(make, totals, places, [s & exists for s, exists in zip(special, exist, strict=True)])
        writer.store(writer.select(of_row, HINTED, writer.load("i64", hint)), hint)
        forget_denormals(writer)

    def compute() -> None:
        put_sums(make, sums_of_lanes(make, row, lines, k), places, exist)
        writer.either(met_denormals(writer), mend)

    is_special = writer.where(_is_hinted(make), look)
    writer.either(
        is_special, lambda: put_sums(make, sums_of_lanes(make, row, lines, k, "double"), places, exist), compute
    )


def _has_denormal(make: Maker, line: Value, k: Value) -> Value:
    """Whether a line of neighbours has a denormal number."""
    writer, type = make.writer, f"<{make.shape.lanes} x i32>"
    flags = writer.allocate(type)
    writer.store(writer.constant(type, 0), flags)

    def look(at: Value, count: Value | None) -> None:
        denormal = is_denormal(make.vector(make.at(line, at), count))
        writer.store(writer.load(type, flags) | denormal, flags)

    by_vectors(make, k, look)
    return writer.any_lane(writer.load(type, flags).compare("ne", 0))
