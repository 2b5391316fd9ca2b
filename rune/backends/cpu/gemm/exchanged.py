"""Products of views with exchanged sides: Cᵀ = Bᵀ Aᵀ, if B is large and A has few rows.

Packing B for a few rows of A costs more than a tenth of their product: for example patches of
images for 64 filters, or for their gradient. With exchanged sides A is packed, and B is read in
place, one element for all lanes: one table has the offset of each p, another that of each column.
Sums of a group of columns are kept in a buffer, transposed by squares, and stored to C or added to
it.

Invariant: the order of the sum depends on DEPTH and BLOCKS alone; up to BLOCKS blocks the bits are
those of a product that is not exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rune.backends.cpu.gemm.blocks import HEIGHT
from rune.backends.cpu.gemm.packing import STRIPE, parameters_of_stripe, roles_of_stripe
from rune.backends.cpu.gemm.product import DEPTH
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, by_vectors, least, maker, multiply, zeros
from rune.lowering.codegen.llvm.ir.text import Value

BLOCKS = 4  # of depth, whose sums are added before they are transposed
TURNING = 2  # elements that can be packed in the time of transposing and storing one of C


def is_exchanged(shape: Shape, m: int, n: int, k: int) -> bool:
    """Whether a product of these sizes is exchanged; `choice` decides the same at run time."""
    # With fewer rows than lanes a panel of A would be padding for the most part.
    return m >= shape.lanes and n * k > m * k + m * n * TURNING * -(-k // (BLOCKS * DEPTH))


def choice(make: Maker, m: Value, n: Value, k: Value) -> Value:
    """Whether packing A, and transposing C every BLOCKS blocks, costs less than packing B."""
    transposition_cost = m * n * TURNING * block_count(k, BLOCKS * DEPTH)
    return (m >= make.shape.lanes) & (n * k > m * k + transposition_cost)


def panel_counts(shape: Shape, m: int) -> set[int]:
    """The numbers of vectors in the panels of m rows of A."""
    widths = {min(m, shape.panel), m % shape.panel}
    return {-(-width // shape.lanes) for width in widths if width}


def tile_function(shape: Shape, vectors: int, name: str) -> str:
    """A tile of rows that begin at a[rows[r]], with their elements at offsets at[p]."""
    make = maker(shape)
    writer, (a, rows, at, b) = make.writer, make.pointers("a rows at b")
    depth, height = make.sizes("depth height")
    # Rows beyond the last repeat it, so that no address is out of bounds.
    starts = [make.word(rows, least(height - 1, r)) for r in range(shape.rows(vectors))]
    lines = [make.at(a, start) for start in starts]
    sums = zeros(make, len(lines), vectors)

    def step(p: Value) -> None:
        multiply(make, lines, make.word(at, p), make.at(b, p * (vectors * shape.lanes)), sums)

    make.each(depth, step)
    put = partial(_put_tile, make, sums)
    writer.either(make.flag("add"), partial(put, True), partial(put, False))
    return make.text(f"{name}(ptr %a, ptr %rows, ptr %at, ptr %b, ptr %c, i64 %depth, i64 %height, i1 %add)")


def _put_tile(make: Maker, sums: list[list[Value]], adds: bool) -> None:
    """Store the sums to rows that are a panel apart, or add them to the rows."""
    shape, (c,) = make.shape, make.pointers("c")
    # Rows that do not exist are stored, too: the buffer has room for them, and none is read.
    for r, row in enumerate(sums):
        for v, slot in enumerate(row):
            value, at = make.writer.load(shape.vector, slot), make.at(c, r * shape.panel + v * shape.lanes)
            make.put(make.vector(at) + value if adds else value, at)


def block_function(shape: Shape) -> str:
    """One stripe of one batch: columns i0..i1 of B by rows j0..j1 of A. C has %n columns."""
    make = maker(shape)
    writer, ((a, b, c, digits, watch), (n, i0, i1, j0, j1, k)) = make.writer, parameters_of_stripe(make)
    # Transposing the last square may write vectors beyond its end.
    panels = writer.allocate(shape.vector, BLOCKS * DEPTH * shape.vectors + shape.panel)
    at, starts = writer.allocate("i64", BLOCKS * DEPTH), writer.allocate("i64", HEIGHT)
    sums = writer.allocate(shape.vector, HEIGHT * shape.vectors)
    filters, depths, rows, inner = roles_of_stripe(make, digits)

    def panel(number: Value) -> None:
        j = j0 + number * shape.panel
        wide = least(j1 - j, shape.panel)
        vectors, most = block_count(wide, shape.lanes), make.number(shape.vectors)

        def deep(number: Value) -> None:
            first, add = number * (BLOCKS * DEPTH), number.compare("ne", 0)
            length = least(k - first, BLOCKS * DEPTH)

            def each_block(body: Callable[[Value, Value, Value], None]) -> None:
                """body(its first p from `first` on, its depth, where it is packed)"""
                make.each(
                    block_count(length, DEPTH),
                    lambda block: body(
                        block * DEPTH,
                        least(length - block * DEPTH, DEPTH),
                        make.at(panels, block * (vectors * shape.lanes * DEPTH)),
                    ),
                )

            def pack(p: Value, depth: Value, target: Value) -> None:
                make.call_piece("pack_right", a, depths, filters, first + p, j, target, depth, wide, most)

            def group(number: Value) -> None:
                i = i0 + number * HEIGHT
                height = least(i1 - i, HEIGHT)
                make.call("places", rows, i, height, starts)

                def tiles(p: Value, depth: Value, source: Value) -> None:
                    operands = (b, starts, make.at(at, p, "i64"), source, sums, depth)
                    _tiles(make, operands, height, vectors, p.compare("ne", 0))

                each_block(tiles)
                make.call("turn", sums, make.at(c, j * n + i), n, height, wide, add)

            # All blocks first: the sums of a group go through them before they are transposed.
            each_block(pack)
            make.call("places", inner, first, length, at)
            make.each(block_count(i1 - i0, HEIGHT), group)

        make.each(block_count(k, BLOCKS * DEPTH), make.watched(watch, deep))

    make.each(block_count(j1 - j0, shape.panel), panel)
    return make.text(f"exchanged_block({STRIPE})")


def _tiles(make: Maker, operands: tuple[Value, ...], height: Value, vectors: Value, add: Value) -> None:
    """All tiles of one group, into rows of sums that are a panel apart."""
    b, starts, at, panel, sums, depth = operands
    shape, select = make.shape, make.writer.select
    rows = make.number(shape.rows(1))
    for count in range(2, shape.vectors + 1):
        rows = select(vectors.equals(count), shape.rows(count), rows)
    # walk1, walk2, ... are neighbours in the table.
    piece = vectors + (shape.pieces.index("walk1") - 1)

    def tile(block: Value) -> None:
        i = block * rows
        tile_sums = make.at(sums, i * shape.panel)
        make.call_piece(piece, b, make.at(starts, i, "i64"), at, panel, tile_sums, depth, least(height - i, rows), add)

    make.each(block_count(height, rows), tile)


def turn_function(shape: Shape) -> str:
    """C[j, i] = sums[i, j], or += with `add`, for `height` of i and `wide` of j."""
    make = maker(shape)
    writer, lanes, (source, c) = make.writer, shape.lanes, make.pointers("from c")
    n, height, wide = make.sizes("n height wide")
    # The last square may be cut off by `height`, and stays within both buffers (HEIGHT).
    transposed_sums = writer.allocate(shape.vector, HEIGHT * shape.vectors)
    lines = writer.allocate("i64", lanes)
    writer.store(writer.iota(lanes, "i64") * shape.panel, lines)

    def column(v: Value) -> None:
        def square(r: Value) -> None:
            start = make.at(source, r * (lanes * shape.panel) + v * lanes)
            target = make.at(transposed_sums, v * (lanes * HEIGHT) + r * lanes)
            make.call_piece("square", start, lines, make.number(lanes), target, make.number(HEIGHT))

        make.each(block_count(height, lanes), square)

    def put_all(adds: bool) -> None:
        make.each(
            wide, lambda j: _put_line(make, make.at(transposed_sums, j * HEIGHT), make.at(c, j * n), height, adds)
        )

    make.each(block_count(wide, lanes), column)
    writer.either(make.flag("add"), partial(put_all, True), partial(put_all, False))
    return make.text("turn(ptr %from, ptr %c, i64 %n, i64 %height, i64 %wide, i1 %add)")


def _put_line(make: Maker, line: Value, target: Value, length: Value, adds: bool) -> None:
    """Store `length` neighbours, or add them to the target."""

    def piece(first: Value, count: Value | None) -> None:
        value, at = make.vector(make.at(line, first)), make.at(target, first)
        make.put(make.vector(at, count) + value if adds else value, at, count)

    by_vectors(make, length, piece)
