"""Matrix multiplication of strided views: packing walks the view, which is not copied before.

    C[b, i, j] = sum over p of A[b, i, p] B[b, p, j]

Patches of an image (a convolution), heads of attention and slices of any kind are read in place,
along the strides of each axis (packing.py). Blocks and tiles are those of blocks.py. A is read in
place if its rows are contiguous; if they are few, the sides are exchanged (exchanged.py).

Source: implicit packing of convolutions, Anderson et al. 2017, arXiv:1709.03395; blocks as there.
"""

from __future__ import annotations

from collections.abc import Iterable

from rune.backends.cpu.gemm import exchanged, packing
from rune.backends.cpu.gemm.blocks import DEPTH, HEIGHT, split_of, spread, task_words
from rune.backends.cpu.gemm.packing import place, role_of, word
from rune.backends.cpu.gemm.pieces import Product, declarations, vector_counts
from rune.backends.cpu.gemm.shape import ROWS, Shape
from rune.backends.cpu.gemm.tile import block_count, least, maker, widest
from rune.lowering.codegen.llvm.ir.names import suffix
from rune.lowering.codegen.llvm.ir.text import Value

_STRIPE = "ptr %a, ptr %b, ptr %c, ptr %digits, ptr %watch, i64 %n, i64 %i0, i64 %i1, i64 %j0, i64 %j1, i64 %k"


def block_function(shape: Shape) -> str:
    """One stripe of one batch: blocks of columns and of depth, each packed."""
    make = maker(shape)
    writer, (a, b, c, digits, watch) = make.writer, make.pointers("a b c digits watch")
    n, i0, i1, j0, j1, k = make.sizes("n i0 i1 j0 j1 k")
    # Transposing the last square may write vectors beyond its end.
    slack = shape.lanes * shape.vectors
    panels = writer.allocate(shape.vector, DEPTH * shape.width // shape.lanes + slack)
    packed_a = writer.allocate(shape.vector, DEPTH * HEIGHT // shape.lanes)
    rows, inner = role_of(make, digits, "a_rows"), role_of(make, digits, "a_inner")
    columns, depths = role_of(make, digits, "b_columns"), role_of(make, digits, "b_inner")
    plain = word(make, rows, 0).equals(1) & word(make, inner, 0).equals(1)
    plain = plain & word(make, inner, 2).equals(1)
    row_step, one, zero = word(make, rows, 2), make.number(1), make.number(0)
    most = widest(make, i1 - i0)

    def across(block: Value) -> None:
        j = j0 + block * shape.width
        wide = least(j1 - j, shape.width)

        def deep(number: Value) -> None:
            p = number * DEPTH
            depth, add = least(k - p, DEPTH), number.compare("ne", 0)
            make.call("pack_right", b, depths, columns, p, j, panels, depth, wide, most)

            def group(number: Value) -> None:
                first = i0 + number * HEIGHT
                height = least(i1 - first, HEIGHT)
                operands = (panels, zero, make.at(c, first * n + j), n, height, wide, depth, most, add)

                def in_place() -> None:
                    start = make.at(a, first * row_step + p)
                    make.call_piece("tiles", start, row_step, one, *operands)

                def copied() -> None:
                    make.call("pack_left", a, rows, inner, first, p, packed_a, height, depth)
                    make.call_piece("tiles", packed_a, depth, one, *operands)

                writer.either(plain, in_place, copied)

            make.each(block_count(i1 - i0, HEIGHT), group)

        make.each(block_count(k, DEPTH), make.watched(watch, deep))

    make.each(block_count(j1 - j0, shape.width), across)
    return make.text(f"block({_STRIPE})")


def stripes_function(shape: Shape) -> str:
    """A task of the pool: stripes begin..end of the batch, each with a number of rows or
    columns."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("words")
    a, b, c, digits = (writer.load("ptr", make.at(words, x, "i64")) for x in range(4))
    m, n, k, by_rows, units, exchanges = (word(make, words, x) for x in range(4, 10))
    begin, end = make.sizes("begin end")
    across = by_rows.compare("ne", 0)
    unit = writer.select(across, make.number(ROWS), shape.panel)
    length, slot, watch = writer.select(across, m, n), writer.allocate("i64"), make.watch_of(words)

    def one_batch(i: Value) -> None:
        low = (begin - i * units).call("smax", 0) * unit
        high = least(least(end - i * units, units) * unit, length)
        lhs, rhs = (
            make.at(x, place(make, role_of(make, digits, role), i, slot))
            for x, role in ((a, "a_batch"), (b, "b_batch"))
        )
        rows = writer.select(across, low, 0), writer.select(across, high, m)
        columns = writer.select(across, 0, low), writer.select(across, n, high)
        corner = make.at(c, i * m * n)
        operands, ranges = (lhs, rhs, corner, digits, watch), (*rows, *columns, k)
        writer.either(
            exchanges.compare("ne", 0),
            lambda: make.call("exchanged_block", *operands, m, *ranges),
            lambda: make.call("block", *operands, n, *ranges),
        )

    last = (end + (units - 1)).binary("udiv", end + (units - 1), units)
    writer.count_up(begin.binary("udiv", begin, units), last, 1, make.watched(watch, one_batch))
    return make.text("stripes(ptr %words, i64 %begin, i64 %end)")


def dot_function(shape: Shape, cores: int, parallel: int) -> str:
    """The entry: a batch of products, split between the cores if that pays."""
    make = maker(shape)
    writer, (a, b, c, digits) = make.writer, make.pointers("a b c digits")
    batch, m, n, k = make.sizes("batch m n k")
    exchanges = exchanged.choice(make, m, n, k)
    height, width = writer.select(exchanges, n, m), writer.select(exchanges, m, n)
    rows, columns, by_rows = split_of(shape, height, width, cores)
    units = writer.select(by_rows, rows, columns)
    words = task_words(make, 10, (batch, m, n, k))
    flags = (x.cast("zext", "i64") for x in (by_rows, exchanges))
    operands = (a, b, c, digits, height, width, k, next(flags), units, next(flags))
    for number, value in enumerate(operands):
        writer.store(value, make.at(words, number, "i64"))
    spread(make, words, (batch, m, n, k), batch * units, by_rows, cores, parallel)
    signature = "dot(ptr %a, ptr %b, ptr %c, i64 %batch, i64 %m, i64 %n, i64 %k, ptr %digits, ptr %watch)"
    return make.text(signature).replace("define internal", "define", 1)


def pieces_of(shape: Shape, cores: int, products: Iterable[Product]) -> set[str]:
    """The pieces that products of views may call."""
    return set[str]().union(*(pieces_for(shape, cores, p) for p in products))


def pieces_for(shape: Shape, cores: int, product: Product) -> set[str]:
    """The pieces that one product of views may call."""
    m, n, k = product.m, product.n, product.k
    all_counts = {*range(1, shape.vectors + 1)}
    walking = {"square", *(f"walk{v}" for v in (all_counts if m is None else exchanged.panel_counts(shape, m)))}
    counts = all_counts if n is None else vector_counts(shape, cores, m, n)
    tiles = {"tiles", "square", "row", *(f"tile{v}" for v in counts)}
    if m is None or n is None or k is None:
        return walking | tiles
    return walking if exchanged.is_exchanged(shape, m, n, k) else tiles


def module_text(shape: Shape, cores: int, parallel: int) -> str:
    """The module. parallel: the address of the pool's function, if there are several cores."""
    lanes, vector = shape.lanes, shape.vector
    gather = f"@llvm.masked.gather.{suffix(vector)}.v{lanes}p0"
    return "\n\n".join(
        [
            declarations(shape),
            f"declare {vector} {gather}(<{lanes} x ptr>, i32, <{lanes} x i1>, {vector})",
            packing.places_function(shape),
            packing.chunk_function(shape),
            packing.pack_right_function(shape),
            packing.pack_along_columns_function(shape),
            packing.pack_along_depth_function(shape),
            packing.pack_by_lanes_function(shape),
            packing.pack_left_function(shape),
            block_function(shape),
            exchanged.turn_function(shape),
            exchanged.block_function(shape),
            stripes_function(shape),
            dot_function(shape, cores, parallel),
        ]
    )
