"""The pieces of matrix products: which of them a product needs, compiled when the first one does.

A piece is a function of blocks.py and its companions; one calls another through a table of
addresses, whose order is `Shape.pieces`. So a program compiles the tiles that its sizes lead to,
once for the process, and no more: a tile of four vectors for 512 columns, one of a single vector
for ten. Where a size is known only at run time, everything that it might lead to is compiled.

Invariant: whoever runs a product has had `Library.need` compile what `pieces_for` lists of it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from dataclasses import field, replace

import numpy as np

from rune import dtypes
from rune.backends.cpu import compiler
from rune.backends.cpu.gemm import blocks, exchanged
from rune.backends.cpu.gemm.panels import copy_function, pack_rows_function, square_function, transposed_function
from rune.backends.cpu.gemm.tile import ROWS, Shape, shape_for, tile_function
from rune.errors import CompileError
from rune.lowering.codegen.llvm_names import suffix
from rune.records import dataclass

# Pieces that do little but call others: they would gain nothing by more of LLVM's effort.
DIRECTING = frozenset({"dot", "tiles"})
SCALARS = {dtypes.f32: "float", dtypes.f64: "double"}


@dataclass(frozen=True, slots=True)
class Product:
    """What is known of a product before it runs: m x k by k x n, and which side is transposed.

    None is a size that only the run tells.
    """

    m: int | None
    n: int | None
    k: int | None
    trans_a: bool = False
    trans_b: bool = False


@dataclass(slots=True)
class Library:
    """The pieces for one shape and number of cores, and their table."""

    shape: Shape
    cores: int
    parallel: int  # the address of the pool's function, with several cores
    effort: int  # LLVM's
    table: ctypes.Array[ctypes.c_void_p]
    codes: list[compiler.Code] = field(default_factory=list)

    def need(self, names: Iterable[str]) -> None:
        """Compile those of the pieces that are not there; two threads may both, and either serves.

        Errors: CompileError.
        """
        places = {name: self.shape.pieces.index(name) for name in names}
        missing = sorted(name for name, place in places.items() if not self.table[place])
        self._compile([name for name in missing if name in DIRECTING], compiler.HURRY)
        self._compile([name for name in missing if name not in DIRECTING], self.effort)

    def _compile(self, names: list[str], effort: int) -> None:
        if not names:
            return
        texts = [text for name in names for text in piece_text(self.shape, name, self.cores, self.parallel)]
        code = compiler.compile_module("gemm", "\n\n".join([declarations(self.shape), *texts]), effort)
        self.codes.append(code)
        for name in names:
            self.table[self.shape.pieces.index(name)] = code.address(name)

    def address(self, name: str) -> int:
        """Where a piece begins that is there."""
        address = self.table[self.shape.pieces.index(name)]
        assert address is not None, name
        return address


def new_library(shape: Shape, cores: int, parallel: int, effort: int = compiler.EFFORT) -> Library:
    """A library of no pieces."""
    table = (ctypes.c_void_p * len(shape.pieces))()
    return Library(replace(shape, table=ctypes.addressof(table)), cores, parallel, effort, table)


@functools.cache
def _kept(scalar: str, cores: int, parallel: int, effort: int) -> Library:
    return new_library(shape_for(compiler.machine(), scalar), cores, parallel, effort)


def library(dtype: np.dtype, cores: int, parallel: int, effort: int, routine: str) -> Library:
    """The pieces of this process for f32 or f64.

    Errors: CompileError for another dtype.
    """
    if dtype not in SCALARS:
        name = dtypes.short(dtype)
        raise CompileError(f"{routine}: cannot multiply {name} (the routine takes f32 and f64)")
    return _kept(SCALARS[dtype], cores, parallel, effort)


def gemm_address(dtype: np.dtype, cores: int, parallel: int, effort: int, products: Iterable[Product]) -> int:
    """The address of @dot for f32 or f64, ready for these products.

    Errors: CompileError for another dtype.
    """
    pieces = library(dtype, cores, parallel, effort, "dot")
    pieces.need({"dot"}.union(*(pieces_for(pieces.shape, cores, p) for p in products)))
    return pieces.address("dot")


# --- what a product needs ---------------------------------------------------------------------


def pieces_for(shape: Shape, cores: int, product: Product) -> set[str]:
    """The pieces that a dense product may call, besides @dot."""
    m, n, k, ta, tb = product.m, product.n, product.k, product.trans_a, product.trans_b
    if n is None or (n == 1 and m is None):
        return {name for name in shape.pieces if not name.startswith("walk")}  # of views alone
    if n == 1 and m != 1:  # it is computed as the transposed one
        m, n, ta, tb = n, m, False, not ta
    few = (not ta or m in (None, 1)) and (tb or n == 1) and (m is None or m <= blocks.FEW)
    if few and m is not None:
        return {"rows"}
    assert n is not None
    counts = vector_counts(shape, cores, m, n)
    needed = {"tiles", *(f"tile{v}" for v in counts)} | ({"rows"} if few else set())
    if tb and n > 1 and k != 1:
        needed |= {"transposed", "square"}
    if not tb or n == 1 or k is None or k == 1:  # where k is 1 rows are as good as columns
        needed |= {f"copy{v}" for v in counts}
    if ta and m != 1 and n > blocks.FEW_PANELS * shape.panel:
        needed |= {"pack_rows", "square"}
    if shape.vectors in counts and (m is None or m % ROWS == 1):
        needed |= {"row"}
    return needed


def vector_counts(shape: Shape, cores: int, m: int | None, n: int) -> set[int]:
    """How many vectors the panels of a product may have."""
    by_rows = m is None or is_split_by_rows(shape, cores, m, n)
    most = shape.vectors
    mosts = {most - 1, most} if m is None or by_rows else {widest_of(shape, m)}
    remainder = n % shape.panel
    starts = range(0, min(n, shape.width) + 1, shape.panel)
    widths = {w for q in starts for w in (q, q + remainder) if 0 < w <= min(n, shape.width)}
    if m is None or by_rows or m <= ROWS:  # whole vectors may be read in place, others packed
        widths |= {part for w in widths for part in (w - w % shape.lanes, w % shape.lanes) if part}
    return {count for w in widths for most in mosts for count in panels_of(shape, w, most)}


def is_split_by_rows(shape: Shape, cores: int, m: int, n: int) -> bool:
    """As blocks.split_of."""
    columns, uneven = -(-n // shape.panel), n % (shape.panel * cores)
    return uneven != 0 and columns < blocks.EVEN * cores and -(-m // ROWS) > columns


def panels_of(shape: Shape, columns: int, most: int) -> set[int]:
    """The numbers of vectors in the panels of so many columns, as `each_panel` divides them."""
    total = -(-columns // shape.lanes)
    count = -(-total // most)
    return {(i + 1) * total // count - i * total // count for i in range(count)}


def widest_of(shape: Shape, height: int) -> int:
    """As tile.widest."""
    low, high = (shape.rows(shape.vectors - k) for k in (0, 1))
    computed, otherwise = (-(-height // rows) * rows for rows in (low, high))
    return shape.vectors - (computed * 16 > otherwise * 17)


# --- their text -------------------------------------------------------------------------------


def declarations(shape: Shape) -> str:
    """What the functions of a product use of LLVM."""
    vector, name = shape.vector, suffix(shape.vector)
    mask = f"<{shape.lanes} x i1>"
    return "\n".join(
        [
            f"declare {vector} @llvm.fma.{name}({vector}, {vector}, {vector})",
            f"declare void @llvm.masked.store.{name}.p0({vector}, ptr, i32, {mask})",
            f"declare {vector} @llvm.masked.load.{name}.p0(ptr, i32, {mask}, {vector})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare i64 @llvm.smax.i64(i64, i64)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        ]
    )


def piece_text(shape: Shape, name: str, cores: int, parallel: int) -> list[str]:
    """The functions of a piece; the one of its name can be seen from without."""
    stem, vectors = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz_") or 0)
    match stem:
        case "tile":
            texts = [tile_function(shape, vectors, shape.rows(vectors), name)]
        case "walk":
            texts = [exchanged.tile_function(shape, vectors, name)]
        case "copy":
            texts = [copy_function(shape, vectors)]
        case "row":
            texts = [tile_function(shape, shape.vectors, 1, name)]
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
}
