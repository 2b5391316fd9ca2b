"""Matrix multiplication of strided views: packing walks the view, which is not copied before.

    C[b, i, j] = sum over p of A[b, i, p] B[b, p, j]

Patches of an image (a convolution), heads of attention and slices of any kind are read in place,
along the strides of each axis (packing.py). Blocks and tiles are those of blocks.py. A is read in
place if its rows are contiguous; if they are few, the sides are exchanged (exchanged.py).

Source: implicit packing of convolutions, Anderson et al. 2017, arXiv:1709.03395; blocks as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rune.backends.cpu.gemm import exchanged, narrow, packing, pieces
from rune.backends.cpu.gemm.blocks import HEIGHT, each_entry, split_of, spread, task_words
from rune.backends.cpu.gemm.packing import STRIPE, parameters_of_stripe, roles_of_stripe, sides_of_entry
from rune.backends.cpu.gemm.pieces import rows_alone, tiles_of, vector_counts
from rune.backends.cpu.gemm.product import DEPTH, Digits, Product
from rune.backends.cpu.gemm.shape import PACKS, ROWS, Shape, is_of_views
from rune.backends.cpu.gemm.tile import block_count, least, maker, widest
from rune.lowering.codegen.llvm.ir.names import suffix
from rune.lowering.codegen.llvm.ir.text import Value


def block_function(shape: Shape) -> str:
    """One stripe of one batch: blocks of columns and of depth, each packed."""
    make = maker(shape)
    writer, ((a, b, c, digits, watch), (n, i0, i1, j0, j1, k)) = make.writer, parameters_of_stripe(make)
    # Transposing the last square may write vectors beyond its end.
    slack = shape.lanes * shape.vectors
    panels = writer.allocate(shape.vector, DEPTH * shape.width // shape.lanes + slack)
    packed_a = writer.allocate(shape.vector, DEPTH * HEIGHT // shape.lanes)
    rows, inner, columns, depths = roles_of_stripe(make, digits)
    # `_is_plain` decides the same where digits are known; here they may be sizes of a call.
    plain = make.word(rows, 0).equals(1) & make.word(inner, 0).equals(1)
    plain = plain & make.word(inner, 2).equals(1)
    row_step, one, zero = make.word(rows, 2), make.number(1), make.number(0)
    most = widest(make, i1 - i0)

    def across(block: Value) -> None:
        j = j0 + block * shape.width
        wide = least(j1 - j, shape.width)

        def deep(number: Value) -> None:
            p = number * DEPTH
            # C is uninitialised: the first block of depth stores to it, and later ones add.
            depth, add = least(k - p, DEPTH), number.compare("ne", 0)
            make.call_piece("pack_right", b, depths, columns, p, j, panels, depth, wide, most)

            def group(number: Value) -> None:
                first = i0 + number * HEIGHT
                height = least(i1 - first, HEIGHT)
                operands = (panels, zero, make.at(c, first * n + j), n, height, wide, depth, most, add)

                def in_place() -> None:
                    start = make.at(a, first * row_step + p)
                    make.call_piece("tiles", start, row_step, one, *operands)

                def copied() -> None:
                    make.call_piece("pack_left", a, rows, inner, first, p, packed_a, height, depth)
                    make.call_piece("tiles", packed_a, depth, one, *operands)

                writer.either(plain, in_place, copied)

            make.each(block_count(i1 - i0, HEIGHT), group)

        make.each(block_count(k, DEPTH), make.watched(watch, deep))

    make.each(block_count(j1 - j0, shape.width), across)
    return make.text(f"view_block({STRIPE})")


def stripes_function(shape: Shape) -> str:
    """A task of the pool: stripes begin..end of the batch, each with a number of rows or
    columns."""
    make = maker(shape)
    writer, (words,) = make.writer, make.pointers("words")
    a, b, c, digits = (make.word(words, x, "ptr") for x in range(4))
    m, n, k, by_rows, units, exchanges = (make.word(words, x) for x in range(4, 10))
    across = by_rows.compare("ne", 0)
    unit = writer.select(across, make.number(ROWS), shape.panel)
    length, slot, watch = writer.select(across, m, n), writer.allocate("i64"), make.watch_of(words)

    def entry(i: Value, low: Value, high: Value) -> None:
        lhs, rhs = sides_of_entry(make, a, b, digits, i, slot)
        rows = writer.select(across, low, 0), writer.select(across, high, m)
        columns = writer.select(across, 0, low), writer.select(across, n, high)
        corner = make.at(c, i * m * n)
        operands, ranges = (lhs, rhs, corner, digits, watch), (*rows, *columns, k)
        writer.either(
            exchanges.compare("ne", 0),
            lambda: make.call_piece("exchanged_block", *operands, m, *ranges),
            lambda: make.call_piece("view_block", *operands, n, *ranges),
        )

    each_entry(make, watch, units, unit, length, entry)
    return make.text("view_stripes(ptr %words, i64 %begin, i64 %end)")


def dot_function(shape: Shape, cores: int, parallel: int) -> str:
    """The entry: a batch of products, split between the cores if that pays."""
    make = maker(shape)
    writer, (a, b, c, digits) = make.writer, make.pointers("a b c digits")
    batch, m, n, k = make.sizes("batch m n k")
    exchanges = exchanged.choice(make, m, n, k)
    # Cores share rows and columns of Cᵀ if that is what is computed.
    height, width = writer.select(exchanges, n, m), writer.select(exchanges, m, n)
    rows, columns, by_rows = split_of(shape, height, width, cores)
    units = writer.select(by_rows, rows, columns)
    words = task_words(make, 10, (batch, m, n, k))
    flags = (x.cast("zext", "i64") for x in (by_rows, exchanges))
    operands = (a, b, c, digits, height, width, k, next(flags), units, next(flags))
    for number, value in enumerate(operands):
        writer.store(value, make.at(words, number, "i64"))
    spread(make, "view_stripes", words, (batch, m, n, k), batch * units, by_rows, cores, parallel)
    return make.text("view_dot(ptr %a, ptr %b, ptr %c, i64 %batch, i64 %m, i64 %n, i64 %k, ptr %digits, ptr %watch)")


# --- the pieces -------------------------------------------------------------------------------


def pieces_of(shape: Shape, cores: int, products: Iterable[Product]) -> set[str]:
    """The pieces that products of views may call, @view_dot among them."""
    return {"view_dot"}.union(*(pieces_for(shape, cores, p) for p in products))


def pieces_for(shape: Shape, cores: int, product: Product) -> set[str]:
    """The pieces that one product of views may call, besides @view_dot."""
    m, n, k = product.m, product.n, product.k
    if m is None or n is None or k is None:
        # Which of both is needed is decided at run time (exchanged.choice).
        return _of_exchanged(shape, product) | _of_others(shape, cores, product)
    if exchanged.is_exchanged(shape, m, n, k):
        return _of_exchanged(shape, product)
    return _of_others(shape, cores, product)


def _of_exchanged(shape: Shape, product: Product) -> set[str]:
    counts = range(1, shape.vectors + 1) if product.m is None else exchanged.panel_counts(shape, product.m)
    walks = product.walks
    packs = _packs(walks["a_inner"], walks["a_rows"]) if walks else {*PACKS}
    return {"exchanged_block", "square", "pack_right", *packs, *(f"walk{v}" for v in counts)}


def _of_others(shape: Shape, cores: int, product: Product) -> set[str]:
    m, n, walks = product.m, product.n, product.walks
    counts = range(1, shape.vectors + 1) if n is None else vector_counts(shape, cores, m, n)
    packs = _packs(walks["b_inner"], walks["b_columns"]) if walks else {*PACKS, "square"}
    is_plain = walks and _is_plain(walks["a_rows"], walks["a_inner"])
    left_packs = set[str]() if is_plain else {"pack_left"}
    tiles = {*tiles_of(shape), *(f"tile{v}" for v in counts)} | rows_alone(shape, counts, m)
    return {"view_block", "pack_right", *packs, *left_packs} | tiles


def _packs(inner: Digits, outer: Digits) -> set[str]:
    pack = packing.way(inner, outer)
    return {pack, "square"} if pack == "along_depth" else {pack}


def _is_plain(rows: Digits, inner: Digits) -> bool:
    """Whether A is read in place, as in `block_function`."""
    return len(rows) == len(inner) == 1 and inner[0][1] == 1


def module_text(shape: Shape, names: Sequence[str], cores: int, parallel: int, effort: int) -> str:
    """The module of these pieces, which may be those of other products, too."""
    lanes, vector = shape.lanes, shape.vector
    gather = f"@llvm.masked.gather.{suffix(vector)}.v{lanes}p0"
    texts: dict[str, None] = {}  # each once, if several pieces call it
    for name in names:
        if is_of_views(name):
            texts.update(dict.fromkeys(_texts(shape, name, cores, parallel)))
        else:
            texts.update(dict.fromkeys(pieces.piece_text(shape, name, cores, parallel, effort)))
    declared = f"declare {vector} {gather}(<{lanes} x ptr>, i32, <{lanes} x i1>, {vector})"
    return "\n\n".join([pieces.declarations(shape), declared, *texts])


def _texts(shape: Shape, name: str, cores: int, parallel: int) -> list[str]:
    """The functions of a piece; only the last has external linkage."""
    if name == "view_dot":
        texts = [packing.places_function(shape), stripes_function(shape), dot_function(shape, cores, parallel)]
    elif name == "narrow_dot":
        texts = narrow.dot_functions(shape, cores, parallel)
    elif name.startswith("narrow"):
        texts = [narrow.tile_function(shape, int(name.removeprefix("narrow")), name)]
    elif name in _FUNCTIONS:
        texts = [write(shape) for write in _FUNCTIONS[name]]
    else:
        texts = [exchanged.tile_function(shape, int(name.removeprefix("walk")), name)]
    return [*texts[:-1], texts[-1].replace("define internal", "define", 1)]


_FUNCTIONS: Mapping[str, Sequence[Callable[[Shape], str]]] = {
    "pack_right": (packing.pack_right_function,),
    "along_columns": (packing.places_function, packing.chunk_function, packing.along_columns_function),
    "along_depth": (packing.places_function, packing.along_depth_function),
    "by_lanes": (packing.places_function, packing.by_lanes_function),
    "pack_left": (packing.places_function, packing.pack_left_function),
    "view_block": (block_function,),
    "exchanged_block": (packing.places_function, exchanged.turn_function, exchanged.block_function),
}
