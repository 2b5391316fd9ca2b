"""Products with few columns, in LLVM IR: sums over the lanes of p.

    C[i, j] = sum over p of A[i, p] B[p, j]        at most COLUMNS of j

A tile of other products has columns in its lanes: with three columns it uses three of sixteen. Here
lanes are neighbours in p. Rows of A are read in place if vectors of p are neighbours in memory, and
packed one after the other if not; the columns of B are always packed. Images of few channels,
gradients of their first layers, and predictions of a few numbers are such products.

Invariant: the order of the sum depends on DEPTH and the lanes alone, never on how work was split.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.backends.cpu.gemm.blocks import HEIGHT, each_entry, spread, task_words
from rune.backends.cpu.gemm.packing import (
    STRIPE,
    parameters_of_stripe,
    places_function,
    roles_of_stripe,
    sides_of_entry,
)
from rune.backends.cpu.gemm.product import COLUMNS, DEPTH, Digits, Product
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import block_count, by_vectors, least, maker, zeros
from rune.lowering.codegen.llvm.ir.text import Value, Writer


def pieces_of(shape: Shape, products: Sequence[Product]) -> set[str]:
    """The pieces that products with few columns may call, @narrow_dot among them."""
    tiles = {f"narrow{product.n}" for product in products}
    in_place = all(_is_read_in_place(shape, product.walks["a_inner"]) for product in products)
    return {"narrow_dot", *tiles} | (set() if in_place else {"pack_left"})


def _is_read_in_place(shape: Shape, inner: Digits) -> bool:
    """Whether no vector of p crosses the end of a digit; `block_function` decides the same."""
    size, step = inner[0]
    return step == 1 and (len(inner) == 1 or size % shape.lanes == 0)


def tile_function(shape: Shape, columns: int, name: str) -> str:
    """C[height, columns] = A B over `depth`, or += with `add`.

    Rows of A begin at a[rows[r]], with their elements at offsets at[p]; columns of B are DEPTH
    apart.
    """
    make = maker(shape)
    writer, (a, starts, at, b, c) = make.writer, make.pointers("a rows at b c")
    depth, height = make.sizes("depth height")
    # As many sums as a vector has lanes, which are added up together.
    rows = shape.lanes // columns

    def tile(block: Value) -> None:
        i = block * rows
        # Rows beyond the last repeat it: they are computed, but never stored.
        lines = [make.at(a, make.word(starts, least(height - 1, i + r))) for r in range(rows)]
        sums = zeros(make, rows, columns)

        def step(p: Value, count: Value | None) -> None:
            offset = make.word(at, p)
            right = [make.vector(make.at(b, p + j * DEPTH), count) for j in range(columns)]
            for line, slots in zip(lines, sums, strict=True):
                x = make.vector(make.at(line, offset), count)
                for y, slot in zip(right, slots, strict=True):
                    writer.store(x.fma(y, writer.load(shape.vector, slot)), slot)

        by_vectors(make, depth, step)
        total = sums_of_lanes(writer, [writer.load(shape.vector, slot) for slots in sums for slot in slots])
        target, count = make.at(c, i * columns), least(height - i, rows) * columns
        writer.either(
            make.flag("add"),
            lambda: make.put(make.vector(target, count) + total, target, count),
            lambda: make.put(total, target, count),
        )

    make.each(block_count(height, rows), tile)
    return make.text(f"{name}(ptr %a, ptr %rows, ptr %at, ptr %b, ptr %c, i64 %depth, i64 %height, i1 %add)")


def sums_of_lanes(writer: Writer, vectors: Sequence[Value]) -> Value:
    """One vector of the sums of the lanes of each, by halves as `sum_of_lanes`.

    vectors: at most as many as lanes; what lanes beyond hold is of no use
    """
    lanes = vectors[0].lanes
    vectors = [*vectors, *[vectors[-1]] * (lanes - len(vectors))]
    width = lanes  # of what is left of each vector
    while width > 1:
        low = [first + lane for first in range(0, 2 * lanes, width) for lane in range(width // 2)]
        high = [lane + width // 2 for lane in low]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [writer.shuffle(x, y, low) + writer.shuffle(x, y, high) for x, y in pairs]
        width //= 2
    return vectors[0]


def right_function(shape: Shape) -> str:
    """Copy p..p+depth of all columns of B to lines that are DEPTH apart."""
    make = maker(shape)
    writer, (b, inner, outer, to) = make.writer, make.pointers("b inner outer to")
    p, depth, n = make.sizes("p depth n")
    at, columns = writer.allocate("i64", DEPTH), writer.allocate("i64", COLUMNS)
    make.call("places", inner, p, depth, at)
    make.call("places", outer, make.number(0), n, columns)

    def column(j: Value) -> None:
        source, target = make.at(b, make.word(columns, j)), make.at(to, j * DEPTH)
        make.each(depth, lambda q: writer.store(make.scalar(make.at(source, make.word(at, q))), make.at(target, q)))

    make.each(n, column)
    return make.text("right(ptr %b, ptr %inner, ptr %outer, i64 %p, i64 %depth, i64 %n, ptr %to)")


def block_function(shape: Shape) -> str:
    """Rows i0..i1 of one entry of the batch, by all columns."""
    make = maker(shape)
    writer, ((a, b, c, digits, watch), (n, i0, i1, _, _, k)) = make.writer, parameters_of_stripe(make)
    right = writer.allocate(shape.vector, COLUMNS * DEPTH // shape.lanes)
    packed_a = writer.allocate(shape.vector, HEIGHT * DEPTH // shape.lanes)
    starts, at = writer.allocate("i64", HEIGHT), writer.allocate("i64", DEPTH)
    rows, inner, columns, depths = roles_of_stripe(make, digits)
    fits = make.word(inner, 0).equals(1) | (make.word(inner, 1) & (shape.lanes - 1)).equals(0)
    in_place = fits & make.word(inner, 2).equals(1)
    tile = n + (shape.pieces.index("narrow1") - 1)

    def deep(number: Value) -> None:
        p = number * DEPTH
        # C is uninitialised: the first block of depth stores to it, and later ones add.
        depth, add = least(k - p, DEPTH), number.compare("ne", 0)
        make.call("right", b, depths, columns, p, depth, n, right)

        def of_rows() -> None:
            make.call("places", inner, p, depth, at)

        def of_copies() -> None:
            make.each(depth, lambda q: writer.store(q, make.at(at, q, "i64")))
            make.each(make.number(HEIGHT), lambda r: writer.store(r * depth, make.at(starts, r, "i64")))

        writer.either(in_place, of_rows, of_copies)

        def group(number: Value) -> None:
            first = i0 + number * HEIGHT
            height = least(i1 - first, HEIGHT)

            writer.either(
                in_place,
                lambda: make.call("places", rows, first, height, starts),
                lambda: make.call_piece("pack_left", a, rows, inner, first, p, packed_a, height, depth),
            )
            source = writer.select(in_place, a, packed_a)
            make.call_piece(tile, source, starts, at, right, make.at(c, first * n), depth, height, add)

        make.each(block_count(i1 - i0, HEIGHT), group)

    make.each(block_count(k, DEPTH), make.watched(watch, deep))
    return make.text(f"narrow_block({STRIPE})")


def stripes_function(shape: Shape) -> str:
    """A task of the pool: groups of rows begin..end of the batch."""
    make = maker(shape)
    (a, b, c, digits), (m, n, k, units), watch = make.words_of_task(4, 4)
    slot, zero = make.writer.allocate("i64"), make.number(0)

    def entry(i: Value, low: Value, high: Value) -> None:
        lhs, rhs = sides_of_entry(make, a, b, digits, i, slot)
        make.call("narrow_block", lhs, rhs, make.at(c, i * m * n), digits, watch, n, low, high, zero, n, k)

    each_entry(make, watch, units, HEIGHT, m, entry)
    return make.text("narrow_stripes(ptr %words, i64 %begin, i64 %end)")


def dot_function(shape: Shape, cores: int, parallel: int) -> str:
    """The entry: a batch of products, whose rows are split between the cores if that pays."""
    make = maker(shape)
    writer, operands = make.writer, [*make.pointers("a b c digits")]
    batch, m, n, k = make.sizes("batch m n k")
    sizes = batch, m, n, k
    units = block_count(m, HEIGHT)
    words = task_words(make, 8, sizes)
    for number, value in enumerate((*operands, m, n, k, units)):
        writer.store(value, make.at(words, number, "i64"))
    by_rows = Value(writer, "i1", "true")
    spread(make, "narrow_stripes", words, sizes, batch * units, by_rows, cores, parallel)
    return make.text("narrow_dot(ptr %a, ptr %b, ptr %c, i64 %batch, i64 %m, i64 %n, i64 %k, ptr %digits, ptr %watch)")


def dot_functions(shape: Shape, cores: int, parallel: int) -> list[str]:
    """@narrow_dot, and the functions that only it uses."""
    inner = [write(shape) for write in (places_function, right_function, block_function, stripes_function)]
    return [*inner, dot_function(shape, cores, parallel)]
