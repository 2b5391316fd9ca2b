"""The pieces of matrix products: those that a product needs, and their text.

If a size is known only at run time, all pieces that some size may need are needed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from rune.backends.cpu import conventions
from rune.backends.cpu.gemm import blocks
from rune.backends.cpu.gemm.mended import mend_function
from rune.backends.cpu.gemm.panels import (
    copy_function,
    pack_rows_function,
    plain_square_function,
    square_function,
    transposed_function,
)
from rune.backends.cpu.gemm.product import Product, is_of_few_rows
from rune.backends.cpu.gemm.shape import ROWS, Shape, is_of_views
from rune.backends.cpu.gemm.tile import tile_function
from rune.lowering.codegen.llvm.ir.names import suffix


def pieces_of_dots(shape: Shape, cores: int, products: Iterable[Product]) -> set[str]:
    """The pieces of dense products, @dot among them."""
    return {"dot"}.union(*(pieces_for(shape, cores, p) for p in products))


def pieces_for(shape: Shape, cores: int, product: Product) -> set[str]:
    """The pieces that a dense product may call, besides @dot."""
    m, n, k, ta, tb = product.m, product.n, product.k, product.trans_a, product.trans_b
    # The tiles depend on the columns; a product of one column is transposed, so it has m of them.
    if n is None or (n == 1 and m is None):
        return {name for name in shape.pieces if not is_of_views(name)}
    if n == 1 and m != 1:  # computed as the transposed product (blocks._flipped)
        m, n, ta, tb = n, m, False, not ta
    # As in blocks.stripes_function, by layouts in place of strides.
    few = is_of_few_rows(m, n, ta, tb)
    if few and m is not None:
        return {"rows"}
    assert n is not None
    counts = vector_counts(shape, cores, m, n)
    pieces = {*tiles_of(shape), *(f"tile{v}" for v in counts)} | ({"rows"} if few else set())
    if tb and n > 1 and k != 1:
        pieces |= {"transposed", "square"}
    if not tb or n == 1 or k is None or k == 1:  # where k is 1 rows are as good as columns
        pieces |= {f"copy{v}" for v in counts}
    if ta and m != 1 and n > blocks.FEW_PANELS * shape.panel:
        pieces |= {"pack_rows", "square"}
    return pieces | rows_alone(shape, counts, m)


def tiles_of(shape: Shape) -> set[str]:
    """The pieces that direct tiles."""
    return {"tiles", "mend"} if shape.mends else {"tiles"}


def rows_alone(shape: Shape, counts: Container[int], m: int | None) -> set[str]:
    """The piece for a single last row, if panels have the greatest number of vectors."""
    return {"row"} if shape.vectors in counts and (m is None or m % ROWS == 1) else set()


def vector_counts(shape: Shape, cores: int, m: int | None, n: int) -> set[int]:
    """The numbers of vectors that panels of a product may have."""
    by_rows = m is None or is_split_by_rows(shape, cores, m, n)
    most = shape.vectors
    # Cores that share rows get stripes of other heights than m, for which `widest` may differ.
    mosts = {most - 1, most} if m is None or by_rows else {widest_of(shape, m)}
    remainder = n % shape.panel
    starts = range(0, min(n, shape.width) + 1, shape.panel)
    # A stripe begins and ends between panels; only the last one has the remainder.
    widths = {w for q in starts for w in (q, q + remainder) if 0 < w <= min(n, shape.width)}
    if m is None or by_rows or m <= ROWS:  # whole vectors may be read in place, others packed
        widths |= {part for w in widths for part in (w - w % shape.lanes, w % shape.lanes) if part}
    return {count for w in widths for most in mosts for count in panels_of(shape, w, most)}


def is_split_by_rows(shape: Shape, cores: int, m: int, n: int) -> bool:
    """The decision of blocks.split_of, for known sizes. Both must agree, or a piece is missing."""
    columns, uneven = -(-n // shape.panel), n % (shape.panel * cores)
    return uneven != 0 and columns < blocks.EVEN * cores and -(-m // ROWS) > columns


def panels_of(shape: Shape, columns: int, most: int) -> set[int]:
    """The numbers of vectors in the panels of so many columns, as `each_panel` divides them."""
    total = -(-columns // shape.lanes)
    count = -(-total // most)
    return {(i + 1) * total // count - i * total // count for i in range(count)}


def widest_of(shape: Shape, height: int) -> int:
    """The result of tile.widest for a known height. Both must agree, or a piece is missing."""
    low, high = (shape.rows(shape.vectors - k) for k in (0, 1))
    rows_computed, otherwise = (-(-height // rows) * rows for rows in (low, high))
    return shape.vectors - (rows_computed * 16 > otherwise * 17)


# --- their text -------------------------------------------------------------------------------


def declarations(shape: Shape) -> str:
    """Declarations of LLVM's functions that products use."""
    vector, name = shape.vector, suffix(shape.vector)
    mask, wide = f"<{shape.lanes} x i1>", f"<{shape.lanes} x double>"
    mended = [
        f"declare {wide} @llvm.fma.v{shape.lanes}f64({wide}, {wide}, {wide})",
        "declare void @llvm.x86.sse.stmxcsr(ptr)",
        "declare void @llvm.x86.sse.ldmxcsr(ptr)",
    ]
    return "\n".join(
        [
            f"declare {vector} @llvm.fma.{name}({vector}, {vector}, {vector})",
            f"declare void @llvm.masked.store.{name}.p0({vector}, ptr, i32, {mask})",
            f"declare {vector} @llvm.masked.load.{name}.p0(ptr, i32, {mask}, {vector})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare i64 @llvm.smax.i64(i64, i64)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            f"declare i1 @llvm.vector.reduce.or.v{shape.lanes}i1({mask})",
            *(mended if shape.mends else ()),
        ]
    )


def module_text(shape: Shape, names: Sequence[str], cores: int, parallel: int, effort: int) -> str:
    """The module of these pieces. parallel: the address of the pool's function."""
    texts = [text for name in names for text in piece_text(shape, name, cores, parallel, effort)]
    return "\n\n".join([declarations(shape), *texts])


def piece_text(shape: Shape, name: str, cores: int, parallel: int, effort: int = conventions.EFFORT) -> list[str]:
    """The functions of a piece; the one with its name is visible outside the module."""
    stem, vectors = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz_") or 0)
    match stem:
        case "tile":
            texts = [tile_function(shape, vectors, shape.rows(vectors), name)]
        case "copy":
            texts = [copy_function(shape, vectors)]
        case "row":
            texts = [tile_function(shape, shape.vectors, 1, name)]
        case "square" if effort == conventions.HURRY:
            texts = [plain_square_function(shape)]
        case "dot":
            return blocks.dot_functions(shape, cores, parallel)
        case _:
            texts = [_FUNCTIONS[stem](shape)]
    return [text.replace("define internal", "define", 1) for text in texts]


_FUNCTIONS = {
    "rows": blocks.rows_function,
    "square": square_function,
    "transposed": transposed_function,
    "pack_rows": pack_rows_function,
    "tiles": blocks.tiles_function,
    "mend": mend_function,
}
