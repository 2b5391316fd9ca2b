"""Packing of strided operands, in LLVM IR, for strided.py.

The place of an element is the sum of the offsets of its batch, its row, its column and its p. Each
offset is a sum of digits times steps (product.py). A panel of B is packed by vectors, along columns
or along p, whichever has the longer runs in memory; if both have short runs, by gathering lanes.
Rows of A are packed one after the other.

A role is WORDS words: the number of its digits, then their sizes and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rune.backends.cpu.gemm.blocks import HEIGHT
from rune.backends.cpu.gemm.product import DEPTH, ROLES, WORDS, Digits
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, by_vectors, each_panel, least, maker
from rune.lowering.codegen.llvm.ir.names import suffix
from rune.lowering.codegen.llvm.ir.text import Value

RUN = 4  # the least run of elements that is read by vectors


def role_of(make: Maker, digits: Value, name: str) -> Value:
    return make.at(digits, WORDS * ROLES.index(name), "i64")


# The parameters of a function of one stripe of one batch.
STRIPE = "ptr %a, ptr %b, ptr %c, ptr %digits, ptr %watch, i64 %n, i64 %i0, i64 %i1, i64 %j0, i64 %j1, i64 %k"


def roles_of_stripe(make: Maker, digits: Value) -> Iterator[Value]:
    """The roles of the rows and p of A, and of the columns and p of B."""
    return (role_of(make, digits, name) for name in ("a_rows", "a_inner", "b_columns", "b_inner"))


def parameters_of_stripe(make: Maker) -> tuple[Iterator[Value], Iterator[Value]]:
    """The pointers of STRIPE, and its sizes."""
    return make.pointers("a b c digits watch"), make.sizes("n i0 i1 j0 j1 k")


def sides_of_entry(make: Maker, a: Value, b: Value, digits: Value, entry: Value, slot: Value) -> tuple[Value, Value]:
    """Where A and B of one entry of the batch begin."""
    a_offset, b_offset = (place(make, role_of(make, digits, role), entry, slot) for role in ("a_batch", "b_batch"))
    return make.at(a, a_offset), make.at(b, b_offset)


# --- places -----------------------------------------------------------------------------------


def places_function(shape: Shape) -> str:
    """out[0..count) = the offsets of the indices start..start+count."""
    make = maker(shape)
    writer, (role, out) = make.writer, make.pointers("role out")
    start, count = make.sizes("from count")
    total, remaining = writer.allocate("i64"), writer.allocate("i64")

    def run(first: Value, low: Value, high: Value) -> None:
        writer.store(make.number(0), total)
        writer.store(first, remaining)

        def digit(d: Value) -> None:
            # Word 0 is the count, and words 1 and 2 are the innermost digit, which `run` adds.
            size, step = make.word(role, d * 2 + 3), make.word(role, d * 2 + 4)
            digits_left = writer.load("i64", remaining)
            offset = digits_left.binary("urem", size) * step
            writer.store(writer.load("i64", total) + offset, total)
            writer.store(digits_left.binary("udiv", size), remaining)

        make.each(make.word(role, 0) - 1, digit)
        # Within a run only the innermost digit changes, so divisions are made for each run, and not
        # for each index.
        base, inner, step = writer.load("i64", total), make.word(role, 1), make.word(role, 2)

        def put(i: Value) -> None:
            writer.store(base + (i - first * inner) * step, make.at(out, i - start, "i64"))

        writer.count_up(low, high, 1, put)

    runs(make, role, start, count, run)
    return make.text("places(ptr %role, i64 %from, i64 %count, ptr %out)")


def runs(make: Maker, role: Value, start: Value, count: Value, body: Callable[[Value, Value, Value], None]) -> None:
    """body(number, low, high) for the runs of the innermost digit within start..start+count."""
    inner, end = make.word(role, 1), start + count

    def run(number: Value) -> None:
        low, high = (number * inner).call("smax", start), least(number * inner + inner, end)
        body(number, low, high)

    first = start.binary("udiv", inner)
    make.writer.count_up(first, block_count(end, inner), 1, run)


def place(make: Maker, role: Value, index: Value, slot: Value) -> Value:
    """The offset of one index."""
    make.call("places", role, index, make.number(1), slot)
    return make.writer.load("i64", slot)


# --- the right side ---------------------------------------------------------------------------


def way(inner: Digits, outer: Digits) -> str:
    """The piece by which `pack_right` packs an operand of these digits of p and of columns.

    >>> way(inner=((3, 1), (3, 30)), outer=((28, 1), (28, 30)))
    'along_columns'
    """
    along_p, along_j = (size if step == 1 else 0 for (size, step), *_ in (inner, outer))
    if max(along_p, along_j) < RUN:
        return "by_lanes"
    # On a tie, columns: they are only copied, while runs of p have to be transposed.
    return "along_columns" if along_j >= along_p else "along_depth"


def chunk_function(shape: Shape) -> str:
    """Copy `count` neighbours of every p to rows of a panel, `step` apart."""
    make = maker(shape)
    b, at, to = make.pointers("b at to")
    step, depth, count = make.sizes("step depth count")

    def rows(length: Value | None) -> None:
        def row(p: Value) -> None:
            make.put(make.vector(make.at(b, make.word(at, p)), length), make.at(to, p * step), length)

        make.each(depth, row)

    # Only the last vector of a run is partial, and without masks it is copied lane by lane.
    make.writer.either(count.equals(shape.lanes), partial(rows, None), partial(rows, count))
    return make.text("chunk(ptr %b, ptr %at, ptr %to, i64 %step, i64 %depth, i64 %count)")


def pack_right_function(shape: Shape) -> str:
    """Copy p..p+depth x j..j+columns of B to panels, in the layout of panels.pack_function."""
    make = maker(shape)
    writer, (inner, outer) = make.writer, make.pointers("inner outer")
    along_p, along_j = (writer.select(make.word(role, 2).equals(1), make.word(role, 1), 0) for role in (inner, outer))
    short = along_p.call("smax", along_j) < RUN
    source = [*make.pointers("b inner outer"), *make.sizes("p j")]
    target = [*make.pointers("to"), *make.sizes("depth columns most")]

    def longer() -> None:
        writer.either(
            along_j >= along_p,
            lambda: make.call_piece("along_columns", *source, *target),
            lambda: make.call_piece("along_depth", *source, *target),
        )

    writer.either(short, lambda: make.call_piece("by_lanes", *source, *target), longer)
    return make.text(f"pack_right({_PACK})")


_PACK = "ptr %b, ptr %inner, ptr %outer, i64 %p, i64 %j, ptr %to, i64 %depth, i64 %columns, i64 %most"


def _each_panel(make: Maker, body: Callable[[Value, Value, Value, Value], None]) -> None:
    """body(first column, number of columns, address of the panel, stride of its rows)."""
    shape = make.shape
    (to,) = make.pointers("to")
    j, depth, columns = make.sizes("j depth columns")

    def panel(first: Value, alive: Value, vectors: Value) -> None:
        body(j + first, alive, make.at(to, first * depth), vectors * shape.lanes)

    each_panel(make, columns, panel)


def along_columns_function(shape: Shape) -> str:
    """Pack by vectors of columns, for each p: columns have the longer runs."""
    make = maker(shape)
    writer, (b, inner, outer) = make.writer, make.pointers("b inner outer")
    p, depth = make.sizes("p depth")
    at, slot = writer.allocate("i64", DEPTH), writer.allocate("i64")
    make.call("places", inner, p, depth, at)

    def panel(first: Value, alive: Value, start: Value, step: Value) -> None:
        def run(number: Value, low: Value, high: Value) -> None:
            source = make.at(b, place(make, outer, low, slot))

            def chunk(c: Value) -> None:
                offset = c * shape.lanes
                target = make.at(start, low - first + offset)
                count = least(high - low - offset, shape.lanes)
                make.call("chunk", make.at(source, offset), at, target, step, depth, count)

            make.each(block_count(high - low, shape.lanes), chunk)

        runs(make, outer, first, alive, run)

    _each_panel(make, panel)
    return make.text(f"along_columns({_PACK})")


def along_depth_function(shape: Shape) -> str:
    """Pack by transposed squares of vectors: p has the longer runs.

    A square may write rows beyond its own: the next square, or the next panel, overwrites them.
    """
    make = maker(shape)
    writer, (b, inner, outer) = make.writer, make.pointers("b inner outer")
    p, depth = make.sizes("p depth")
    lanes, columns, slot = shape.lanes, writer.allocate("i64", shape.panel), writer.allocate("i64")

    def panel(first: Value, alive: Value, start: Value, step: Value) -> None:
        _column_places(make, outer, first, alive, step, columns)

        def vector(v: Value) -> None:
            lines = make.at(columns, v * lanes, "i64")

            def run(number: Value, low: Value, high: Value) -> None:
                source = make.at(b, place(make, inner, low, slot))

                def square(c: Value) -> None:
                    offset = c * lanes
                    target = make.at(start, (low - p + offset) * step + v * lanes)
                    count = least(high - low - offset, lanes)
                    make.call_piece("square", make.at(source, offset), lines, count, target, step)

                make.each(block_count(high - low, lanes), square)

            runs(make, inner, p, depth, run)

        make.each(block_count(alive, lanes), vector)

    _each_panel(make, panel)
    return make.text(f"along_depth({_PACK})")


def _column_places(make: Maker, outer: Value, first: Value, alive: Value, count: Value, columns: Value) -> None:
    """The offsets of a panel's columns; columns that do not exist repeat the first one's."""
    make.call("places", outer, first, alive, columns)
    first_place = make.word(columns, 0)
    repeat = partial(make.writer.store, first_place)
    make.each(count - alive, lambda k: repeat(make.at(columns, alive + k, "i64")))


def by_lanes_function(shape: Shape) -> str:
    """Pack by gathering every lane from its own place: there are only short runs."""
    make = maker(shape)
    writer, (b, inner, outer) = make.writer, make.pointers("b inner outer")
    p, depth = make.sizes("p depth")
    lanes, at = shape.lanes, writer.allocate("i64", DEPTH)
    columns = writer.allocate("i64", shape.panel)
    make.call("places", inner, p, depth, at)

    def panel(first: Value, alive: Value, start: Value, step: Value) -> None:
        _column_places(make, outer, first, alive, step, columns)

        def vector(v: Value) -> None:
            words = f"<{lanes} x i64>"
            places = writer.load(words, make.at(columns, v * lanes, "i64"), 8)

            def row(p: Value) -> None:
                elements = _gathered(make, make.at(b, make.word(at, p)), places)
                make.put(elements, make.at(start, p * step + v * lanes))

            make.each(depth, row)

        make.each(block_count(alive, lanes), vector)

    _each_panel(make, panel)
    return make.text(f"by_lanes({_PACK})")


def _gathered(make: Maker, base: Value, places: Value) -> Value:
    """The elements at these places, one in each lane."""
    writer, shape = make.writer, make.shape
    pointers = f"<{shape.lanes} x ptr>"
    element = f"getelementptr {shape.scalar}, ptr {base.text}, {places.type} {places.text}"
    # Every lane has a valid place: those of missing columns repeat the first one's.
    pointers_of_lanes = writer.emit(pointers, element)
    name = f"@llvm.masked.gather.{suffix(shape.vector)}.v{shape.lanes}p0"
    arguments = f"{pointers} {pointers_of_lanes.text}, i32 {shape.bytes}, <{shape.lanes} x i1> splat (i1 true)"
    return writer.effect(shape.vector, f"call {shape.vector} {name}({arguments}, {shape.vector} poison)")


# --- the left side ----------------------------------------------------------------------------


def pack_left_function(shape: Shape) -> str:
    """Copy i..i+height x p..p+depth of A to rows, one after the other."""
    make = maker(shape)
    writer, (a, outer, inner, to) = make.writer, make.pointers("a outer inner to")
    i, p, height, depth = make.sizes("i p height depth")
    lines, at = writer.allocate("i64", HEIGHT), writer.allocate("i64", DEPTH)
    slot = writer.allocate("i64")
    make.call("places", outer, i, height, lines)

    def by_runs() -> None:
        def run(number: Value, low: Value, high: Value) -> None:
            source, length = make.at(a, place(make, inner, low, slot)), high - low
            target = make.at(to, low - p)

            # Rows are the inner loop, since the place of a run is the same for all of them.
            def row(r: Value) -> None:
                line, out = make.at(source, make.word(lines, r)), make.at(target, r * depth)
                by_vectors(make, length, lambda at, n: make.put(make.vector(make.at(line, at), n), make.at(out, at), n))

            make.each(height, row)

        runs(make, inner, p, depth, run)

    def by_elements() -> None:
        make.call("places", inner, p, depth, at)

        def row(r: Value) -> None:
            line, target = make.at(a, make.word(lines, r)), make.at(to, r * depth)

            def one(q: Value) -> None:
                value = make.scalar(make.at(line, make.word(at, q)))
                writer.store(value, make.at(target, q))

            make.each(depth, one)

        make.each(height, row)

    runs_on = make.word(inner, 2).equals(1) & (make.word(inner, 1) >= RUN)
    writer.either(runs_on, by_runs, by_elements)
    return make.text("pack_left(ptr %a, ptr %outer, ptr %inner, i64 %i, i64 %p, ptr %to, i64 %height, i64 %depth)")
