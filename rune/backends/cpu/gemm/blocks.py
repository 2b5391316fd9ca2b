"""Matrix multiplication in LLVM IR, run by our own pool, for every pair of layouts.

    C[i, j] = sum over p of A[i, p] B[p, j]        A, B: a pair of strides each, one of them 1

The inner kernel (tile.py) keeps a tile of C in registers. Around it are blocks: DEPTH of p, so that
a panel of B stays in the first-level cache; HEIGHT rows of A and `width` columns of B, so that both
stay in the second-level cache. B is packed unless only a few rows use it; A is packed if it is
transposed. Each core computes a stripe of C, of columns if there are enough, else of rows, and
packs for itself: no core waits for another.

Why own code and not BLAS: it is as fast (measured on AVX-512), and OpenBLAS's threads spin on the
cores that the pool uses: a product between two kernels then takes many times as long.
Invariant: the order of the sum depends on DEPTH alone, never on how the work was split.
Source: the blocking is Goto & van de Geijn 2008, ACM TOMS 34(3).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import mul

from rune.backends.cpu.gemm.mended import (
    forget_denormals,
    forget_panel,
    mended_sums,
    mended_tile,
    put_sums,
    sums_of_lanes,
)
from rune.backends.cpu.gemm.panels import pack_function
from rune.backends.cpu.gemm.product import DEPTH, FEW
from rune.backends.cpu.gemm.shape import ROWS, WATCHED_OPERATIONS, Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, each_panel, least, maker, widest
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value

# A multiple of any vector's lanes, as is DEPTH, and of the rows of any tile: exchanged.py and
# panels.py write entire squares and tiles to buffers of this many rows.
HEIGHT = 48  # rows of A in one group
FIRST_CACHE = 40 << 10  # [B] of B that need no packing: they (nearly) stay in the first-level cache
EVEN = 16  # panels per core for which one panel more on some core does not matter
FEW_PANELS = 2  # the most panels of B for which a transposed A is not packed
# Multiply-adds of a product that is split between cores: in f32 one core takes 9 µs for these, and
# two take 5. Smaller ones gain less, and a worker that sleeps takes 50 µs to wake (threads.SPINS).
PARALLEL_OPERATIONS = 400_000

# The words of a task of the pool.
_POINTERS = "a b c".split()
_SIZES = "m n k ars acs brs bcs by_rows units".split()
_STRIPE = (
    "ptr %a, ptr %b, ptr %c, ptr %watch, i64 %n, i64 %i0, i64 %i1, i64 %j0, i64 %j1, i64 %k, "
    "i64 %ars, i64 %acs, i64 %brs, i64 %bcs"
)


def stripes_function(shape: Shape) -> str:
    """A task of the pool: stripes begin..end of the batch, each with a number of rows or
    columns."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("words")
    w = {name: make.word(words, k, "ptr" if name in _POINTERS else "i64") for k, name in enumerate(_POINTERS + _SIZES)}
    m, n, k, units, watch = w["m"], w["n"], w["k"], w["units"], make.watch_of(words)
    by_rows = w["by_rows"].compare("ne", 0)
    unit = writer.select(by_rows, make.number(ROWS), shape.panel)
    length = writer.select(by_rows, m, n)

    def entry(i: Value, low: Value, high: Value) -> None:
        at = [make.at(w[x], i * size) for x, size in (("a", m * k), ("b", k * n), ("c", m * n))]
        rows = writer.select(by_rows, low, 0), writer.select(by_rows, high, m)
        columns = writer.select(by_rows, 0, low), writer.select(by_rows, n, high)
        operands = (*at, watch, n, *rows, *columns, k, *(w[x] for x in ("ars", "acs", "brs", "bcs")))
        # Rows of A and columns of B are vectors of p there, so both must be contiguous along p.
        few = (m <= FEW) & w["acs"].equals(1) & w["brs"].equals(1)
        writer.either(few, lambda: make.call_piece("rows", *operands), lambda: make.call("block", *operands))

    each_entry(make, watch, units, unit, length, entry)
    return make.text("stripes(ptr %words, i64 %begin, i64 %end)")


def each_entry(
    make: Maker,
    watch: Value,
    units: Value,
    unit: Value | int,
    length: Value,
    body: Callable[[Value, Value, Value], None],
) -> None:
    """body(number, low, high) for the entries of a batch that units %begin..%end are of.

    units: of an entry, which has `length` rows or columns; unit: how many of them one unit has.
    A task may begin and end in the middle of an entry.
    """
    begin, end = make.sizes("begin end")

    def entry(i: Value) -> None:
        low = (begin - i * units).call("smax", 0) * unit
        body(i, low, least(least(end - i * units, units) * unit, length))

    make.writer.count_up(begin.binary("udiv", units), end.ceil_div(units), 1, make.watched(watch, entry))


def rows_function(shape: Shape) -> str:
    """A few rows of A by contiguous columns of B: FEW sums over vectors of p at once."""
    make = maker(shape)
    writer, (a, b, c) = make.writer, make.pointers("a b c")
    n, i0, i1, j0, j1, k, ars, bcs = make.sizes("n i0 i1 j0 j1 k ars bcs")

    def several(i: Value, block: Value) -> None:
        j = j0 + block * FEW
        # Columns beyond the last repeat it, so that reads stay within B; their sums are not stored.
        lines = [make.at(b, least(j1 - 1, j + r) * bcs) for r in range(FEW)]
        row, places = make.at(a, i * ars), [make.at(c, i * n + j + r) for r in range(FEW)]
        exist = [j1 > j + r for r in range(FEW)]
        if shape.mends:
            mended_sums(make, row, lines, k, places, exist)
        else:
            put_sums(make, sums_of_lanes(make, row, lines, k), places, exist)

    def row(i: Value) -> None:
        make.each(block_count(j1 - j0, FEW), partial(several, i))

    if shape.mends:
        forget_denormals(writer)
    writer.count_up(i0, i1, 1, row)
    return make.text(f"rows({_STRIPE})")


def block_function(shape: Shape) -> str:
    """One stripe: blocks of columns and of depth, packed unless they are small or little used."""
    make = maker(shape)
    writer, (a, b, c, watch) = make.writer, make.pointers("a b c watch")
    i0, i1, j0, j1, k, acs, brs, bcs = make.sizes("i0 i1 j0 j1 k acs brs bcs")
    # Transposing the last panel may write vectors beyond its end.
    slack = shape.lanes * shape.vectors
    panels = writer.allocate(shape.vector, DEPTH * shape.width // shape.lanes + slack)
    height, most = i1 - i0, widest(make, i1 - i0)

    def columns(block: Value) -> None:
        j = j0 + block * shape.width
        wide = least(j1 - j, shape.width)
        remainder = wide & (shape.lanes - 1)

        def deep(number: Value) -> None:
            p = number * DEPTH
            # C is uninitialised: the first block of depth stores to it, and later ones add.
            depth, add = least(k - p, DEPTH), number.compare("ne", 0)
            start, lhs, corner = make.at(b, p * brs + j * bcs), make.at(a, p * acs), make.at(c, j)

            def groups(b: Value, step: Value, first: Value, width: Value) -> None:
                at, sizes = make.at(corner, first), make.sizes("i0 i1 n ars acs")
                make.call("groups", lhs, b, step, at, *sizes, depth, width, most, add)

            def by_packing(first: Value) -> None:
                width = wide - first
                make.call("pack", make.at(start, first * bcs), brs, bcs, panels, depth, width, most)
                groups(panels, make.number(0), first, width)

            # In place only full vectors: a partial one would read beyond the row of B.
            near = remainder.equals(0) & (depth * brs <= FIRST_CACHE // shape.bytes)
            in_place = bcs.equals(1) & (near | (height <= ROWS))
            direct = writer.select(in_place, wide - remainder, 0)
            writer.either(direct > 0, lambda: groups(start, brs, make.number(0), direct))
            writer.either(direct < wide, lambda: by_packing(direct))

        make.each(block_count(k, DEPTH), make.watched(watch, deep))

    make.each(block_count(j1 - j0, shape.width), columns)
    return make.text(f"block({_STRIPE})")


def groups_function(shape: Shape) -> str:
    """All rows of the stripe by one block of B, in groups that stay in the second-level cache.

    %bs is the stride between rows of B, 0 if it is packed.
    """
    make = maker(shape)
    writer, lanes, (a, b, c) = make.writer, shape.lanes, make.pointers("a b c")
    i0, i1, n, ars, acs = make.sizes("i0 i1 n ars acs")
    bs, depth, wide, most = make.sizes("bs depth wide most")
    # One vector more for each row, since rows lie that much further apart (`packed_rows`).
    packed_a = writer.allocate(shape.vector, HEIGHT * (DEPTH // lanes + 1))

    def group(number: Value) -> None:
        first = i0 + number * HEIGHT
        height = least(i1 - first, HEIGHT)
        start = make.at(a, first * ars)
        right = (b, bs, make.at(c, first * n), n, height, wide, depth, most, make.flag("add"))

        def packed_rows() -> None:
            # No power of 2, with which the rows of A would compete for the same cache sets.
            step = block_count(depth, lanes) * lanes + lanes
            make.call_piece("pack_rows", start, acs, packed_a, step, depth, height)
            make.call_piece("tiles", packed_a, step, make.number(1), *right)

        # Packing a transposed A pays only if each of its rows is used for several panels.
        as_it_is = acs.equals(1) | (wide <= FEW_PANELS * shape.panel)
        plain = partial(make.call_piece, "tiles", start, ars, acs, *right)
        writer.either(as_it_is, plain, packed_rows)

    make.each(block_count(i1 - i0, HEIGHT), group)
    return make.text(
        "groups(ptr %a, ptr %b, i64 %bs, ptr %c, i64 %i0, i64 %i1, i64 %n, i64 %ars, i64 %acs, "
        "i64 %depth, i64 %wide, i64 %most, i1 %add)"
    )


def tiles_function(shape: Shape) -> str:
    """Some rows by one block of B, which is packed if %bs is 0."""
    make = maker(shape)
    writer, (a, b, c) = make.writer, make.pointers("a b c")
    rs, cs, bs, ldc, height, wide, depth = make.sizes("rs cs bs ldc height wide depth")
    is_packed, alone = bs.equals(0), height.equals(1)
    row = make.number(shape.pieces.index("row"))

    def panel(first: Value, columns: Value, vectors: Value) -> None:
        tail = columns - (vectors - 1) * shape.lanes
        start = make.at(b, writer.select(is_packed, first * depth, first))
        step = writer.select(is_packed, vectors * shape.lanes, bs)
        rows, number = make.number(shape.rows(1)), vectors - 1
        for count in range(2, shape.vectors + 1):
            rows = writer.select(vectors.equals(count), shape.rows(count), rows)
        # For a single row a tile of several rows would compute that row over and over.
        piece = writer.select(alone & vectors.equals(shape.vectors), row, number)
        notes = forget_panel(make) if shape.mends else start

        def tile(block: Value) -> None:
            i = block * rows
            at, corner = make.at(a, i * rs), make.at(c, i * ldc + first)
            alive, add = least(height - i, rows), make.flag("add")

            def one(*lhs: Value) -> None:
                make.call_piece(piece, *lhs, start, step, corner, ldc, depth, alive, tail, add)

            if shape.mends:
                mended_tile(make, one, (at, rs, cs, start, step, corner, ldc, depth, alive), columns, notes)
            else:
                one(at, rs, cs)

        make.each(block_count(height, rows), tile)

    if shape.mends:
        forget_denormals(writer)
    each_panel(make, wide, panel)
    return make.text(
        "tiles(ptr %a, i64 %rs, i64 %cs, ptr %b, i64 %bs, ptr %c, i64 %ldc, "
        "i64 %height, i64 %wide, i64 %depth, i64 %most, i1 %add)"
    )


def dot_function(shape: Shape, cores: int, parallel: int) -> str:
    """The entry: a batch of products, split between the cores if that pays."""
    make = maker(shape)
    writer, (a, b, c) = make.writer, make.pointers("a b c")
    batch, m, n, k = make.sizes("batch m n k")
    (m, n), lhs, rhs, steps = _flipped(make, a, b, m, n, k)
    rows, columns, by_rows = split_of(shape, m, n, cores)
    units = writer.select(by_rows, rows, columns)
    words = task_words(make, len(_POINTERS) + len(_SIZES), (batch, m, n, k))
    for number, value in enumerate((lhs, rhs, c, m, n, k, *steps)):
        writer.store(value, make.at(words, number, "i64"))
    for number, value in enumerate((by_rows.cast("zext", "i64"), units), len(steps) + 6):
        writer.store(value, make.at(words, number, "i64"))
    spread(make, "stripes", words, (batch, m, n, k), batch * units, by_rows, cores, parallel)
    signature = "dot(ptr %a, ptr %b, ptr %c, i64 %batch, i64 %m, i64 %n, i64 %k, i1 %ta, i1 %tb, ptr %watch)"
    return make.text(signature).replace("define internal", "define", 1)


def task_words(make: Maker, count: int, sizes: tuple[Value, ...]) -> Value:
    """Words of a product of these sizes, with %watch if it takes long enough to be interrupted."""
    operations, (watch,) = reduce(mul, sizes), make.pointers("watch")
    null = Value(make.writer, "ptr", "null")
    return make.words(count, make.writer.select(operations >= WATCHED_OPERATIONS, watch, null))


def split_of(shape: Shape, m: Value, n: Value, cores: int) -> tuple[Value, Value, Value]:
    """Tiles of rows, panels of columns, and whether cores get rows: if columns are few and do not
    divide evenly."""
    rows, columns = block_count(m, ROWS), block_count(n, shape.panel)
    uneven = n.binary("urem", shape.panel * cores).compare("ne", 0)
    return rows, columns, uneven & (columns < EVEN * cores) & (rows > columns)


def spread(
    make: Maker,
    stripes: str,
    words: Value,
    sizes: tuple[Value, Value, Value, Value],
    total: Value,
    by_rows: Value,
    cores: int,
    parallel: int,
) -> None:
    """The task `stripes` on `words`, on all cores if the product of these sizes is large enough.

    A core gets all of its rows at once, since it packs B for them; of columns one block after the
    other, if the blocks divide evenly.
    """
    writer, (batch, m, n, k) = make.writer, sizes
    alone = partial(make.call, stripes, words, make.number(0), total)

    def split() -> None:
        share = block_count(total, cores)
        blocks = block_count(share, make.shape.width // make.shape.panel)
        even = by_rows.invert() & share.binary("urem", blocks).equals(0)
        piece = writer.select(even, share.binary("udiv", blocks), share)
        task = f"ptr @{stripes}, ptr {words.text}, i64 {total.text}, i64 {piece.text}"
        writer.do(f"call void {pointer_to(parallel)}({task})")

    def compute() -> None:
        if cores == 1:
            alone()
        else:
            writer.either(batch * m * n * k >= PARALLEL_OPERATIONS, split, alone)

    def clear() -> None:
        (c,) = make.pointers("c")
        make.clear(c, batch * m * n * make.shape.bytes)

    # A sum over no p is 0, and the loops over blocks of depth would leave C as it is.
    writer.either(k.equals(0), clear, lambda: writer.either(total > 0, compute))


def _flipped(
    make: Maker, a: Value, b: Value, m: Value, n: Value, k: Value
) -> tuple[tuple[Value, Value], Value, Value, tuple[Value, ...]]:
    """(m, n), A, B and their strides; a product with one column becomes the transposed product."""
    # A row of C fills vectors, a column does not.
    select, one = make.writer.select, make.number(1)
    trans_a, trans_b = make.flag("ta"), make.flag("tb")
    flip = n.equals(1) & (m > 1)
    ars, acs = select(trans_a, one, k), select(trans_a, m, one)
    brs, bcs = select(trans_b, one, n), select(trans_b, k, one)
    steps = (select(flip, bcs, ars), select(flip, brs, acs), select(flip, acs, brs), select(flip, ars, bcs))
    return (select(flip, n, m), select(flip, m, n)), select(flip, b, a), select(flip, a, b), steps


def dot_functions(shape: Shape, cores: int, parallel: int) -> list[str]:
    """@dot, and the functions that only it uses."""
    return [
        pack_function(shape),
        groups_function(shape),
        block_function(shape),
        stripes_function(shape),
        dot_function(shape, cores, parallel),
    ]
